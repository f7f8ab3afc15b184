# The modules NetTCPIP, NetConnection and NetAdapter, as far as the facts go.

function Get-NetTCPConnection {
    # Listeners only: the simulator keeps no other connections.
    [CmdletBinding()]
    param([uint16[]] $LocalPort, [ValidateSet('Listen')] [string[]] $State)
    $found = @(Invoke-Simulator network.listeners | Where-Object { -not $LocalPort -or $_.LocalPort -in $LocalPort })
    if ($LocalPort -and -not $found) {
        $PSCmdlet.WriteError((New-CmdletFault -Id 'CmdletizationQuery_NotFound_LocalPort,Get-NetTCPConnection' -Category ObjectNotFound -Target $LocalPort -Message (
            "No MSFT_NetTCPConnection objects found with property 'LocalPort' equal to '$LocalPort'.  Verify the value of the property and retry.")))
    }
    foreach ($one in $found) {
        [pscustomobject] @{
            LocalAddress = $one.LocalAddress; LocalPort = [uint16] $one.LocalPort; RemoteAddress = '0.0.0.0'; RemotePort = 0
            State = 'Listen'; OwningProcess = [uint32] $one.OwningProcess
        }
    }
}

function Get-NetInterfaceRow {
    # The box's interfaces with the index that Windows would give them.
    $index = 4
    foreach ($row in Invoke-Simulator network.connections) {
        $index += 3
        $row | Add-Member -NotePropertyName InterfaceIndex -NotePropertyValue ([uint32] $index) -PassThru
    }
}

function Get-NetConnectionProfile {
    [CmdletBinding()]
    param()
    foreach ($row in Get-NetInterfaceRow) {
        if (-not $row.NetworkCategory) { continue }
        [pscustomobject] @{
            Name = 'Network'; InterfaceAlias = $row.InterfaceAlias; InterfaceIndex = $row.InterfaceIndex
            NetworkCategory = $row.NetworkCategory
        }
    }
}

function Get-NetAdapter {
    [CmdletBinding()]
    param([switch] $IncludeHidden)
    foreach ($row in Get-NetInterfaceRow) {
        [pscustomobject] @{
            Name = $row.InterfaceAlias; InterfaceAlias = $row.InterfaceAlias; InterfaceIndex = $row.InterfaceIndex
            ifIndex = $row.InterfaceIndex; InterfaceGuid = $row.InterfaceGuid; Status = 'Up'
        }
    }
}

function Get-NetIPAddress {
    [CmdletBinding()]
    param()
    foreach ($row in Get-NetInterfaceRow) {
        foreach ($prefix in $row.Prefixes) {
            $address, $length = $prefix.Split('/')
            [pscustomobject] @{
                IPAddress = $address; PrefixLength = [byte] $length; InterfaceAlias = $row.InterfaceAlias; InterfaceIndex = $row.InterfaceIndex
            }
        }
    }
}
