# Registry values, always those of the 64-bit view.

function Open-RegistryKey {
    # The key, or null when it does not exist and Create is false. The caller disposes it.
    param([string] $Key, [bool] $Write = $false, [bool] $Create = $false)
    if ($Key -notmatch '^(HKLM|HKEY_LOCAL_MACHINE|HKCU|HKEY_CURRENT_USER|HKU|HKEY_USERS):?\\(.+)$') {
        throw (New-WireFault -Type 'BadRequest' -Message "'$Key' is no key of HKLM:\, HKCU:\ or HKU:\")
    }
    $hives = @{
        HKLM = 'LocalMachine'; HKEY_LOCAL_MACHINE = 'LocalMachine'; HKCU = 'CurrentUser'; HKEY_CURRENT_USER = 'CurrentUser'
        HKU = 'Users'; HKEY_USERS = 'Users'
    }
    $path = $Matches[2].TrimEnd([char] '\')
    $base = [Microsoft.Win32.RegistryKey]::OpenBaseKey([Microsoft.Win32.RegistryHive] $hives[$Matches[1]], [Microsoft.Win32.RegistryView]::Registry64)
    try {
        if ($Create) { return $base.CreateSubKey($path) }
        return $base.OpenSubKey($path, $Write)
    } finally {
        $base.Dispose()
    }
}

function Get-RegistryValueAnswer {
    # %Names% stay as they are written.
    param([Microsoft.Win32.RegistryKey] $Key, [string] $Name)
    $kind = [string] $Key.GetValueKind($Name)
    $data = $Key.GetValue($Name, $null, [Microsoft.Win32.RegistryValueOptions]::DoNotExpandEnvironmentNames)
    if ($kind -eq 'Binary' -or $kind -eq 'None') { $data = [Convert]::ToBase64String([byte[]] $data) }
    if ($kind -eq 'MultiString') { $data = @([string[]] $data) }
    return [pscustomobject] @{ Name = $Name; Kind = $kind; Data = $data }
}

function Get-BoxRegistry {
    param([Parameter(Mandatory = $true)] [string] $Key, [string[]] $Name)
    $opened = Open-RegistryKey -Key $Key
    if ($null -eq $opened) { return [pscustomobject] @{ Exists = $false; Values = @() } }
    try {
        $names = @($opened.GetValueNames() | Sort-Object)
        if ($null -ne $Name) { $names = @($names | Where-Object { $_ -in $Name }) }
        $values = @(foreach ($one in $names) { Get-RegistryValueAnswer -Key $opened -Name $one })
        return [pscustomobject] @{ Exists = $true; Values = $values }
    } finally {
        $opened.Dispose()
    }
}

function ConvertTo-RegistryData {
    # Data as .NET's SetValue takes it; numbers may be given signed or unsigned.
    param([string] $Kind, [object] $Data)
    switch ($Kind) {
        'String' { return [string] $Data }
        'ExpandString' { return [string] $Data }
        'DWord' {
            $number = [decimal] $Data
            if ($number -gt [int]::MaxValue) { $number -= 4294967296 }
            return [int] $number
        }
        'QWord' {
            $number = [decimal] $Data
            if ($number -gt [long]::MaxValue) { $number -= 18446744073709551616 }
            return [long] $number
        }
        'MultiString' { return , [string[]] @($Data) }
        'Binary' { return , [Convert]::FromBase64String([string] $Data) }
    }
    throw (New-WireFault -Type 'BadRequest' -Message "'$Kind' is no kind of value")
}

function Set-BoxRegistryValue {
    param(
        [Parameter(Mandatory = $true)] [string] $Key, [Parameter(Mandatory = $true)] [AllowEmptyString()] [string] $Name,
        [Parameter(Mandatory = $true)] [string] $Kind, [object] $Data
    )
    try {
        $wanted = ConvertTo-RegistryData -Kind $Kind -Data $Data
    } catch [System.InvalidCastException], [System.FormatException], [System.OverflowException] {
        throw (New-WireFault -Type 'BadRequest' -Message "$Name cannot hold that as ${Kind}: $($_.Exception.Message)")
    }
    $opened = Open-RegistryKey -Key $Key -Create $true
    try {
        if (@($opened.GetValueNames()) -contains $Name) {
            $present = Get-RegistryValueAnswer -Key $opened -Name $Name
            $asked = $wanted
            if ($Kind -eq 'Binary') { $asked = [Convert]::ToBase64String($wanted) }
            if ($present.Kind -eq $Kind -and (ConvertTo-WireJson -Value $present.Data) -ceq (ConvertTo-WireJson -Value $asked)) {
                return [pscustomobject] @{ Changed = $false }
            }
        }
        $opened.SetValue($Name, $wanted, [Microsoft.Win32.RegistryValueKind] $Kind)
        return [pscustomobject] @{ Changed = $true }
    } finally {
        $opened.Dispose()
    }
}

function Remove-BoxRegistryValue {
    param([Parameter(Mandatory = $true)] [string] $Key, [Parameter(Mandatory = $true)] [AllowEmptyString()] [string] $Name)
    $opened = Open-RegistryKey -Key $Key -Write $true
    if ($null -eq $opened) { return [pscustomobject] @{ Changed = $false } }
    try {
        if (@($opened.GetValueNames()) -notcontains $Name) { return [pscustomobject] @{ Changed = $false } }
        $opened.DeleteValue($Name)
        return [pscustomobject] @{ Changed = $true }
    } finally {
        $opened.Dispose()
    }
}
