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
    [CmdletBinding()]
    param(
        [Parameter(ParameterSetName = 'Path', Mandatory, Position = 0, ValueFromPipeline)] [string[]] $Path,
        [Parameter(ParameterSetName = 'LiteralPath', Mandatory)] [string[]] $LiteralPath,
        [switch] $Force
    )
    process {
        if ($LiteralPath.Count -eq 1) {
            # A junction whose target is gone is there on Windows and is nothing for Wine.
            $link = [IO.Path]::IsPathRooted($LiteralPath[0]) -and $LiteralPath[0] -notmatch '^HK' ?
                (Invoke-Simulator junction.target @{ path = $LiteralPath[0] }) : $null
            if ($null -ne $link) { return ConvertTo-JunctionItem -Path $LiteralPath[0] -Target $link }
        }
        foreach ($item in @(Microsoft.PowerShell.Management\Get-Item @PSBoundParameters)) {
            if ($item -is [IO.DirectoryInfo] -and ($item.Attributes -band [IO.FileAttributes]::ReparsePoint)) {
                $link = Invoke-Simulator junction.target @{ path = $item.FullName }
                if ($null -ne $link) { $item = ConvertTo-JunctionItem -Path $item.FullName -Target $link }
            }
            $item
        }
    }
}

function ConvertTo-JunctionItem {
    # The DirectoryInfo of a junction whose members act on the junction itself.
    param([string] $Path, [string] $Target)
    $item = [IO.DirectoryInfo]::new($Path)
    $members = @{
        LinkType = 'Junction'
        Target = [string[]] @($Target)
        Exists = $true
        Attributes = [IO.FileAttributes] 'Directory, ReparsePoint'
    }
    foreach ($name in $members.Keys) {
        Add-Member -InputObject $item -MemberType NoteProperty -Name $name -Value $members[$name] -Force
    }
    Add-Member -InputObject $item -MemberType ScriptMethod -Name Delete -Force -Value {
        [void] (Invoke-Simulator junction.remove @{ path = $this.FullName })
    }
    Add-Member -InputObject $item -MemberType ScriptMethod -Name MoveTo -Force -Value {
        param([string] $destination)
        [void] (Invoke-Simulator junction.move @{ path = $this.FullName; destination = $destination })
    }
    return $item
}
