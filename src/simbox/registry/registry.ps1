# The registry of the box, as far as Windows would have filled it from what the simulator knows.

function Set-RegistryKeyContent {
    # Exactly these values below HKLM; the key is made only when there is something to hold.
    param([string] $Key, [Collections.IDictionary] $Wanted)
    $path = $Key -replace '^HKLM:\\', ''
    $open = [Microsoft.Win32.Registry]::LocalMachine.OpenSubKey($path, $true)
    if ($null -eq $open) {
        if ($Wanted.Count -eq 0) { return }
        $open = [Microsoft.Win32.Registry]::LocalMachine.CreateSubKey($path)
    }
    foreach ($name in $open.GetValueNames()) {
        if (-not $Wanted.Contains($name)) { $open.DeleteValue($name) }
    }
    foreach ($name in $Wanted.Keys) {
        if ($open.GetValue($name) -ne $Wanted[$name]) { $open.SetValue($name, $Wanted[$name]) }
    }
    $open.Dispose()
}

function Sync-MachineEnvironment {
    # Machine variables that changed at the simulator since they were last written here; what the box itself sets stays.
    $machine = [Microsoft.Win32.Registry]::LocalMachine
    $live = $machine.CreateSubKey('SYSTEM\CurrentControlSet\Control\Session Manager\Environment')
    $written = $machine.CreateSubKey('SOFTWARE\simbox\Environment')
    foreach ($variable in (Invoke-Simulator system.environment).PSObject.Properties) {
        if ($written.GetValue($variable.Name) -ceq $variable.Value) { continue }
        $live.SetValue($variable.Name, $variable.Value)
        $written.SetValue($variable.Name, $variable.Value)
    }
    $live.Dispose()
    $written.Dispose()
}

function Sync-ComputerName {
    # Wine takes the name of the machine that it runs on.
    $name = (Invoke-Simulator system.facts).ComputerName
    foreach ($key in 'ActiveComputerName', 'ComputerName') {
        [Microsoft.Win32.Registry]::SetValue("HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\ComputerName\$key", 'ComputerName', $name)
    }
}

function Set-ProgramPrecedence {
    # Wine prefers its own netsh.exe, which prints nothing, to the file of that name on the box.
    [Microsoft.Win32.Registry]::SetValue('HKEY_CURRENT_USER\Software\Wine\DllOverrides', 'netsh.exe', 'native')
}
