# Run once on a new box, in an elevated Windows PowerShell 5.1: opens WinRM over HTTPS for the tailnet only.
# It may be run again. Prints the certificate fingerprint that inventory\fleet.yml pins.
# -WhatIf lists what it would do. -Undo takes away what it made and puts back what it changed; run it at the box, for
# it ends every connection through WinRM. -Replace takes the place of another HTTPS listener; -Undo brings that back.
[CmdletBinding(SupportsShouldProcess = $true)]
param(
    [string] $DnsName = $env:COMPUTERNAME,
    [int] $Port = 5986,
    [string[]] $RemoteAddress = @('100.64.0.0/10', 'fd7a:115c:a1e0::/48'),
    [switch] $Replace,
    [switch] $Undo
)
$ErrorActionPreference = 'Stop'

$identity = New-Object Security.Principal.WindowsPrincipal ([Security.Principal.WindowsIdentity]::GetCurrent())
if (-not $identity.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) {
    throw 'Run this in an elevated PowerShell (Run as administrator).'
}
# A 32-bit one would write the policy below where Windows does not look for it.
if (-not [Environment]::Is64BitProcess) {
    throw 'Run this in the 64-bit PowerShell, not in "Windows PowerShell (x86)".'
}

$friendlyName = 'ninfer-fleet WinRM'
# Not under the prefix ninfer-fleet-: a purge of our rules must never close the door we came through.
$ruleName = 'winrm-https-tailnet'
$policyKey = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System'
$policyName = 'LocalAccountTokenFilterPolicy'
# What was there before, for -Undo.
$recordKey = 'HKLM:\SOFTWARE\ninfer-fleet WinRM'
$listenerRoot = 'WSMan:\localhost\Listener'
$safeSettings = @('WSMan:\localhost\Service\Auth\Basic', 'WSMan:\localhost\Service\AllowUnencrypted')

function Invoke-Step {
    # One change, told as it is made; with -WhatIf only told.
    param([string] $Title, [scriptblock] $Change)
    if ($WhatIfPreference) { Write-Output "would $Title"; return }
    Write-Output $Title
    $null = & $Change
}

function Read-Record {
    param([string] $Name)
    $key = Get-Item -LiteralPath $recordKey -ErrorAction SilentlyContinue
    if ($null -eq $key) { return $null }
    return $key.GetValue($Name, $null)
}

function Write-Record {
    # The first value stays, unless told otherwise: a second run would take our own setting for what was there before.
    param([string] $Name, [string] $Value, [switch] $Newest)
    if (-not $Newest -and $null -ne (Read-Record -Name $Name)) { return }
    if (-not (Test-Path -LiteralPath $recordKey)) { $null = New-Item -Path $recordKey }
    $null = New-ItemProperty -LiteralPath $recordKey -Name $Name -PropertyType String -Value $Value -Force
}

function Get-OwnCertificate {
    # All that we made, the newest first.
    return Get-ChildItem -Path Cert:\LocalMachine\My | Where-Object -FilterScript { $_.FriendlyName -eq $friendlyName } |
        Sort-Object -Property NotBefore -Descending
}

function Get-UsableCertificate {
    # The newest of ours that a listener can answer with for some time yet.
    $now = Get-Date
    return Get-OwnCertificate | Where-Object -FilterScript { $_.HasPrivateKey -and $_.NotBefore -le $now -and $_.NotAfter -gt $now.AddDays(30) } |
        Select-Object -First 1
}

function Get-HttpsListener {
    # Own: it answers with a certificate that we made, or made once.
    $own = @(Get-OwnCertificate | ForEach-Object -Process { $_.Thumbprint }) + @(Read-Record -Name 'Thumbprint')
    foreach ($listener in @(Get-ChildItem -Path $listenerRoot | Where-Object -FilterScript { $_.Keys -contains 'Transport=HTTPS' })) {
        $path = "$listenerRoot\" + $listener.Name
        $values = @{}
        foreach ($item in @(Get-ChildItem -Path $path)) { $values[[string] $item.Name] = [string] $item.Value }
        $thumbprint = $values['CertificateThumbprint'] -replace '\s', ''
        [pscustomobject] @{
            Path = $path; Address = $values['Address']; Port = $values['Port']; HostName = $values['Hostname']
            Thumbprint = $thumbprint; Own = ($thumbprint -ne '' -and $thumbprint -in $own)
        }
    }
}

function New-HttpsListener {
    param([string] $OnPort, [string] $Thumbprint, [string] $HostName)
    $given = @{ Path = $listenerRoot; Transport = 'HTTPS'; Address = '*'; Port = [int] $OnPort; CertificateThumbPrint = $Thumbprint; Force = $true }
    if ($HostName) { $given['HostName'] = $HostName }
    $null = New-Item @given
}

function Start-WinRm {
    # The configuration can only be seen while the service runs.
    $service = Get-Service -Name WinRM
    $start = [string] $service.StartType
    $status = [string] $service.Status
    if ($start -ne 'Automatic') {
        Invoke-Step "let the service WinRM start by itself (so far: $start)" {
            Write-Record -Name 'StartType' -Value $start
            Set-Service -Name WinRM -StartupType Automatic
        }
    }
    if ($status -ne 'Running') {
        Invoke-Step 'start the service WinRM' {
            Write-Record -Name 'Status' -Value $status
            Start-Service -Name WinRM
        }
    }
}

function Restore-WinRm {
    $start = Read-Record -Name 'StartType'
    $status = Read-Record -Name 'Status'
    if ($null -ne $start) { Invoke-Step "set the start of the service WinRM to $start" { Set-Service -Name WinRM -StartupType $start } }
    if ($null -ne $status) { Invoke-Step 'stop the service WinRM' { Stop-Service -Name WinRM -Force } }
}

function Remove-Record {
    if (Test-Path -LiteralPath $recordKey) {
        Invoke-Step "forget what was there before ($recordKey)" { Remove-Item -LiteralPath $recordKey -Recurse }
    }
}

function Undo-Policy {
    $value = Read-Record -Name $policyName
    $now = Get-ItemProperty -LiteralPath $policyKey -Name $policyName -ErrorAction SilentlyContinue
    if ($null -eq $now -or $now.$policyName -ne 1) { return }
    if ($null -eq $value) {
        Write-Output "keep $policyName = 1: it is not on record that this script set it"
    } elseif ($value -eq 'absent') {
        Invoke-Step "remove $policyName" { Remove-ItemProperty -LiteralPath $policyKey -Name $policyName }
    } else {
        Invoke-Step "set $policyName to $value again" { Set-ItemProperty -LiteralPath $policyKey -Name $policyName -Value ([int] $value) }
    }
}

function Undo-Everything {
    $service = Get-Service -Name WinRM
    if ([string] $service.Status -ne 'Running') {
        throw 'The service WinRM does not run, so its listeners cannot be seen. Start it (Start-Service WinRM) and run this again.'
    }
    foreach ($rule in @(Get-NetFirewallRule -Name $ruleName -ErrorAction SilentlyContinue)) {
        Invoke-Step "remove the firewall rule $ruleName" { Remove-NetFirewallRule -Name $ruleName }
    }
    foreach ($setting in $safeSettings) {
        $value = Read-Record -Name $setting
        if ($null -ne $value) { Invoke-Step "set $setting to $value again" { Set-Item -Path $setting -Value $value -Force } }
    }
    Undo-Policy
    $listeners = @(Get-HttpsListener | Where-Object -FilterScript { $_.Own })
    $others = @(Get-ChildItem -Path $listenerRoot).Count - $listeners.Count
    foreach ($listener in $listeners) {
        Invoke-Step "remove the HTTPS listener on port $($listener.Port)" { Remove-Item -Path $listener.Path -Recurse -Force }
    }
    # Windows lays a copy of a certificate that it makes among the intermediate authorities.
    $own = @(Get-OwnCertificate | ForEach-Object -Process { $_.Thumbprint })
    foreach ($store in @('Cert:\LocalMachine\CA', 'Cert:\LocalMachine\My')) {
        foreach ($certificate in @(Get-ChildItem -Path $store | Where-Object -FilterScript { $_.Thumbprint -in $own })) {
            $path = "$store\" + $certificate.Thumbprint
            Invoke-Step "remove the certificate $path" {
                if ($certificate.HasPrivateKey) { Remove-Item -Path $path -DeleteKey } else { Remove-Item -Path $path }
            }
        }
    }
    $foreign = [string] (Read-Record -Name 'Replaced')
    $parts = $foreign.Split([char] ' ')
    if ($foreign -and -not (Test-Path -Path ('Cert:\LocalMachine\My\' + $parts[1]))) {
        Write-Output "cannot bring back the HTTPS listener on port $($parts[0]): its certificate $($parts[1]) is gone"
    } elseif ($foreign) {
        $others++
        Invoke-Step "bring back the HTTPS listener on port $($parts[0]) with the certificate $($parts[1])" {
            New-HttpsListener -OnPort $parts[0] -Thumbprint $parts[1] -HostName $parts[2]
        }
    }
    if ($others -eq 0) {
        Restore-WinRm
    } elseif ($null -ne (Read-Record -Name 'StartType') -or $null -ne (Read-Record -Name 'Status')) {
        Write-Output 'keep the service WinRM running: other listeners are there'
    }
    Remove-Record
}

if ($Undo) {
    Undo-Everything
    return
}

$known = Test-Path -LiteralPath $recordKey
Start-WinRm
# With -WhatIf a service that does not run was not started, and has nothing to show.
$seen = @()
if ([string] (Get-Service -Name WinRM).Status -eq 'Running') { $seen = @(Get-HttpsListener | Where-Object -FilterScript { $_.Address -eq '*' }) }
$foreign = @($seen | Where-Object -FilterScript { -not $_.Own })
if ($foreign.Count -gt 0 -and -not $Replace) {
    # What an earlier run put on record is still needed.
    if (-not $known) { Restore-WinRm; Remove-Record }
    throw ("There is an HTTPS listener of WinRM already, on port $($foreign[0].Port) with the certificate $($foreign[0].Thumbprint), which this script " +
        'did not make; nothing was changed. Use that one (fleet.yml can pin its certificate), or run this again with -Replace to take its place.')
}

$certificate = Get-UsableCertificate
if ($null -eq $certificate) {
    Invoke-Step "make a certificate for $DnsName" {
        New-SelfSignedCertificate -DnsName $DnsName -CertStoreLocation Cert:\LocalMachine\My -FriendlyName $friendlyName -NotAfter (Get-Date).AddYears(5)
    }
    $certificate = Get-UsableCertificate
}
$fits = @($seen | Where-Object -FilterScript { $null -ne $certificate -and $_.Thumbprint -eq $certificate.Thumbprint -and $_.Port -eq [string] $Port })
if ($fits.Count -eq 0) {
    foreach ($listener in $seen) {
        Invoke-Step "remove the HTTPS listener on port $($listener.Port) with the certificate $($listener.Thumbprint)" {
            if (-not $listener.Own) { Write-Record -Name 'Replaced' -Value "$($listener.Port) $($listener.Thumbprint) $($listener.HostName)" }
            Remove-Item -Path $listener.Path -Recurse -Force
        }
    }
    Invoke-Step "make an HTTPS listener on port $Port" {
        Write-Record -Name 'Thumbprint' -Value $certificate.Thumbprint -Newest
        New-HttpsListener -OnPort ([string] $Port) -Thumbprint $certificate.Thumbprint
    }
}

# NTLM stays, Basic and plain bodies stay off (the defaults of Windows, stated).
foreach ($setting in $safeSettings) {
    if ($WhatIfPreference -and [string] (Get-Service -Name WinRM).Status -ne 'Running') { continue }
    $value = [string] (Get-Item -Path $setting).Value
    if ($value -eq 'false') { continue }
    Invoke-Step "set $setting to false (so far: $value)" {
        Write-Record -Name $setting -Value $value
        Set-Item -Path $setting -Value $false -Force
    }
}

# Without this a local administrator gets a filtered token over the network and nothing can be provisioned.
$policy = Get-ItemProperty -LiteralPath $policyKey -Name $policyName -ErrorAction SilentlyContinue
$value = 'absent'
if ($null -ne $policy) { $value = [string] $policy.$policyName }
if ($value -ne '1') {
    Invoke-Step "set $policyName to 1 (so far: $value)" {
        Write-Record -Name $policyName -Value $value
        $null = New-ItemProperty -LiteralPath $policyKey -Name $policyName -PropertyType DWord -Value 1 -Force
    }
}

$rule = @{
    DisplayName = 'WinRM HTTPS (tailnet)'
    Direction = 'Inbound'
    Action = 'Allow'
    Protocol = 'TCP'
    LocalPort = $Port
    RemoteAddress = $RemoteAddress
    Profile = 'Any'
}
if (@(Get-NetFirewallRule -Name $ruleName -ErrorAction SilentlyContinue).Count -eq 0) {
    Invoke-Step "open TCP port $Port to $($RemoteAddress -join ', ') (firewall rule $ruleName)" { New-NetFirewallRule -Name $ruleName @rule }
} else {
    $rule.Remove('DisplayName')
    Invoke-Step "state the firewall rule $ruleName again" { Set-NetFirewallRule -Name $ruleName @rule }
}

if ($null -ne $certificate) {
    $sha256 = [Security.Cryptography.SHA256]::Create()
    $digest = ([BitConverter]::ToString($sha256.ComputeHash($certificate.RawData)) -replace '-', '').ToLowerInvariant()
    Write-Output ('certificate_sha256: ' + $digest)
}
