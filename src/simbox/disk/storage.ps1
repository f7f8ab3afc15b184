# The Storage module, as far as it leads from a path to a disk.

function Get-Volume {
    [CmdletBinding(DefaultParameterSetName = 'ByDriveLetter')]
    param(
        [Parameter(ParameterSetName = 'ByDriveLetter', Position = 0)] [char[]] $DriveLetter,
        [Parameter(ParameterSetName = 'ByFilePath')] [string] $FilePath
    )
    if ($PSCmdlet.ParameterSetName -eq 'ByFilePath') { $DriveLetter = @([IO.Path]::GetFullPath($FilePath)[0]) }
    foreach ($row in Invoke-Simulator disk.topology) {
        if ($DriveLetter -and $row.DriveLetter -notin @($DriveLetter | ForEach-Object { "$_" })) { continue }
        [pscustomobject] @{
            PSTypeName = 'Microsoft.Management.Infrastructure.CimInstance#ROOT/Microsoft/Windows/Storage/MSFT_Volume'
            DriveLetter = [char] $row.DriveLetter; FileSystemLabel = $row.Label; FileSystem = $row.FileSystem
            FileSystemType = $row.FileSystem; DriveType = 'Fixed'
            Size = [uint64] $row.SizeBytes; SizeRemaining = [uint64] $row.FreeBytes
        }
    }
}

function Get-Partition {
    [CmdletBinding(DefaultParameterSetName = 'ByDriveLetter')]
    param(
        [Parameter(ParameterSetName = 'ByDriveLetter')] [char[]] $DriveLetter,
        [Parameter(ParameterSetName = 'ByVolume', ValueFromPipeline)] [object] $Volume
    )
    if ($Volume) { $DriveLetter = @($Volume.DriveLetter) }
    foreach ($row in Invoke-Simulator disk.topology) {
        if ($DriveLetter -and $row.DriveLetter -notin @($DriveLetter | ForEach-Object { "$_" })) { continue }
        [pscustomobject] @{
            DriveLetter = [char] $row.DriveLetter; DiskNumber = [uint32] $row.DiskNumber
            PartitionNumber = [uint32] $row.PartitionNumber; Size = [uint64] $row.SizeBytes
        }
    }
}

function Get-DiskRow {
    Invoke-Simulator disk.topology | Sort-Object DiskNumber -Unique
}

function Get-Disk {
    [CmdletBinding()]
    param([Parameter(Position = 0)] [uint32[]] $Number)
    foreach ($row in Get-DiskRow) {
        if ($PSBoundParameters.ContainsKey('Number') -and [uint32] $row.DiskNumber -notin $Number) { continue }
        [pscustomobject] @{
            Number = [uint32] $row.DiskNumber; FriendlyName = $row.Model; Model = $row.Model; BusType = $row.BusType
            Size = [uint64] $row.DiskSizeBytes
        }
    }
}

function Get-VirtualDisk {
    [CmdletBinding()]
    param([object] $Disk)
    foreach ($row in Get-DiskRow) {
        if ($row.BusType -ne 'Spaces' -or ($Disk -and $row.DiskNumber -ne $Disk.Number)) { continue }
        [pscustomobject] @{ FriendlyName = $row.Model; Number = [uint32] $row.DiskNumber }
    }
}

function Get-PhysicalDisk {
    # The simulator keeps no disks behind a storage space, so a space has none.
    [CmdletBinding()]
    param([object] $VirtualDisk)
    if ($VirtualDisk) { return }
    foreach ($row in Get-DiskRow) {
        [pscustomobject] @{
            DeviceId = [string] $row.DiskNumber; FriendlyName = $row.Model; BusType = $row.BusType
            MediaType = $row.MediaType; Size = [uint64] $row.DiskSizeBytes
        }
    }
}
