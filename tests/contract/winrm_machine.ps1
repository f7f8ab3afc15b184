# Stand-ins for what bootstrap/enable-winrm.ps1 finds on a Windows: the service WinRM, its configuration, certificates
# and firewall rules. The registry is the box's own. Functions win over cmdlets; what is changed is noted in Calls.

$global:Machine = @{
    StartType = 'Manual'; Status = 'Stopped'; Listeners = @(); My = @(); CA = @(); Rules = @{}
    Settings = @{ 'WSMan:\localhost\Service\Auth\Basic' = 'false'; 'WSMan:\localhost\Service\AllowUnencrypted' = 'false' }
    Calls = New-Object System.Collections.ArrayList; Made = 0; Certificates = 0
}
$global:PolicyKey = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System'
$global:RecordKey = 'HKLM:\SOFTWARE\ninfer-fleet WinRM'

function Add-Note { param([string] $Text) [void] $global:Machine.Calls.Add($Text) }

function Assert-Running {
    if ($global:Machine.Status -ne 'Running') { throw 'The WinRM client cannot connect: the service does not run.' }
}

function Get-Service { param($Name) return [pscustomobject] @{ StartType = $global:Machine.StartType; Status = $global:Machine.Status } }
function Set-Service { param($Name, $StartupType) $global:Machine.StartType = $StartupType; Add-Note "Set-Service $StartupType" }
function Start-Service { param($Name) $global:Machine.Status = 'Running'; Add-Note 'Start-Service' }
function Stop-Service { param($Name, [switch] $Force) $global:Machine.Status = 'Stopped'; Add-Note 'Stop-Service' }

function New-Certificate {
    # One in the store My.
    param([string] $FriendlyName, [int] $FromDays = 0, [int] $ToDays = 365, [bool] $HasPrivateKey = $true)
    $global:Machine.Certificates++
    $number = $global:Machine.Certificates
    $made = [pscustomobject] @{
        Thumbprint = "AB$number"; FriendlyName = $FriendlyName; HasPrivateKey = $HasPrivateKey; RawData = [byte[]] @($number)
        NotBefore = (Get-Date).AddDays($FromDays); NotAfter = (Get-Date).AddDays($ToDays)
    }
    $global:Machine.My += $made
    return $made
}

function New-SelfSignedCertificate {
    param($DnsName, $CertStoreLocation, $FriendlyName, $NotAfter)
    $made = New-Certificate -FriendlyName $FriendlyName -FromDays -1
    # As Windows does: a copy without key and name among the intermediate authorities.
    $global:Machine.CA += [pscustomobject] @{ Thumbprint = $made.Thumbprint; FriendlyName = ''; HasPrivateKey = $false }
    Add-Note "New-SelfSignedCertificate $DnsName"
    return $made
}

function New-Listener {
    # One of somebody's; its thumbprint written as winrm.cmd lets it be written.
    param([string] $Transport, [string] $Address, [string] $Port, [string] $Thumbprint, [string] $HostName)
    $global:Machine.Made++
    $global:Machine.Listeners += [pscustomobject] @{
        Name = "Listener_$($global:Machine.Made)"; Keys = @("Transport=$Transport", "Address=$Address")
        Values = @{ Transport = $Transport; Address = $Address; Port = $Port; CertificateThumbprint = $Thumbprint; Hostname = $HostName }
    }
}

function Get-ChildItem {
    param($Path)
    if ($Path -eq 'Cert:\LocalMachine\My') { return $global:Machine.My }
    if ($Path -eq 'Cert:\LocalMachine\CA') { return $global:Machine.CA }
    Assert-Running
    if ($Path -eq 'WSMan:\localhost\Listener') { return $global:Machine.Listeners }
    $found = @($global:Machine.Listeners | Where-Object -FilterScript { $Path -eq "WSMan:\localhost\Listener\$($_.Name)" })
    if ($found.Count -ne 1) { throw "Get-ChildItem $Path" }
    foreach ($name in $found[0].Values.Keys) { [pscustomobject] @{ Name = $name; Value = $found[0].Values[$name] } }
}

function Test-Path {
    param($Path, $LiteralPath)
    if ([string] $Path -like 'Cert:*') { return @($global:Machine.My | Where-Object -FilterScript { $Path -eq "Cert:\LocalMachine\My\$($_.Thumbprint)" }).Count -eq 1 }
    return Microsoft.PowerShell.Management\Test-Path @PSBoundParameters
}

function Get-Item {
    [CmdletBinding()]
    param($Path, $LiteralPath)
    if ([string] $Path -notlike 'WSMan:*') { return Microsoft.PowerShell.Management\Get-Item @PSBoundParameters }
    Assert-Running
    return [pscustomobject] @{ Value = $global:Machine.Settings[$Path] }
}

function Set-Item {
    param($Path, $Value, [switch] $Force)
    Assert-Running
    $global:Machine.Settings[$Path] = ([string] $Value).ToLowerInvariant()
    Add-Note "Set-Item $Path $Value"
}

function New-Item {
    param($Path, $Transport, $Address, $Port, $CertificateThumbPrint, $HostName, [switch] $Force)
    if ($Path -notlike 'WSMan:*') { return Microsoft.PowerShell.Management\New-Item @PSBoundParameters }
    Assert-Running
    foreach ($one in $global:Machine.Listeners) {
        if ($one.Keys -contains "Transport=$Transport" -and $one.Keys -contains "Address=$Address") { throw 'The specified WS-Management listener already exists.' }
    }
    New-Listener -Transport $Transport -Address $Address -Port $Port -Thumbprint $CertificateThumbPrint -HostName $HostName
    Add-Note "New-Item $Transport $Address $Port $CertificateThumbPrint $HostName".TrimEnd()
}

function Remove-Item {
    param($Path, $LiteralPath, [switch] $Recurse, [switch] $Force, [switch] $DeleteKey)
    if ($LiteralPath) { Microsoft.PowerShell.Management\Remove-Item @PSBoundParameters; return }
    Add-Note "Remove-Item $Path$(if ($DeleteKey) { ' -DeleteKey' })"
    foreach ($store in 'My', 'CA') {
        $global:Machine[$store] = @($global:Machine[$store] | Where-Object -FilterScript { $Path -ne "Cert:\LocalMachine\$store\$($_.Thumbprint)" })
    }
    $global:Machine.Listeners = @($global:Machine.Listeners | Where-Object -FilterScript { $Path -ne "WSMan:\localhost\Listener\$($_.Name)" })
}

function Get-NetFirewallRule { [CmdletBinding()] param($Name) if ($global:Machine.Rules.ContainsKey($Name)) { return $global:Machine.Rules[$Name] } }
function New-NetFirewallRule {
    param($Name, $DisplayName, $Direction, $Action, $Protocol, $LocalPort, $RemoteAddress, $Profile)
    $global:Machine.Rules[$Name] = "$Direction $Action $Protocol $LocalPort $($RemoteAddress -join ',') $Profile"
    Add-Note "New-NetFirewallRule $Name"
}
function Set-NetFirewallRule {
    param($Name, $Direction, $Action, $Protocol, $LocalPort, $RemoteAddress, $Profile)
    $global:Machine.Rules[$Name] = "$Direction $Action $Protocol $LocalPort $($RemoteAddress -join ',') $Profile"
    Add-Note "Set-NetFirewallRule $Name"
}
function Remove-NetFirewallRule { param($Name) $global:Machine.Rules.Remove($Name); Add-Note "Remove-NetFirewallRule $Name" }

function Set-Policy {
    # LocalAccountTokenFilterPolicy as it was before anybody came; null: not there. Nothing is on record.
    param($Value)
    if (Test-Path -LiteralPath $global:RecordKey) { Microsoft.PowerShell.Management\Remove-Item -LiteralPath $global:RecordKey }
    if (Test-Path -LiteralPath $global:PolicyKey) { Microsoft.PowerShell.Management\Remove-Item -LiteralPath $global:PolicyKey -Recurse }
    $null = Microsoft.PowerShell.Management\New-Item -Path $global:PolicyKey -Force
    if ($null -ne $Value) { $null = New-ItemProperty -LiteralPath $global:PolicyKey -Name LocalAccountTokenFilterPolicy -PropertyType DWord -Value $Value }
}

function Write-Machine {
    # The whole state as one line of JSON; the notes begin anew.
    param([object[]] $Told)
    $state = @{
        Service = "$($global:Machine.StartType) $($global:Machine.Status)"; Rules = $global:Machine.Rules; Settings = $global:Machine.Settings
        Listeners = @($global:Machine.Listeners | ForEach-Object -Process { "$($_.Values.Transport) $($_.Values.Address) $($_.Values.Port) $($_.Values.CertificateThumbprint)" })
        My = @($global:Machine.My | ForEach-Object -Process { $_.Thumbprint }); CA = @($global:Machine.CA | ForEach-Object -Process { $_.Thumbprint })
        Policy = (Get-ItemProperty -LiteralPath $global:PolicyKey).LocalAccountTokenFilterPolicy
        Recorded = (Test-Path -LiteralPath $global:RecordKey); Calls = $global:Machine.Calls.ToArray(); Told = @($Told | ForEach-Object -Process { [string] $_ })
    }
    ConvertTo-Json -InputObject $state -Depth 4 -Compress
    $global:Machine.Calls.Clear()
}

function Invoke-Bootstrap {
    # Run the script and write the state after it; an error of it is its last line.
    $told = @()
    try { & C:\enable-winrm.ps1 @args | ForEach-Object -Process { $told += $_ } } catch { $told += "error: $($_.Exception.Message)" }
    Write-Machine -Told $told
}
