# The NetSecurity module, as far as rules by exact name go, and the service's registry keys, which the simulator
# fills as the firewall service does: the strings are written by nobody else.

function Sync-FirewallRegistry {
    # Make the registry of this box hold what the firewall service would have written.
    $snapshot = Invoke-Simulator firewall.snapshot
    foreach ($store in $snapshot.Stores) {
        $wanted = [ordered] @{}
        foreach ($rule in $store.Rules) { $wanted[$rule.Name] = $rule.Data }
        Set-RegistryKeyContent -Key $store.Key -Wanted $wanted
    }
    $local = 'HKLM:\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy'
    $roots = @{ Local = $local; Mdm = "$local\Mdm"; GroupPolicy = 'HKLM:\SOFTWARE\Policies\Microsoft\WindowsFirewall' }
    foreach ($store in $roots.Keys) {
        foreach ($name in 'Domain', 'Private', 'Public') {
            $wanted = [ordered] @{}
            $profile = $snapshot.Profiles | Where-Object { $_.Store -eq $store -and $_.Name -eq $name }
            foreach ($value in $profile.Values.PSObject.Properties) { $wanted[$value.Name] = [int] $value.Value }
            $key = if ($name -eq 'Private' -and $store -ne 'GroupPolicy') { 'StandardProfile' } else { $name + 'Profile' }
            Set-RegistryKeyContent -Key "$($roots[$store])\$key" -Wanted $wanted
        }
    }
    foreach ($kind in 'v4tov4', 'v4tov6', 'v6tov4', 'v6tov6') {
        $wanted = [ordered] @{}
        foreach ($proxy in @($snapshot.PortProxies) | Where-Object { $_.Kind -eq $kind }) { $wanted[$proxy.Listen] = $proxy.Connect }
        Set-RegistryKeyContent -Key "HKLM:\SYSTEM\CurrentControlSet\Services\PortProxy\$kind\tcp" -Wanted $wanted
    }
}

function Get-FirewallProductRow {
    foreach ($product in (Invoke-Simulator firewall.snapshot).Products) {
        [pscustomobject] @{ displayName = $product.Name; productState = [uint32] $product.State }
    }
}

function Find-FirewallRule {
    # Name and registry string of a local rule, or nothing.
    param([string] $Name)
    $local = (Invoke-Simulator firewall.snapshot).Stores | Where-Object { $_.Store -eq 'Local' }
    $local.Rules | Where-Object { $_.Name -eq $Name }
}

function ConvertFrom-RuleData {
    # A registry string as the parameters of the simulator's firewall.set.
    param([string] $Name, [string] $Data)
    $lists = @{ Profile = @(); LPort = @(); RPort = @(); LA = @(); RA = @(); IF = @() }
    $single = @{}
    foreach ($part in $Data.Split('|')) {
        $key, $value = $part.Split('=', 2)
        $plain = $key -replace '^(LA|RA)[46]2?$', '$1' -replace '^(LPort|RPort).*$', '$1'
        if ($lists.ContainsKey($plain)) { $lists[$plain] += $value } elseif ($null -ne $value) { $single[$key] = $value }
    }
    # What no parameter of the simulator's stands for stays as it is, as what Set-NetFirewallRule is not given.
    $known = 'Action', 'Active', 'Dir', 'Protocol', 'App', 'Svc', 'IFType', 'Name', 'Desc', 'EmbedCtxt', 'Edge', 'Defer'
    $kept = @($single.Keys | Where-Object { $_ -notin $known } | Sort-Object | ForEach-Object { "$_=$($single[$_])|" }) -join ''
    $aliases = @(foreach ($guid in $lists.IF) {
        (Invoke-Simulator network.connections | Where-Object { $_.InterfaceGuid -eq $guid }).InterfaceAlias
    })
    $protocols = @{ '6' = 'TCP'; '17' = 'UDP'; '1' = 'ICMPv4'; '58' = 'ICMPv6' }
    $protocol = if (-not $single.ContainsKey('Protocol')) { 'Any' } else { $protocols[$single.Protocol] ?? $single.Protocol }
    return @{
        name = $Name; display_name = [string] $single.Name; description = [string] $single.Desc
        group = [string] $single.EmbedCtxt; enabled = ($single.Active -eq 'TRUE')
        direction = $single.Dir -eq 'In' ? 'Inbound' : 'Outbound'
        action = $single.Action; profile = $lists.Profile; protocol = $protocol
        local_port = $lists.LPort; remote_port = $lists.RPort; local_address = $lists.LA; remote_address = $lists.RA
        program = $single.App; interface_alias = $aliases; kept = $kept
    }
}

function Write-FirewallRule {
    # Lay the parameters given over the rule's fields and hand it to the simulator.
    param([hashtable] $Rule, [Collections.IDictionary] $Given)
    $names = @{
        Description = 'description'; Group = 'group'; Direction = 'direction'; Action = 'action'; Protocol = 'protocol'
        LocalPort = 'local_port'; RemotePort = 'remote_port'; LocalAddress = 'local_address'
        RemoteAddress = 'remote_address'; Program = 'program'
    }
    foreach ($name in @($Given.Keys)) {
        if ($names.ContainsKey($name)) { $Rule[$names[$name]] = $Given[$name] }
    }
    if ($Given.Keys -contains 'Enabled') { $Rule.enabled = $Given.Enabled -eq 'True' }
    if ($Given.Keys -contains 'Profile') { $Rule.profile = @($Given.Profile.Split(',').Trim()) }
    if ($Given.Keys -contains 'InterfaceAlias') {
        $Rule.interface_alias = @($Given.InterfaceAlias | Where-Object { $_ -ne 'Any' })
    }
    foreach ($fixed in @{ EdgeTraversalPolicy = 'Block'; InterfaceType = 'Any'; Service = 'Any' }.GetEnumerator()) {
        if (($Given.Keys -contains $fixed.Key) -and $Given[$fixed.Key] -ne $fixed.Value) {
            throw [NotSupportedException]::new("the simulated firewall knows only -$($fixed.Key) $($fixed.Value)")
        }
    }
    $kept = $Rule.kept
    $Rule.Remove('kept')
    $made = Invoke-Simulator firewall.set $Rule
    if ($kept) { [void] (Invoke-Simulator firewall.write @{ name = $Rule.name; data = $made.Data + $kept }) }
    Sync-FirewallRegistry
}

function ConvertTo-FirewallRuleObject {
    param([string] $Name, [string] $Data)
    $rule = ConvertFrom-RuleData -Name $Name -Data $Data
    return [pscustomobject] @{
        PSTypeName = 'Microsoft.Management.Infrastructure.CimInstance#root/standardcimv2/MSFT_NetFirewallRule'
        Name = $Name; InstanceID = $Name; DisplayName = $rule.display_name; Description = $rule.description
        Group = $rule.group; Enabled = ([string] $rule.enabled); Direction = $rule.direction; Action = $rule.action
        Profile = $(if ($rule.profile.Count) { $rule.profile -join ', ' } else { 'Any' })
    }
}

function Get-MissingRuleFault {
    param([string] $Name, [string] $Command)
    return New-CmdletFault -Id "CmdletizationQuery_NotFound_InstanceID,$Command" -Category ObjectNotFound -Target $Name -Message (
        "No MSFT_NetFirewallRule objects found with property 'InstanceID' equal to '$Name'.  Verify the value of the " +
        'property and retry.')
}

function Resolve-FirewallRule {
    # The local rules that the -Name or the -InputObject of a cmdlet means. Wildcards that match nothing are no error.
    param([string[]] $Name, [object[]] $InputObject, [Management.Automation.PSCmdlet] $Cmdlet)
    if ($InputObject) { $InputObject | ForEach-Object { Find-FirewallRule -Name $_.Name } }
    foreach ($one in $Name) {
        if ([WildcardPattern]::ContainsWildcardCharacters($one)) {
            $local = (Invoke-Simulator firewall.snapshot).Stores | Where-Object { $_.Store -eq 'Local' }
            $local.Rules | Where-Object { $_.Name -like $one }
            continue
        }
        $found = Find-FirewallRule -Name $one
        if ($found) { $found } else { $Cmdlet.WriteError((Get-MissingRuleFault -Name $one -Command $Cmdlet.MyInvocation.MyCommand.Name)) }
    }
}

function Get-NetFirewallRule {
    [CmdletBinding()]
    param([Parameter(Position = 0)] [string[]] $Name = '*', [ValidateSet('PersistentStore')] [string] $PolicyStore)
    foreach ($found in Resolve-FirewallRule -Name $Name -Cmdlet $PSCmdlet) {
        ConvertTo-FirewallRuleObject -Name $found.Name -Data $found.Data
    }
}

function New-NetFirewallRule {
    [CmdletBinding()]
    param(
        [string] $PolicyStore, [string] $Name, [Parameter(Mandatory)] [string] $DisplayName, [string] $Description,
        [string] $Group, [ValidateSet('True', 'False')] [string] $Enabled, [string] $Profile,
        [ValidateSet('Inbound', 'Outbound')] [string] $Direction, [ValidateSet('NotConfigured', 'Allow', 'Block')] [string] $Action,
        [string] $EdgeTraversalPolicy, [string[]] $LocalAddress, [string[]] $RemoteAddress, [string] $Protocol,
        [string[]] $LocalPort, [string[]] $RemotePort, [string] $Program, [string] $Service,
        [string[]] $InterfaceAlias, [string] $InterfaceType
    )
    if (-not $Name) { $Name = [guid]::NewGuid().ToString('B') }
    if (Find-FirewallRule -Name $Name) {
        $PSCmdlet.ThrowTerminatingError((New-CmdletFault -Id 'Windows System Error 183,New-NetFirewallRule' -Category ResourceExists -Target $Name -Message (
            'Cannot create a file when that file already exists. ')))
    }
    $rule = @{
        name = $Name; display_name = $DisplayName; description = ''; group = ''; enabled = $true; direction = 'Inbound'
        action = 'Allow'; profile = @('Any'); protocol = 'Any'; local_port = @(); remote_port = @(); local_address = @()
        remote_address = @(); program = $null; interface_alias = @()
    }
    Write-FirewallRule -Rule $rule -Given $PSBoundParameters
    $made = Find-FirewallRule -Name $Name
    ConvertTo-FirewallRuleObject -Name $made.Name -Data $made.Data
}

function Set-NetFirewallRule {
    [CmdletBinding()]
    param(
        [Parameter(Mandatory, Position = 0, ParameterSetName = 'Name')] [string[]] $Name,
        [Parameter(ParameterSetName = 'Name')] [string] $PolicyStore,
        [Parameter(Mandatory, ParameterSetName = 'Object')] [object[]] $InputObject, [string] $NewDisplayName,
        [string] $Description, [ValidateSet('True', 'False')] [string] $Enabled, [string] $Profile,
        [ValidateSet('Inbound', 'Outbound')] [string] $Direction, [ValidateSet('NotConfigured', 'Allow', 'Block')] [string] $Action,
        [string] $EdgeTraversalPolicy, [string[]] $LocalAddress, [string[]] $RemoteAddress, [string] $Protocol,
        [string[]] $LocalPort, [string[]] $RemotePort, [string] $Program, [string] $Service,
        [string[]] $InterfaceAlias, [string] $InterfaceType
    )
    foreach ($found in Resolve-FirewallRule -Name $Name -InputObject $InputObject -Cmdlet $PSCmdlet) {
        $rule = ConvertFrom-RuleData -Name $found.Name -Data $found.Data
        if ($PSBoundParameters.ContainsKey('NewDisplayName')) { $rule.display_name = $NewDisplayName }
        Write-FirewallRule -Rule $rule -Given $PSBoundParameters
    }
}

function Enable-NetFirewallRule {
    [CmdletBinding()]
    param(
        [Parameter(Mandatory, Position = 0, ParameterSetName = 'Name')] [string[]] $Name,
        [Parameter(ParameterSetName = 'Name')] [string] $PolicyStore,
        [Parameter(Mandatory, ParameterSetName = 'Object')] [object[]] $InputObject
    )
    $names = @((Resolve-FirewallRule -Name $Name -InputObject $InputObject -Cmdlet $PSCmdlet).Name)
    [void] (Invoke-Simulator firewall.set_enabled @{ names = $names; enabled = $true })
    Sync-FirewallRegistry
}

function Disable-NetFirewallRule {
    [CmdletBinding()]
    param(
        [Parameter(Mandatory, Position = 0, ParameterSetName = 'Name')] [string[]] $Name,
        [Parameter(ParameterSetName = 'Name')] [string] $PolicyStore,
        [Parameter(Mandatory, ParameterSetName = 'Object')] [object[]] $InputObject
    )
    $names = @((Resolve-FirewallRule -Name $Name -InputObject $InputObject -Cmdlet $PSCmdlet).Name)
    [void] (Invoke-Simulator firewall.set_enabled @{ names = $names; enabled = $false })
    Sync-FirewallRegistry
}

function Remove-NetFirewallRule {
    [CmdletBinding()]
    param(
        [Parameter(Mandatory, Position = 0, ParameterSetName = 'Name')] [string[]] $Name,
        [Parameter(ParameterSetName = 'Name')] [string] $PolicyStore,
        [Parameter(Mandatory, ParameterSetName = 'Object')] [object[]] $InputObject
    )
    $names = @((Resolve-FirewallRule -Name $Name -InputObject $InputObject -Cmdlet $PSCmdlet).Name)
    [void] (Invoke-Simulator firewall.remove @{ names = $names })
    Sync-FirewallRegistry
}

function Get-Service {
    # The firewall service, which Wine does not have; every other name is Wine's own.
    [CmdletBinding()]
    param([Parameter(Position = 0)] [string[]] $Name)
    if ($Name.Count -eq 1 -and $Name[0] -eq 'MpsSvc') {
        return [pscustomobject] @{
            Name = 'mpssvc'; DisplayName = 'Windows Defender Firewall'
            Status = (Invoke-Simulator firewall.snapshot).ServiceStatus
        }
    }
    Microsoft.PowerShell.Management\Get-Service @PSBoundParameters
}
