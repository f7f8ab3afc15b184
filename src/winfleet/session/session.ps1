# What the controller has to know of a session when it begins.

function Get-BoxSession {
    $identity = [System.Security.Principal.WindowsIdentity]::GetCurrent()
    $principal = New-Object System.Security.Principal.WindowsPrincipal -ArgumentList $identity
    $pages = 'HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Nls\CodePage'
    $booted = $null
    try {
        $system = @(Get-CimInstance -ClassName Win32_OperatingSystem -Property LastBootUpTime)[0]
        $booted = ([datetime] $system.LastBootUpTime).ToUniversalTime().ToString('o')
    } catch {
        # Without CIM a reboot shows in the process id and the session that is gone.
        $booted = $null
    }
    return [pscustomobject] @{
        ComputerName = [Environment]::MachineName
        PSVersion = [string] $PSVersionTable.PSVersion
        LanguageMode = [string] $ExecutionContext.SessionState.LanguageMode
        OemCodePage = [int] [Microsoft.Win32.Registry]::GetValue($pages, 'OEMCP', '437')
        AnsiCodePage = [int] [Microsoft.Win32.Registry]::GetValue($pages, 'ACP', '1252')
        Elevated = $principal.IsInRole([System.Security.Principal.WindowsBuiltInRole]::Administrator)
        UserName = $identity.Name
        UserSid = [string] $identity.User.Value
        ProcessId = $PID
        BootTimeUtc = $booted
        Is64BitProcess = [Environment]::Is64BitProcess
    }
}
