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
        @('Public', 'GroupPolicy', "$group\PublicProfile"),
        @('Domain', 'Mdm', "$local\Mdm\DomainProfile"),
        @('Private', 'Mdm', "$local\Mdm\PrivateProfile"),
        @('Private', 'Mdm', "$local\Mdm\StandardProfile"),
        @('Public', 'Mdm', "$local\Mdm\PublicProfile")
    )
    $profiles = @(foreach ($entry in $keys) {
        $values = Read-RegistryValues -Key $entry[2]
        if ($null -eq $values) { continue }
        [pscustomobject] @{ Name = $entry[0]; Store = $entry[1]; Values = $values }
    })
    return , @($profiles)
}

function Get-NetworkConnection {
    # Every adapter that is up and has addresses; the category is null where Windows has given none.
    $adapters = @(Get-NetAdapter -IncludeHidden)
    $addresses = @(Get-NetIPAddress | Where-Object -FilterScript { [string] $_.IPAddress -notmatch '^(127\.|::1$)' })
    $profiles = @(Get-NetConnectionProfile)
    $connections = @(foreach ($index in @($addresses | ForEach-Object -Process { $_.InterfaceIndex } | Select-Object -Unique)) {
        $adapter = $adapters | Where-Object -FilterScript { $_.InterfaceIndex -eq $index } | Select-Object -First 1
        $connection = $profiles | Where-Object -FilterScript { $_.InterfaceIndex -eq $index } | Select-Object -First 1
        if ($null -eq $connection -and ($null -eq $adapter -or [string] $adapter.Status -ne 'Up')) { continue }
        $own = @($addresses | Where-Object -FilterScript { $_.InterfaceIndex -eq $index })
        [pscustomobject] @{
            InterfaceAlias = [string] $own[0].InterfaceAlias
            InterfaceGuid = $(if ($null -ne $adapter) { [string] $adapter.InterfaceGuid } else { $null })
            NetworkCategory = $(if ($null -ne $connection) { [string] $connection.NetworkCategory } else { $null })
            Addresses = @($own | ForEach-Object -Process { [string] $_.IPAddress })
            Prefixes = @($own | ForEach-Object -Process {
                    '{0}/{1}' -f ([string] $_.IPAddress -replace '%.*$', ''), $_.PrefixLength
                })
        }
    })
    return , @($connections)
}

function Get-PortProxy {
    # What "netsh interface portproxy" has set up; its text is localised, its registry keys are not.
    $root = 'SYSTEM\CurrentControlSet\Services\PortProxy'
    $proxies = @(foreach ($kind in @('v4tov4', 'v4tov6', 'v6tov4', 'v6tov6')) {
        $values = Read-RegistryValues -Key "$root\$kind\tcp"
        if ($null -eq $values) { continue }
        foreach ($name in @($values.Keys)) {
            [pscustomobject] @{ Kind = $kind; Listen = [string] $name; Connect = [string] $values[$name] }
        }
    })
    return , @($proxies)
}

function Get-FirewallProduct {
    # Firewalls of other makers, or null where there is no Security Center (on a server).
    try {
        $found = @(Get-CimInstance -Namespace 'root/SecurityCenter2' -ClassName FirewallProduct -ErrorAction Stop)
    } catch {
        return $null
    }
    return , @($found | ForEach-Object -Process {
            [pscustomobject] @{ Name = [string] $_.displayName; State = [long] $_.productState }
        })
}

function Get-BoxFirewall {
    $service = Get-Service -Name MpsSvc -ErrorAction SilentlyContinue
    return [pscustomobject] @{
        Stores = Get-FirewallStore
        Profiles = Get-FirewallProfileValue
        Connections = Get-NetworkConnection
        ServiceStatus = $(if ($null -ne $service) { [string] $service.Status } else { $null })
        PortProxies = Get-PortProxy
        Products = Get-FirewallProduct
    }
}

function Get-LocalFirewallRule {
    # The rule of the local store with exactly this name, or null. -Name takes wildcards, and brackets are common in
    # the paths that Windows puts into names, so a name that has any is held against each rule.
    param([string] $Name)
    if ([string]::IsNullOrEmpty($Name)) {
        throw (New-Refusal -Message 'a firewall rule name is empty; give the exact name of one rule')
    }
    $plain = -not [System.Management.Automation.WildcardPattern]::ContainsWildcardCharacters($Name)
    if ($plain -and $Name.IndexOf([char] '`') -lt 0) {
        return Get-NetFirewallRule -Name $Name -PolicyStore PersistentStore -ErrorAction SilentlyContinue
    }
    return Get-NetFirewallRule -PolicyStore PersistentStore | Where-Object -FilterScript { [string] $_.Name -eq $Name } |
        Select-Object -First 1
}

function Get-LocalFirewallRuleData {
    # The registry string of one rule of the local store, or null.
    param([string] $Name)
    $key = 'HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules'
    return [Microsoft.Win32.Registry]::GetValue($key, $Name, $null)
}

function Test-ForeignRuleKey {
    # True when a registry string has keys that no parameter of Set-BoxFirewallRule sets or resets: users, packages,
    # platforms, IPsec, or what a later Windows may bring.
    param([string] $Data)
    $known = '^(?s)(v2\..*|((Action|Active|Dir|Protocol|Profile|App|Svc|IF|IFType|Name|Desc|EmbedCtxt|Edge|Defer)|' +
        '[LR]Port(2_\d+)?|[LR]A[46]2?)=.*)?$'
    return (@($Data.Split('|') | Where-Object -FilterScript { $_ -notmatch $known }).Count -gt 0)
}

function Set-BoxFirewallRule {
    param(
        [string] $Name, [string] $DisplayName, [string] $Description = '', [string] $Group = '', [bool] $Enabled = $true,
        [string] $Direction = 'Inbound', [string] $Action = 'Allow', [string[]] $Profile = @('Any'),
        [string] $Protocol = 'TCP', [string[]] $LocalPort = @('Any'), [string[]] $RemotePort = @('Any'),
        [string[]] $LocalAddress = @('Any'), [string[]] $RemoteAddress = @('Any'), [string] $Program = 'Any',
        [string[]] $InterfaceAlias = @('Any')
    )
    $present = Get-LocalFirewallRule -Name $Name
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
    $created = ($null -eq $present)
    $replaced = (-not $created -and ([string] $present.Group -ne $Group -or
            (Test-ForeignRuleKey -Data (Get-LocalFirewallRuleData -Name $Name))))
    if ($created -or $replaced) {
        $new = @{ DisplayName = $DisplayName; PolicyStore = 'PersistentStore' }
        if (-not [string]::IsNullOrEmpty($Group)) { $new['Group'] = $Group }
        if ($replaced) {
            # Windows cannot change the group of a rule, and keeps what it is not told. A second rule shows that it
            # takes the new one, and keeps the ports as they are to be while there is no rule of this name.
            $spare = "$Name.replacement"
            $left = Get-LocalFirewallRule -Name $spare
            if ($null -ne $left) { Remove-NetFirewallRule -InputObject $left }
            [void] (New-NetFirewallRule -Name $spare @new @fields)
            Remove-NetFirewallRule -InputObject $present
        }
        [void] (New-NetFirewallRule -Name $Name @new @fields)
        if ($replaced) { Remove-NetFirewallRule -InputObject (Get-LocalFirewallRule -Name $spare) }
    } else {
        Set-NetFirewallRule -InputObject $present -NewDisplayName $DisplayName @fields
    }
    return [pscustomobject] @{ Created = $created; Data = Get-LocalFirewallRuleData -Name $Name }
}

function Disable-BoxFirewallRule {
    param([string[]] $Name)
    # All are looked up first: a name that cannot be meant changes nothing.
    $rules = @(foreach ($one in $Name) { Get-LocalFirewallRule -Name $one })
    $changed = New-Object System.Collections.Generic.List[string]
    foreach ($rule in $rules) {
        if ([string] $rule.Enabled -eq 'False') { continue }
        Disable-NetFirewallRule -InputObject $rule
        $changed.Add([string] $rule.Name)
    }
    return [pscustomobject] @{ Changed = $changed.ToArray() }
}

function Remove-BoxFirewallRule {
    param([string[]] $Name)
    $rules = @(foreach ($one in $Name) { Get-LocalFirewallRule -Name $one })
    $changed = New-Object System.Collections.Generic.List[string]
    foreach ($rule in $rules) {
        Remove-NetFirewallRule -InputObject $rule
        $changed.Add([string] $rule.Name)
    }
    return [pscustomobject] @{ Changed = $changed.ToArray() }
}
