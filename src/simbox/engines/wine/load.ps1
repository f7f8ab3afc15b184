# Loads the stand-in of every noun into the session. Functions win over cmdlets of the same name, so scripts that
# know nothing of the simulator get these. A stand-in has only parameters that the cmdlet has in Windows PowerShell
# 5.1: a call that would fail there fails here.
# -Sync: write into the registry of the box what Windows would have written of what the simulator knows.
param([switch] $Sync)

$ErrorActionPreference = 'Stop'
# One folder a noun, two above this one; what all of them use lies here.
$nouns = [IO.Directory]::GetDirectories([IO.Path]::GetFullPath([IO.Path]::Combine($PSScriptRoot, '..\..')))
foreach ($folder in @($PSScriptRoot) + $nouns) {
    foreach ($file in [IO.Directory]::GetFiles($folder, '*.ps1')) {
        if ([IO.Path]::GetFileName($file) -ne 'load.ps1') { . $file }
    }
}
if ($Sync) {
    Sync-FirewallRegistry
    Sync-MachineEnvironment
    Sync-ComputerName
    Set-ProgramPrecedence
}
$ErrorActionPreference = 'Continue'
