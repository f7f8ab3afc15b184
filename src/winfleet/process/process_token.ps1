# As whom and with which rights processes run: what a definition promises, only the live token proves.

function Get-TokenFunction {
    # What Windows offers to look at the token of a process.
    return Get-NativeType -Name 'ProcessToken' -Table @{
        'kernel32.dll' = @{
            OpenProcess = [IntPtr], [uint32], [bool], [int]
            CloseHandle = [bool], [IntPtr]
        }
        'advapi32.dll' = @{
            OpenProcessToken = [bool], [IntPtr], [uint32], [IntPtr].MakeByRefType()
            GetTokenInformation = [bool], [IntPtr], [int], [byte[]], [int], [int].MakeByRefType()
        }
    }
}

function Read-TokenInformation {
    # The bytes of one kind of information of a token.
    param([IntPtr] $Token, [int] $Kind)
    $buffer = New-Object -TypeName 'byte[]' -ArgumentList 256
    $needed = 0
    $native = Get-TokenFunction
    if (-not $native::GetTokenInformation($Token, $Kind, $buffer, $buffer.Length, [ref] $needed)) {
        throw [System.ComponentModel.Win32Exception]::new([System.Runtime.InteropServices.Marshal]::GetLastWin32Error())
    }
    return , $buffer
}

function Get-TokenOfProcess {
    param([int] $ProcessId)
    $answer = [pscustomobject] @{ ProcessId = $ProcessId; UserSid = $null; Elevated = $null; IntegrityLevel = $null; Error = $null }
    $native = Get-TokenFunction
    $process = [IntPtr]::Zero
    $token = [IntPtr]::Zero
    try {
        $rows = @(Get-CimInstance -ClassName Win32_Process -Filter "ProcessId = $ProcessId")
        if ($rows.Length -eq 0) { throw (New-Object -TypeName System.ArgumentException -ArgumentList "there is no process $ProcessId") }
        $answer.UserSid = [string] (Invoke-CimMethod -InputObject $rows[0] -MethodName GetOwnerSid).Sid
        # PROCESS_QUERY_LIMITED_INFORMATION, TOKEN_QUERY
        $process = $native::OpenProcess(0x1000, $false, $ProcessId)
        if ($process -eq [IntPtr]::Zero -or -not $native::OpenProcessToken($process, 8, [ref] $token)) {
            throw [System.ComponentModel.Win32Exception]::new([System.Runtime.InteropServices.Marshal]::GetLastWin32Error())
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
        if ($token -ne [IntPtr]::Zero) { [void] $native::CloseHandle($token) }
        if ($process -ne [IntPtr]::Zero) { [void] $native::CloseHandle($process) }
    }
    return $answer
}

function Get-BoxProcessToken {
    param([int[]] $ProcessId)
    # An administrator may open the processes of others only with this privilege, which is there but not enabled.
    try { [System.Diagnostics.Process]::EnterDebugMode() } catch { $debug = $null }
    try {
        $answers = @(foreach ($one in $ProcessId) { Get-TokenOfProcess -ProcessId $one })
    } finally {
        try { [System.Diagnostics.Process]::LeaveDebugMode() } catch { $debug = $null }
    }
    return , @($answers)
}
