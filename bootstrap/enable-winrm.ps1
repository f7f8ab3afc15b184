# Run once on a new box, in an elevated Windows PowerShell 5.1: opens WinRM over HTTPS for the tailnet only.
# It may be run again. Prints the certificate fingerprint that inventory\fleet.yml pins.
[CmdletBinding()]
param(
    [string] $DnsName = $env:COMPUTERNAME,
    [int] $Port = 5986,
    [string[]] $RemoteAddress = @('100.64.0.0/10', 'fd7a:115c:a1e0::/48')
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

Set-Service -Name WinRM -StartupType Automatic
Start-Service -Name WinRM

# One certificate for this purpose, found again by its friendly name on a second run.
$certificate = Get-ChildItem -Path Cert:\LocalMachine\My |
    Where-Object { $_.FriendlyName -eq 'ninfer-fleet WinRM' -and $_.NotAfter -gt (Get-Date).AddDays(30) } |
    Select-Object -First 1
if ($null -eq $certificate) {
    $certificate = New-SelfSignedCertificate -DnsName $DnsName -CertStoreLocation Cert:\LocalMachine\My `
        -FriendlyName 'ninfer-fleet WinRM' -NotAfter (Get-Date).AddYears(5)
}

# The listener answers with the newest of our certificates.
$listeners = @(Get-ChildItem -Path WSMan:\localhost\Listener | Where-Object { $_.Keys -contains 'Transport=HTTPS' })
foreach ($listener in $listeners) {
    Remove-Item -Path ('WSMan:\localhost\Listener\' + $listener.Name) -Recurse -Force
}
$null = New-Item -Path WSMan:\localhost\Listener -Transport HTTPS -Address * -Port $Port `
    -CertificateThumbPrint $certificate.Thumbprint -Force

# NTLM stays, Basic and plain bodies stay off (the defaults of Windows, stated).
Set-Item -Path WSMan:\localhost\Service\Auth\Basic -Value $false -Force
Set-Item -Path WSMan:\localhost\Service\AllowUnencrypted -Value $false -Force

# Without this a local administrator gets a filtered token over the network and nothing can be provisioned.
$policy = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System'
$null = New-ItemProperty -Path $policy -Name LocalAccountTokenFilterPolicy -PropertyType DWord -Value 1 -Force

# Not under the prefix ninfer-fleet-: a purge of our rules must never close the door we came through.
$rule = @{
    DisplayName = 'WinRM HTTPS (tailnet)'
    Direction = 'Inbound'
    Action = 'Allow'
    Protocol = 'TCP'
    LocalPort = $Port
    RemoteAddress = $RemoteAddress
    Profile = 'Any'
}
if (@(Get-NetFirewallRule -Name 'winrm-https-tailnet' -ErrorAction SilentlyContinue).Count -eq 0) {
    $null = New-NetFirewallRule -Name 'winrm-https-tailnet' @rule
}
else {
    $rule.Remove('DisplayName')
    Set-NetFirewallRule -Name 'winrm-https-tailnet' @rule
}

$sha256 = [Security.Cryptography.SHA256]::Create()
$digest = ([BitConverter]::ToString($sha256.ComputeHash($certificate.RawData)) -replace '-', '').ToLowerInvariant()
Write-Output ('certificate_sha256: ' + $digest)
