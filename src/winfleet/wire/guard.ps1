# What no command removes, moves away or gives another access list: the folders of Windows and of its programs.

function Assert-ChangeablePath {
    # The path as it is used further on; Refused when it leads to a folder of Windows, however it is written. With
    # Followed what a link itself leads to counts, too: an access list is set there, while a removal takes the link.
    param([string] $Path, [string] $Done, [bool] $Followed = $false)
    $refusal = New-Refusal -Message "$Path belongs to Windows; it is not $Done"
    if ($Path -match '^[\\/]{2}') {
        throw (New-Refusal -Message "$Path is the path of a device or of the network; it is not $Done. Write it as C:\folder\name.")
    }
    $full = Resolve-FilePath -Path $Path
    $plain = Get-PlainPath -FullPath $full
    if (Test-ProtectedFolder -FullPath $plain) { throw $refusal }
    $above = [System.IO.Path]::GetDirectoryName($plain)
    $real = $plain
    if ($Followed -and ([System.IO.Directory]::Exists($plain) -or [System.IO.File]::Exists($plain))) {
        $real = Resolve-ExistingPath -Path $plain -Chain (New-Object 'System.Collections.Generic.List[string]')
    } elseif ([System.IO.Directory]::Exists($above)) {
        $real = [System.IO.Path]::Combine((Resolve-ExistingPath -Path $above -Chain (New-Object 'System.Collections.Generic.List[string]')),
            [System.IO.Path]::GetFileName($plain))
    }
    if ($real.StartsWith('\\', [StringComparison]::Ordinal) -or (Test-ProtectedFolder -FullPath (Expand-ShortName -Path $real))) { throw $refusal }
    return $full
}

function Get-PlainPath {
    # A full path as Windows reads it in the end: no prefix, dots or streams, nothing that it cuts off the end of a name,
    # no short names. Of a very long path its beginning: all that is guarded is near the root.
    param([string] $FullPath)
    $text = $FullPath
    if ($text.StartsWith('\\?\', [StringComparison]::Ordinal)) { $text = $text.Substring(4) }
    $names = New-Object System.Collections.ArrayList
    foreach ($part in $text.Substring(2).Split([char[]] '\/')) {
        $name = $part.Split([char] ':')[0].TrimEnd([char[]] '. ')
        if ($part -eq '..') {
            if ($names.Count -gt 0) { $names.RemoveAt($names.Count - 1) }
        } elseif ($name) {
            [void] $names.Add($name)
        }
    }
    $plain = $text.Substring(0, 2) + '\'
    foreach ($name in $names) {
        if ($plain.Length + $name.Length -gt 240) { break }
        $plain = [System.IO.Path]::Combine($plain, $name)
    }
    return Expand-ShortName -Path $plain
}

function Expand-ShortName {
    # The path with the whole names of what exists of it (PROGRA~1 is Program Files). .NET does not always do it.
    param([string] $Path)
    if ($Path.IndexOf([char] '~') -lt 0) { return $Path }
    $native = Get-NativeType -Name 'LongPath' -Table @{ 'kernel32.dll' = @{ GetLongPathNameW = [int], [byte[]], [byte[]], [int] } }
    $long = New-Object -TypeName 'byte[]' -ArgumentList 2048
    $above = $Path
    $below = ''
    while ($above) {
        $length = $native::GetLongPathNameW([System.Text.Encoding]::Unicode.GetBytes($above + [char] 0), $long, 1024)
        if ($length -gt 0 -and $length -lt 1024) {
            return [System.IO.Path]::Combine([System.Text.Encoding]::Unicode.GetString($long, 0, 2 * $length), $below)
        }
        $below = [System.IO.Path]::Combine([System.IO.Path]::GetFileName($above), $below)
        $above = [System.IO.Path]::GetDirectoryName($above)
    }
    return $Path
}

function Test-ProtectedFolder {
    # Drive roots; Windows, its programs and what is below them; the folders of all users and of each of them; what
    # any of these is below of.
    param([string] $FullPath)
    $path = $FullPath.TrimEnd([char] '\') + '\'
    if ($path.Length -le 3) { return $true }
    $whole = @($env:SystemRoot, $env:ProgramFiles, $env:ProgramW6432, ${env:ProgramFiles(x86)})
    $alone = @($env:ProgramData)
    if ($env:PUBLIC) {
        $users = [System.IO.Path]::GetDirectoryName($env:PUBLIC)
        $alone += $users
        if ([string]::Equals([System.IO.Path]::GetDirectoryName($path.TrimEnd([char] '\')), $users, [StringComparison]::OrdinalIgnoreCase)) { return $true }
    }
    foreach ($folder in $whole + $alone) {
        if (-not $folder) { continue }
        $own = $folder.TrimEnd([char] '\') + '\'
        if ($own.StartsWith($path, [StringComparison]::OrdinalIgnoreCase)) { return $true }
        if ($folder -in $whole -and $path.StartsWith($own, [StringComparison]::OrdinalIgnoreCase)) { return $true }
    }
    return $false
}
