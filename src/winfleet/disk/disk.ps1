# From a path to the device that holds it.

function Resolve-ExistingPath {
    # The nearest existing ancestor of Path with every junction and link on the way replaced by its target; each
    # replacement is added to Chain.
    param([string] $Path, [System.Collections.Generic.List[string]] $Chain)
    $current = [System.IO.Path]::GetFullPath($Path)
    while (-not [System.IO.Directory]::Exists($current) -and -not [System.IO.File]::Exists($current)) {
        $parent = [System.IO.Path]::GetDirectoryName($current)
        if ([string]::IsNullOrEmpty($parent)) { throw "no part of $Path exists" }
        $current = $parent
    }
    # From the root downwards, beginning again after each link; 32 is far beyond any sane chain.
    for ($step = 0; $step -lt 32; $step++) {
        $root = [System.IO.Path]::GetPathRoot($current)
        $walked = $root
        $replaced = $null
        foreach ($part in $current.Substring($root.Length).Split([char[]] '\', [StringSplitOptions]::RemoveEmptyEntries)) {
            $walked = [System.IO.Path]::Combine($walked, $part)
            $attributes = [System.IO.File]::GetAttributes($walked)
            if (($attributes -band [System.IO.FileAttributes]::ReparsePoint) -eq 0) { continue }
            $item = Get-Item -LiteralPath $walked -Force
            if ([string]::IsNullOrEmpty($item.LinkType) -or @($item.Target).Count -eq 0) { continue }
            $target = [string] @($item.Target)[0]
            if ($target -match '^(\\\\\?\\)?Volume\{') { continue } # a mount point: Get-Volume knows it
            if (-not [System.IO.Path]::IsPathRooted($target)) {
                $target = [System.IO.Path]::Combine([System.IO.Path]::GetDirectoryName($walked), $target)
            }
            $Chain.Add("$walked -> $target ($($item.LinkType))")
            $replaced = [System.IO.Path]::GetFullPath($target + $current.Substring($walked.Length))
            break
        }
        if ($null -eq $replaced) { return $current }
        $current = $replaced
    }
    throw "links of $Path lead in a circle"
}

function Get-DiskOfVolume {
    # The disk of a volume (Get-Volume's object), its media type, and how it was found.
    param([object] $Volume, [System.Collections.Generic.List[string]] $Chain)
    $partition = @(Get-Partition -Volume $Volume)[0]
    $disk = @(Get-Disk -Number $partition.DiskNumber)[0]
    $answer = [pscustomobject] @{
        BusType = [string] $disk.BusType; MediaType = $null; Model = ([string] $disk.FriendlyName).Trim()
    }
    $Chain.Add("partition $($partition.PartitionNumber) of disk $($disk.Number)")
    $Chain.Add("disk $($disk.Number) $($answer.Model), bus $($answer.BusType)")
    if ($answer.BusType -in @('Spaces', 'Storage Spaces')) {
        # A storage space hides the real disks; it is as fast as the slowest of them.
        $physical = @(Get-VirtualDisk -Disk $disk | ForEach-Object -Process { Get-PhysicalDisk -VirtualDisk $_ })
        foreach ($one in $physical) { $Chain.Add("space on $($one.FriendlyName), bus $([string] $one.BusType)") }
        $buses = @($physical | ForEach-Object -Process { [string] $_.BusType } | Sort-Object -Unique)
        if ($buses.Count -eq 1) { $answer.BusType = $buses[0] }
    } else {
        # DeviceId is text there and a number here.
        $physical = @(Get-PhysicalDisk | Where-Object -FilterScript { [string] $_.DeviceId -eq [string] $disk.Number })
    }
    if ($physical.Count -gt 0) { $answer.MediaType = [string] $physical[0].MediaType }
    return $answer
}

function Get-DiskOfPath {
    param([string] $Path)
    $answer = [pscustomobject] @{
        Path = $Path; ExistingPath = $null; Root = $null; DriveType = $null; FileSystem = $null; SizeBytes = $null
        FreeBytes = $null; BusType = $null; MediaType = $null; Model = $null; Chain = @(); Error = $null
    }
    $chain = New-Object System.Collections.Generic.List[string]
    try {
        $answer.ExistingPath = Resolve-ExistingPath -Path $Path -Chain $chain
        $answer.Root = [System.IO.Path]::GetPathRoot($answer.ExistingPath)
        if ($answer.Root.StartsWith('\\', [StringComparison]::Ordinal)) {
            $answer.DriveType = 'Network'
        } else {
            # By path, not by letter: the volume may be mounted in a folder.
            $volume = @(Get-Volume -FilePath $answer.ExistingPath -ErrorAction SilentlyContinue)[0]
            if ($null -eq $volume) { $volume = @(Get-Volume -DriveLetter $answer.Root[0])[0] }
            $answer.DriveType = [string] $volume.DriveType
            $answer.FileSystem = [string] $volume.FileSystem
            $answer.SizeBytes = [long] $volume.Size
            $answer.FreeBytes = [long] $volume.SizeRemaining
            $chain.Add("volume $($answer.Root) $($answer.FileSystem)")
            $disk = Get-DiskOfVolume -Volume $volume -Chain $chain
            $answer.BusType = $disk.BusType
            $answer.MediaType = $disk.MediaType
            $answer.Model = $disk.Model
        }
    } catch {
        $answer.Error = (Get-InnermostException -ErrorRecord $_).Message
    }
    $answer.Chain = $chain.ToArray()
    return $answer
}

function Get-BoxDisk {
    param([string[]] $Path)
    $answers = @(foreach ($one in $Path) { Get-DiskOfPath -Path $one })
    return , @($answers)
}
