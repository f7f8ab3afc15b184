# Files: what is there, parts of them, writing and replacing.

function Resolve-FilePath {
    # The full path, fit for .NET's file classes; beyond 247 characters with the prefix that lifts the limit.
    param([string] $Path)
    if ($Path.StartsWith('\\?\', [StringComparison]::Ordinal)) { return $Path }
    if ($Path -notmatch '^([A-Za-z]:[\\/]|\\\\[^\\?.])') {
        throw (New-WireFault -Type 'BadRequest' -Message "'$Path' is no full path such as C:\folder\name")
    }
    # .NET Framework refuses to look at a longer one without the prefix, and does not resolve . and .. behind it.
    if ($Path.Length -lt 248) { return [System.IO.Path]::GetFullPath($Path) }
    $long = $Path.Replace([char] '/', [char] '\')
    if ($long.StartsWith('\\', [StringComparison]::Ordinal)) { return '\\?\UNC\' + $long.Substring(2) }
    return '\\?\' + $long
}

function Get-PathItem {
    # The item itself, not what it leads to; null when there is none.
    param([string] $Path)
    if ($Path.StartsWith('\\?\', [StringComparison]::Ordinal)) {
        if ([System.IO.Directory]::Exists($Path)) { return New-Object System.IO.DirectoryInfo -ArgumentList $Path }
        if ([System.IO.File]::Exists($Path)) { return New-Object System.IO.FileInfo -ArgumentList $Path }
        return $null
    }
    try {
        return Get-Item -LiteralPath $Path -Force -ErrorAction Stop
    } catch [System.Management.Automation.ItemNotFoundException], [System.Management.Automation.DriveNotFoundException] {
        return $null
    }
}

function Get-ItemKind {
    # absent, file, directory, junction or symboliclink.
    param([object] $Item)
    if ($null -eq $Item) { return 'absent' }
    if ($Item.Attributes -band [System.IO.FileAttributes]::ReparsePoint) {
        # Other reparse points (OneDrive, deduplication) are plain files and folders to a program.
        if ([string] $Item.LinkType -eq 'Junction') { return 'junction' }
        if ([string] $Item.LinkType -eq 'SymbolicLink') { return 'symboliclink' }
    }
    if ($Item -is [System.IO.DirectoryInfo]) { return 'directory' }
    return 'file'
}

function Open-FileForReading {
    # Others may write, rename and delete meanwhile. (`new`, not New-Object: a constructor that fails inside New-Object
    # leaves .NET spinning under Wine.)
    param([string] $Path)
    $share = [System.IO.FileShare] 'ReadWrite, Delete'
    return [System.IO.FileStream]::new($Path, ([System.IO.FileMode]::Open), ([System.IO.FileAccess]::Read), $share, 1048576)
}

function Get-FileSum {
    # SHA-256 of a file, lower case hexadecimal.
    param([string] $Path)
    $sum = [System.Security.Cryptography.SHA256]::Create()
    $stream = Open-FileForReading -Path $Path
    try {
        return ([BitConverter]::ToString($sum.ComputeHash($stream)) -replace '-', '').ToLowerInvariant()
    } finally {
        $stream.Dispose()
        $sum.Dispose()
    }
}

function Get-BoxFile {
    param([Parameter(Mandatory = $true)] [string[]] $Path, [bool] $Hash = $false, [long] $MaxContentBytes = -1)
    $answers = @(for ($at = 0; $at -lt $Path.Length; $at++) {
        if ($Hash -and $Path.Length -gt 1) { Write-WireProgress -Activity 'hash' -Done $at -Total $Path.Length }
        Get-FileAnswer -Path $Path[$at] -Hash $Hash -MaxContentBytes $MaxContentBytes
    })
    return , @($answers)
}

function Get-FileAnswer {
    param([string] $Path, [bool] $Hash, [long] $MaxContentBytes)
    $answer = [pscustomobject] @{
        Path = $Path; Kind = 'absent'; SizeBytes = $null; Sha256 = $null; Attributes = @(); LastWriteTimeUtc = $null
        Target = $null; ContentBase64 = $null; Error = $null
    }
    try {
        $full = Resolve-FilePath -Path $Path
        $item = Get-PathItem -Path $full
        $answer.Kind = Get-ItemKind -Item $item
        if ($answer.Kind -eq 'absent') { return $answer }
        $answer.Attributes = @(([string] $item.Attributes).Split([string[]] @(', '), [StringSplitOptions]::None))
        $answer.LastWriteTimeUtc = $item.LastWriteTimeUtc.ToString('o')
        if ($answer.Kind -eq 'junction' -or $answer.Kind -eq 'symboliclink') { $answer.Target = [string] @($item.Target)[0] }
        if ($item -is [System.IO.DirectoryInfo]) { return $answer }
        $answer.SizeBytes = [long] $item.Length
        if ($Hash) { $answer.Sha256 = Get-FileSum -Path $full }
        if ($item.Length -le $MaxContentBytes) { $answer.ContentBase64 = Read-FileBase64 -Path $full }
    } catch {
        $answer.Error = ConvertTo-WireError -ErrorRecord $_ -Command 'Get-BoxFile'
    }
    return $answer
}

function Read-FileBase64 {
    param([string] $Path)
    $stream = Open-FileForReading -Path $Path
    try {
        $all = New-Object System.IO.MemoryStream
        $stream.CopyTo($all)
        return [Convert]::ToBase64String($all.ToArray())
    } finally {
        $stream.Dispose()
    }
}

function Get-BoxFilePart {
    param([Parameter(Mandatory = $true)] [string] $Path, [long] $OffsetBytes = 0, [Parameter(Mandatory = $true)] [int] $LengthBytes)
    $full = Resolve-FilePath -Path $Path
    $stream = Open-FileForReading -Path $full
    try {
        $size = $stream.Length
        [void] $stream.Seek($OffsetBytes, [System.IO.SeekOrigin]::Begin)
        $buffer = New-Object byte[] -ArgumentList $LengthBytes
        $have = 0
        while ($have -lt $LengthBytes) {
            $got = $stream.Read($buffer, $have, $LengthBytes - $have)
            if ($got -le 0) { break }
            $have += $got
        }
    } finally {
        $stream.Dispose()
    }
    if ($have -lt $LengthBytes) { [Array]::Resize([ref] $buffer, $have) }
    Set-WirePayload -Bytes $buffer
    return [pscustomobject] @{
        OffsetBytes = $OffsetBytes; SizeBytes = $size
        LastWriteTimeUtc = [System.IO.File]::GetLastWriteTimeUtc($full).ToString('o')
    }
}

function ConvertFrom-Payload {
    # The bytes that were meant: none sent is an empty content.
    param([byte[]] $Payload, [string] $Encoding)
    if ($null -eq $Payload) { $Payload = New-Object byte[] -ArgumentList 0 }
    if ($Encoding -eq 'none') { return , $Payload }
    if ($Encoding -ne 'gzip') { throw (New-WireFault -Type 'BadRequest' -Message "'$Encoding' is no encoding; none and gzip are") }
    $packed = New-Object System.IO.MemoryStream -ArgumentList (, $Payload)
    $zip = New-Object System.IO.Compression.GZipStream -ArgumentList $packed, ([System.IO.Compression.CompressionMode]::Decompress)
    $plain = New-Object System.IO.MemoryStream
    $zip.CopyTo($plain)
    return , $plain.ToArray()
}

function Write-BoxFilePart {
    param(
        [Parameter(Mandatory = $true)] [string] $TemporaryPath, [Parameter(Mandatory = $true)] [long] $OffsetBytes,
        [string] $Encoding = 'none', [byte[]] $Payload
    )
    $bytes = ConvertFrom-Payload -Payload $Payload -Encoding $Encoding
    $full = Resolve-FilePath -Path $TemporaryPath
    $mode = [System.IO.FileMode]::Open
    if ($OffsetBytes -eq 0) { $mode = [System.IO.FileMode]::Create }
    $stream = [System.IO.FileStream]::new($full, $mode, ([System.IO.FileAccess]::Write), ([System.IO.FileShare]::Read))
    try {
        if ($stream.Length -ne $OffsetBytes) {
            throw (New-WireFault -Type 'BadRequest' -Message "$TemporaryPath has $($stream.Length) bytes; a part at $OffsetBytes does not continue it")
        }
        [void] $stream.Seek(0, [System.IO.SeekOrigin]::End)
        $stream.Write($bytes, 0, $bytes.Length)
        return [pscustomobject] @{ SizeBytes = $stream.Length }
    } finally {
        $stream.Dispose()
    }
}

function Set-BoxFile {
    param(
        [Parameter(Mandatory = $true)] [string] $Path, [Parameter(Mandatory = $true)] [string] $Sha256,
        [string] $Encoding = 'none', [string] $TemporaryPath, [byte[]] $Payload
    )
    $full = Resolve-FilePath -Path $Path
    if ([System.IO.Directory]::Exists($full)) {
        throw (New-Refusal -Message "$Path is a folder; a file is not put in its place. Move it away first.")
    }
    if ($TemporaryPath) {
        $temporary = Resolve-FilePath -Path $TemporaryPath
    } else {
        $bytes = ConvertFrom-Payload -Payload $Payload -Encoding $Encoding
        $folder = [System.IO.Path]::GetDirectoryName($full)
        # A short name of its own: the file's own may be as long as names can be.
        $temporary = Resolve-FilePath -Path ([System.IO.Path]::Combine($folder, "~$([Guid]::NewGuid().ToString('N')).part"))
        Write-NewFile -Path $temporary -Bytes $bytes
    }
    try {
        $found = Get-FileSum -Path $temporary
        if ($found -ne $Sha256) {
            throw (New-WireFault -Type 'HashMismatch' -Message "the content for $Path has SHA-256 $found, not $Sha256; nothing was replaced")
        }
        $replaced = Move-FileInPlace -Source $temporary -Destination $full
    } catch {
        [System.IO.File]::Delete($temporary)
        throw
    }
    return [pscustomobject] @{
        Sha256 = $found; SizeBytes = (New-Object System.IO.FileInfo -ArgumentList $full).Length; Replaced = $replaced
    }
}

function Write-NewFile {
    # On the disk, not only in its cache, when this returns.
    param([string] $Path, [byte[]] $Bytes)
    $stream = [System.IO.FileStream]::new($Path, ([System.IO.FileMode]::CreateNew), ([System.IO.FileAccess]::Write), ([System.IO.FileShare]::None))
    try {
        $stream.Write($Bytes, 0, $Bytes.Length)
        $stream.Flush($true)
    } finally {
        $stream.Dispose()
    }
}

function Move-FileInPlace {
    # Replace keeps the access list of the file that was there. True when there was one.
    param([string] $Source, [string] $Destination)
    if (-not [System.IO.File]::Exists($Destination)) {
        [System.IO.File]::Move($Source, $Destination)
        return $false
    }
    $attributes = [System.IO.File]::GetAttributes($Destination)
    $readOnly = $attributes -band [System.IO.FileAttributes]::ReadOnly
    if ($readOnly) { [void] (Set-ReadOnly -Path $Destination -Wanted $false) }
    try {
        [System.IO.File]::Replace($Source, $Destination, [System.Management.Automation.Language.NullString]::Value, $true)
    } finally {
        if ($readOnly) { [void] (Set-ReadOnly -Path $Destination -Wanted $true) }
    }
    return $true
}

function Set-ReadOnly {
    # True when that changed it.
    param([string] $Path, [bool] $Wanted)
    $flag = [System.IO.FileAttributes]::ReadOnly
    $attributes = [System.IO.File]::GetAttributes($Path)
    if ([bool] ($attributes -band $flag) -eq $Wanted) { return $false }
    if ($Wanted) { $attributes = $attributes -bor $flag } else { $attributes = $attributes -band (-bnot [int] $flag) }
    [System.IO.File]::SetAttributes($Path, $attributes)
    return $true
}

function Set-BoxFileAttribute {
    param([Parameter(Mandatory = $true)] [string] $Path, [Parameter(Mandatory = $true)] [bool] $ReadOnly)
    return [pscustomobject] @{ Changed = (Set-ReadOnly -Path (Resolve-FilePath -Path $Path) -Wanted $ReadOnly) }
}

function Copy-BoxItem {
    param([Parameter(Mandatory = $true)] [object[]] $Items)
    $answers = @(for ($at = 0; $at -lt $Items.Length; $at++) {
        Write-WireProgress -Activity 'copy' -Done $at -Total $Items.Length
        $destination = Resolve-FilePath -Path ([string] $Items[$at]['Destination'])
        [System.IO.File]::Copy((Resolve-FilePath -Path ([string] $Items[$at]['Path'])), $destination, $true)
        [pscustomobject] @{
            Destination = [string] $Items[$at]['Destination']
            SizeBytes = (New-Object System.IO.FileInfo -ArgumentList $destination).Length
            Sha256 = Get-FileSum -Path $destination
        }
    })
    return , @($answers)
}
