# Folders: what is in them, making, removing, renaming.

function Get-BoxChildItem {
    param([Parameter(Mandatory = $true)] [string] $Path, [bool] $Recurse = $false, [bool] $Hash = $false)
    $full = Resolve-FilePath -Path $Path
    if (-not [System.IO.Directory]::Exists($full)) { return [pscustomobject] @{ Exists = $false; Items = @() } }
    $items = New-Object System.Collections.ArrayList
    Add-ChildItem -Folder $full -Prefix '' -Recurse $Recurse -Hash $Hash -Items $items
    return [pscustomobject] @{ Exists = $true; Items = $items.ToArray() }
}

function Get-FolderEntry {
    # The entries of one folder by name. A reparse point is looked at again, for it alone says where it leads.
    param([string] $Folder)
    $entries = @((New-Object System.IO.DirectoryInfo -ArgumentList $Folder).GetFileSystemInfos() | Sort-Object -Property Name)
    return , @(foreach ($entry in $entries) {
        if ($entry.Attributes -band [System.IO.FileAttributes]::ReparsePoint) {
            $item = Get-PathItem -Path $entry.FullName
            if ($null -ne $item) { $entry = $item }
        }
        $entry
    })
}

function Add-ChildItem {
    # Junctions are listed, never entered.
    param([string] $Folder, [string] $Prefix, [bool] $Recurse, [bool] $Hash, [System.Collections.ArrayList] $Items)
    foreach ($entry in (Get-FolderEntry -Folder $Folder)) {
        $kind = Get-ItemKind -Item $entry
        $size = $null
        $sum = $null
        if ($entry -is [System.IO.FileInfo]) {
            $size = [long] $entry.Length
            if ($Hash) { $sum = Get-FileSum -Path $entry.FullName }
        }
        [void] $Items.Add([pscustomobject] @{
            Name = $Prefix + $entry.Name; Kind = $kind; SizeBytes = $size; Sha256 = $sum
            LastWriteTimeUtc = $entry.LastWriteTimeUtc.ToString('o')
        })
        if ($Recurse -and $kind -eq 'directory') {
            Add-ChildItem -Folder $entry.FullName -Prefix ($Prefix + $entry.Name + '\') -Recurse $true -Hash $Hash -Items $Items
        }
    }
}

function New-BoxDirectory {
    param([Parameter(Mandatory = $true)] [string[]] $Path)
    $created = New-Object System.Collections.ArrayList
    foreach ($one in $Path) {
        $full = Resolve-FilePath -Path $one
        if ([System.IO.Directory]::Exists($full)) { continue }
        [void] [System.IO.Directory]::CreateDirectory($full)
        [void] $created.Add($one)
    }
    return [pscustomobject] @{ Created = $created.ToArray() }
}

function Remove-BoxItem {
    param([Parameter(Mandatory = $true)] [string[]] $Path, [bool] $Recurse = $false)
    # One that is refused keeps all of them.
    foreach ($one in $Path) { [void] (Assert-ChangeablePath -Path $one -Done 'removed') }
    $removed = New-Object System.Collections.ArrayList
    foreach ($one in $Path) {
        $item = Get-PathItem -Path (Resolve-FilePath -Path $one).TrimEnd([char] '\')
        if ($null -eq $item) { continue }
        Remove-OneItem -Item $item -Recurse $Recurse
        [void] $removed.Add($one)
    }
    return [pscustomobject] @{ Removed = $removed.ToArray() }
}

function Remove-OneItem {
    param([object] $Item, [bool] $Recurse)
    switch (Get-ItemKind -Item $Item) {
        'file' { Remove-OneFile -Path $Item.FullName }
        'directory' {
            if ($Recurse) {
                foreach ($entry in (Get-FolderEntry -Folder $Item.FullName)) { Remove-OneItem -Item $entry -Recurse $true }
            }
            [System.IO.Directory]::Delete($Item.FullName, $false)
        }
        # The item's own Delete removes the link, never what it leads to.
        default { $Item.Delete() }
    }
}

function Remove-OneFile {
    param([string] $Path)
    $wasReadOnly = Set-ReadOnly -Path $Path -Wanted $false
    try {
        [System.IO.File]::Delete($Path)
    } catch {
        if ($wasReadOnly) { [void] (Set-ReadOnly -Path $Path -Wanted $true) }
        throw
    }
}

function Move-BoxItem {
    param([Parameter(Mandatory = $true)] [string] $Path, [Parameter(Mandatory = $true)] [string] $Destination)
    $item = Get-PathItem -Path (Assert-ChangeablePath -Path $Path -Done 'moved')
    if ($null -eq $item) {
        throw (New-Object -TypeName System.IO.FileNotFoundException -ArgumentList "Could not find '$Path'.")
    }
    $item.MoveTo((Resolve-FilePath -Path $Destination))
    return [pscustomobject] @{ Moved = $true }
}
