# Firewall: all stores as they lie in the registry (10 ms for a thousand rules; the cmdlets need minutes), writes
# through the cmdlets, because the service owns its keys.

function Read-RegistryValues {
    # The values of a key under HKEY_LOCAL_MACHINE as a table, or null when there is no such key.
    param([string] $Key)
    $machine = [Microsoft.Win32.RegistryKey]::OpenBaseKey(
        [Microsoft.Win32.RegistryHive]::LocalMachine, [Microsoft.Win32.RegistryView]::Registry64)
    $opened = $machine.OpenSubKey($Key)
    if ($null -eq $opened) { return $null }
    $values = New-Object System.Collections.Specialized.OrderedDictionary
    foreach ($name in @($opened.GetValueNames() | Sort-Object)) {
        # Unexpanded: the path of a rule's program is compared as it was declared.
        $values[$name] = $opened.GetValue($name, $null, [Microsoft.Win32.RegistryValueOptions]::DoNotExpandEnvironmentNames)
    }
    $opened.Dispose()
    return $values
}

function Get-FirewallStore {
    $policy = 'SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy'
    $keys = @(
        @('Local', "$policy\FirewallRules"),
        @('GroupPolicy', 'SOFTWARE\Policies\Microsoft\WindowsFirewall\FirewallRules'),
        @('Mdm', "$policy\Mdm\FirewallRules"),
        @('AppContainer', "$policy\RestrictedServices\AppIso\FirewallRules")
    )
    $stores = @(foreach ($entry in $keys) {
        $values = Read-RegistryValues -Key $entry[1]
        $rules = @()
        if ($null -ne $values) {
            $rules = @(foreach ($name in @($values.Keys)) {
                [pscustomobject] @{ Name = [string] $name; Data = [string] $values[$name] }
            })
        }
        [pscustomobject] @{ Store = $entry[0]; Key = 'HKLM:\' + $entry[1]; Rules = $rules }
    })
    return , @($stores)
}

function Get-FirewallProfileValue {
    # The registry calls the private profile "Standard" in the local policy.
    $local = 'SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy'
    $group = 'SOFTWARE\Policies\Microsoft\WindowsFirewall'
    $keys = @(
        @('Domain', 'Local', "$local\DomainProfile"),
        @('Private', 'Local', "$local\StandardProfile"),
        @('Public', 'Local', "$local\PublicProfile"),
        @('Domain', 'GroupPolicy', "$group\DomainProfile"),
        @('Private', 'GroupPolicy', "$group\PrivateProfile"),
        @('Private', 'GroupPolicy', "$group\StandardProfile"),
        @('Public', 'GroupPolicy', "$group\PublicProfile")
    )
    $profiles = @(foreach ($entry in $keys) {
        $values = Read-RegistryValues -Key $entry[2]
        if ($null -eq $values) { continue }
        [pscustomobject] @{ Name = $entry[0]; Store = $entry[1]; Values = $values }
    })
    return , @($profiles)
}

function Get-NetworkConnection {
    $adapters = @(Get-NetAdapter -IncludeHidden)
    $addresses = @(Get-NetIPAddress)
    $connections = @(foreach ($connection in @(Get-NetConnectionProfile)) {
        $adapter = $adapters | Where-Object -FilterScript { $_.InterfaceIndex -eq $connection.InterfaceIndex } |
            Select-Object -First 1
        [pscustomobject] @{
            InterfaceAlias = [string] $connection.InterfaceAlias
            InterfaceGuid = $(if ($null -ne $adapter) { [string] $adapter.InterfaceGuid } else { $null })
            NetworkCategory = [string] $connection.NetworkCategory
            Addresses = @($addresses | Where-Object -FilterScript { $_.InterfaceIndex -eq $connection.InterfaceIndex } |
                ForEach-Object -Process { [string] $_.IPAddress })
        }
    })
    return , @($connections)
}

function Get-BoxFirewall {
    $service = Get-Service -Name MpsSvc -ErrorAction SilentlyContinue
    return [pscustomobject] @{
        Stores = Get-FirewallStore
        Profiles = Get-FirewallProfileValue
        Connections = Get-NetworkConnection
        ServiceStatus = $(if ($null -ne $service) { [string] $service.Status } else { $null })
    }
}

function Assert-ExactRuleName {
    # -Name of the NetFirewallRule cmdlets takes wildcards: such a name could change every rule of the machine.
    param([string[]] $Name)
    foreach ($one in $Name) {
        if ([string]::IsNullOrEmpty($one) -or [System.Management.Automation.WildcardPattern]::ContainsWildcardCharacters($one)) {
            throw (New-Refusal -Message "the firewall rule name '$one' is empty or has wildcards; give the exact name of one rule")
        }
    }
}

function Get-LocalFirewallRuleData {
    # The registry string of one rule of the local store, or null.
    param([string] $Name)
    $key = 'HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules'
    return [Microsoft.Win32.Registry]::GetValue($key, $Name, $null)
}

function Set-BoxFirewallRule {
    param(
        [string] $Name, [string] $DisplayName, [string] $Description = '', [string] $Group = '', [bool] $Enabled = $true,
        [string] $Direction = 'Inbound', [string] $Action = 'Allow', [string[]] $Profile = @('Any'),
        [string] $Protocol = 'TCP', [string[]] $LocalPort = @('Any'), [string[]] $RemotePort = @('Any'),
        [string[]] $LocalAddress = @('Any'), [string[]] $RemoteAddress = @('Any'), [string] $Program = 'Any',
        [string[]] $InterfaceAlias = @('Any')
    )
    Assert-ExactRuleName -Name $Name
    $fields = @{
        Description = $Description
        Enabled = $(if ($Enabled) { 'True' } else { 'False' })
        Direction = $Direction
        Action = $Action
        Profile = ($Profile -join ',')
        Protocol = $Protocol
        LocalPort = $LocalPort
        RemotePort = $RemotePort
        LocalAddress = $LocalAddress
        RemoteAddress = $RemoteAddress
        Program = $Program
        InterfaceAlias = $InterfaceAlias
        # Not declared, so set to what a new rule has: a rule is wholly ours or it is not.
        EdgeTraversalPolicy = 'Block'
        InterfaceType = 'Any'
        Service = 'Any'
    }
    $present = @(Get-NetFirewallRule -Name $Name -PolicyStore PersistentStore -ErrorAction SilentlyContinue)
    $created = ($present.Count -eq 0)
    if (-not $created -and [string] $present[0].Group -ne $Group) {
        # Windows cannot change the group of a rule.
        Remove-NetFirewallRule -Name $Name -PolicyStore PersistentStore
        $present = @()
    }
    if ($present.Count -eq 0) {
        if (-not [string]::IsNullOrEmpty($Group)) { $fields['Group'] = $Group }
        [void] (New-NetFirewallRule -Name $Name -DisplayName $DisplayName -PolicyStore PersistentStore @fields)
    } else {
        Set-NetFirewallRule -Name $Name -NewDisplayName $DisplayName -PolicyStore PersistentStore @fields
    }
    return [pscustomobject] @{ Created = $created; Data = Get-LocalFirewallRuleData -Name $Name }
}

function Disable-BoxFirewallRule {
    param([string[]] $Name)
    Assert-ExactRuleName -Name $Name
    $changed = New-Object System.Collections.Generic.List[string]
    foreach ($one in $Name) {
        $rule = Get-NetFirewallRule -Name $one -PolicyStore PersistentStore -ErrorAction SilentlyContinue
        if ($null -eq $rule -or [string] $rule.Enabled -eq 'False') { continue }
        Disable-NetFirewallRule -Name $one -PolicyStore PersistentStore
        $changed.Add($one)
    }
    return [pscustomobject] @{ Changed = $changed.ToArray() }
}

function Remove-BoxFirewallRule {
    param([string[]] $Name)
    Assert-ExactRuleName -Name $Name
    $changed = New-Object System.Collections.Generic.List[string]
    foreach ($one in $Name) {
        $rule = Get-NetFirewallRule -Name $one -PolicyStore PersistentStore -ErrorAction SilentlyContinue
        if ($null -eq $rule) { continue }
        Remove-NetFirewallRule -Name $one -PolicyStore PersistentStore
        $changed.Add($one)
    }
    return [pscustomobject] @{ Changed = $changed.ToArray() }
}
