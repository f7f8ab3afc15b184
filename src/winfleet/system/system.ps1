# Facts about Windows itself.

function Get-PendingRebootReason {
    # The places where Windows notes that it wants a restart.
    $machine = [Microsoft.Win32.RegistryKey]::OpenBaseKey(
        [Microsoft.Win32.RegistryHive]::LocalMachine, [Microsoft.Win32.RegistryView]::Registry64)
    $reasons = New-Object System.Collections.Generic.List[string]
    $keys = @(
        @('ComponentBasedServicing', 'SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending'),
        @('WindowsUpdate', 'SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired')
    )
    foreach ($entry in $keys) {
        $key = $machine.OpenSubKey($entry[1])
        if ($null -ne $key) {
            $reasons.Add($entry[0])
            $key.Dispose()
        }
    }
    $manager = $machine.OpenSubKey('SYSTEM\CurrentControlSet\Control\Session Manager')
    if ($null -ne $manager) {
        if (@($manager.GetValue('PendingFileRenameOperations')).Count -gt 1) { $reasons.Add('PendingFileRename') }
        $manager.Dispose()
    }
    $names = 'HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\ComputerName\'
    $active = [Microsoft.Win32.Registry]::GetValue($names + 'ActiveComputerName', 'ComputerName', $null)
    $next = [Microsoft.Win32.Registry]::GetValue($names + 'ComputerName', 'ComputerName', $null)
    if ($null -ne $active -and $null -ne $next -and $active -ne $next) { $reasons.Add('ComputerRename') }
    return , $reasons.ToArray()
}

function Get-ExcludedPortRangeText {
    # netsh's own words: the only source, and translated, so the reader looks at the numbers alone.
    $netsh = [System.IO.Path]::Combine((Get-NativeFolder), 'netsh.exe')
    if (-not [System.IO.File]::Exists($netsh)) { return $null }
    $run = Invoke-NativeProgram -Path $netsh -Arguments 'interface ipv4 show excludedportrange protocol=tcp'
    if ($run.ExitCode -ne 0) { return $null }
    return ConvertFrom-OemByte -Bytes $run.Output
}

function Get-BoxSystem {
    $windows = Get-CimInstance -ClassName Win32_OperatingSystem
    $computer = Get-CimInstance -ClassName Win32_ComputerSystem
    $environment = @{}
    $machine = [Environment]::GetEnvironmentVariables([EnvironmentVariableTarget]::Machine)
    foreach ($name in @($machine.Keys)) { $environment[[string] $name] = [string] $machine[$name] }
    return [pscustomobject] @{
        ComputerName = [Environment]::MachineName
        Caption = [string] $windows.Caption
        Version = [string] $windows.Version
        BuildNumber = [string] $windows.BuildNumber
        BootTimeUtc = ([datetime] $windows.LastBootUpTime).ToUniversalTime().ToString('o')
        TimeUtc = [datetime]::UtcNow.ToString('o')
        TotalPhysicalMemoryBytes = [long] $computer.TotalPhysicalMemory
        # CIM gives kilobytes here and bytes above.
        FreePhysicalMemoryBytes = [long] $windows.FreePhysicalMemory * 1024
        LogicalProcessorCount = [int] $computer.NumberOfLogicalProcessors
        TimeZoneId = [TimeZoneInfo]::Local.Id
        Culture = [System.Globalization.CultureInfo]::CurrentCulture.Name
        SystemDirectory = [Environment]::SystemDirectory
        PendingReboot = Get-PendingRebootReason
        ExcludedPortRangeText = Get-ExcludedPortRangeText
        MachineEnvironment = $environment
    }
}
