# Junctions. Wine shows a Unix symlink as a reparse point but neither makes one nor says where it leads, and renames
# or deletes what it leads to: so the simulator does these.

function New-Item {
    [CmdletBinding(SupportsShouldProcess, DefaultParameterSetName = 'pathSet')]
    param(
        [Parameter(ParameterSetName = 'nameSet', Position = 0)] [Parameter(ParameterSetName = 'pathSet', Mandatory, Position = 0)] [string[]] $Path,
        [Parameter(ParameterSetName = 'nameSet', Mandatory)] [string] $Name,
        [string] $ItemType, [object] $Value, [switch] $Force
    )
    if ($ItemType -ne 'Junction') { return Microsoft.PowerShell.Management\New-Item @PSBoundParameters }
    $full = [IO.Path]::GetFullPath($Name ? [IO.Path]::Combine("$Path", $Name) : "$Path")
    [void] (Invoke-Simulator junction.create @{ path = $full; target = [IO.Path]::GetFullPath([string] $Value) })
    Get-Item -LiteralPath $full -Force
}

function Get-Item {
    # A junction whose target is gone is there on Windows and is nothing for Wine.
    [CmdletBinding()]
    param(
        [Parameter(ParameterSetName = 'Path', Mandatory, Position = 0, ValueFromPipeline)] [string[]] $Path,
        [Parameter(ParameterSetName = 'LiteralPath', Mandatory)] [string[]] $LiteralPath,
        [switch] $Force
    )
    process {
        if ($LiteralPath.Count -eq 1 -and $LiteralPath[0] -match '^[A-Za-z]:\\' -and -not (Test-Path -LiteralPath $LiteralPath[0])) {
            if ($null -ne (Get-JunctionTarget -Path $LiteralPath[0])) {
                $attributes = [IO.FileAttributes] 'Directory, ReparsePoint'
                return [IO.DirectoryInfo]::new($LiteralPath[0]) |
                    Add-Member -NotePropertyName Attributes -NotePropertyValue $attributes -Force -PassThru |
                    Add-Member -NotePropertyName Exists -NotePropertyValue $true -Force -PassThru
            }
        }
        Microsoft.PowerShell.Management\Get-Item @PSBoundParameters
    }
}

function Get-JunctionTarget {
    # Where the junction of that name leads, or nothing.
    param([string] $Path)
    return Invoke-Simulator junction.target @{ path = $Path }
}

# What every DirectoryInfo says and does, however it was got.
$members = @{
    LinkType = @('ScriptProperty', { if ($null -ne (Get-JunctionTarget -Path $this.FullName)) { 'Junction' } })
    Target = @('ScriptProperty', {
        $target = Get-JunctionTarget -Path $this.FullName
        if ($null -ne $target) { , [string[]] @($target) }
    })
    Delete = @('ScriptMethod', {
        if ($null -ne (Get-JunctionTarget -Path $this.FullName)) {
            [void] (Invoke-Simulator junction.remove @{ path = $this.FullName })
        } else { $this.psbase.Delete() }
    })
    MoveTo = @('ScriptMethod', {
        param([string] $destination)
        if ($null -ne (Get-JunctionTarget -Path $this.FullName)) {
            [void] (Invoke-Simulator junction.move @{ path = $this.FullName; destination = $destination })
        } else { $this.psbase.MoveTo($destination) }
    })
}
foreach ($name in $members.Keys) {
    Update-TypeData -TypeName System.IO.DirectoryInfo -MemberName $name -MemberType $members[$name][0] -Value $members[$name][1] -Force
}
