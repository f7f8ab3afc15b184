# As whom and with which rights processes run: what a definition promises, only the live token proves.

function Add-TokenType {
    if ($null -ne ('WinFleet.ProcessToken' -as [type])) { return }
    Add-Type -Namespace WinFleet -Name ProcessToken -MemberDefinition @'
[DllImport("kernel32.dll", SetLastError = true)] public static extern System.IntPtr OpenProcess(uint access, bool inherit, int id);
[DllImport("kernel32.dll")] public static extern bool CloseHandle(System.IntPtr handle);
[DllImport("advapi32.dll", SetLastError = true)] public static extern bool OpenProcessToken(System.IntPtr process, uint access, out System.IntPtr token);
[DllImport("advapi32.dll", SetLastError = true)] public static extern bool GetTokenInformation(System.IntPtr token, int kind, byte[] buffer, int length, out int needed);
'@
}

function Read-TokenInformation {
    # The bytes of one kind of information of a token.
    param([IntPtr] $Token, [int] $Kind)
    $buffer = New-Object -TypeName 'byte[]' -ArgumentList 256
    $needed = 0
    if (-not [WinFleet.ProcessToken]::GetTokenInformation($Token, $Kind, $buffer, $buffer.Length, [ref] $needed)) {
        throw (New-Object -TypeName System.ComponentModel.Win32Exception)
    }
    return , $buffer
}

function Get-TokenOfProcess {
    param([int] $ProcessId)
    $answer = [pscustomobject] @{ ProcessId = $ProcessId; UserSid = $null; Elevated = $null; IntegrityLevel = $null; Error = $null }
    $process = [IntPtr]::Zero
    $token = [IntPtr]::Zero
    try {
        $rows = @(Get-CimInstance -ClassName Win32_Process -Filter "ProcessId = $ProcessId")
        if ($rows.Length -eq 0) { throw (New-Object -TypeName System.ArgumentException -ArgumentList "there is no process $ProcessId") }
        $answer.UserSid = [string] (Invoke-CimMethod -InputObject $rows[0] -MethodName GetOwnerSid).Sid
        # PROCESS_QUERY_LIMITED_INFORMATION, TOKEN_QUERY
        $process = [WinFleet.ProcessToken]::OpenProcess(0x1000, $false, $ProcessId)
        if ($process -eq [IntPtr]::Zero -or -not [WinFleet.ProcessToken]::OpenProcessToken($process, 8, [ref] $token)) {
            throw (New-Object -TypeName System.ComponentModel.Win32Exception)
        }
        # TokenElevation
        $answer.Elevated = [BitConverter]::ToInt32((Read-TokenInformation -Token $token -Kind 20), 0) -ne 0
        # TokenIntegrityLevel: a pointer and attributes, then the SID: revision, count, authority (6), numbers of 4
        # bytes, of which the last is the level.
        $label = Read-TokenInformation -Token $token -Kind 25
        $start = 2 * [IntPtr]::Size
        $answer.IntegrityLevel = [BitConverter]::ToInt32($label, $start + 8 + 4 * ($label[$start + 1] - 1))
    } catch {
        $answer.Error = (Get-InnermostException -ErrorRecord $_).Message
    } finally {
        if ($token -ne [IntPtr]::Zero) { [void] [WinFleet.ProcessToken]::CloseHandle($token) }
        if ($process -ne [IntPtr]::Zero) { [void] [WinFleet.ProcessToken]::CloseHandle($process) }
    }
    return $answer
}

function Get-BoxProcessToken {
    param([int[]] $ProcessId)
    Add-TokenType
    # An administrator may open the processes of others only with this privilege, which is there but not enabled.
    try { [System.Diagnostics.Process]::EnterDebugMode() } catch { $debug = $null }
    try {
        $answers = @(foreach ($one in $ProcessId) { Get-TokenOfProcess -ProcessId $one })
    } finally {
        try { [System.Diagnostics.Process]::LeaveDebugMode() } catch { $debug = $null }
    }
    return , @($answers)
}
