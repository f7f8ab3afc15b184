# Junctions: a folder name that leads to another folder.

function New-BoxJunction {
    # Retargeting makes the new junction beside the old one and swaps the names, so that the name is missing only
    # between two renames. The junction's own item is moved and deleted, never what it leads to.
    param([string] $Path, [string] $Target)
    $answer = [pscustomobject] @{ Changed = $false; PreviousTarget = $null }
    $Path = (Assert-ChangeablePath -Path $Path -Done 'made a junction').TrimEnd([char] '\')
    if (-not [System.IO.Directory]::Exists($Target)) {
        throw (New-Object -TypeName System.IO.DirectoryNotFoundException -ArgumentList "Could not find the target folder '$Target' of the junction '$Path'.")
    }
    $old = Get-Item -LiteralPath $Path -Force -ErrorAction SilentlyContinue
    if ($null -ne $old) {
        if ([string] $old.LinkType -ne 'Junction') {
            throw (New-Refusal -Message "$Path is there already and is no junction; it is left as it is. Move it away first.")
        }
        $answer.PreviousTarget = [string] @($old.Target)[0]
        $same = [string]::Equals($answer.PreviousTarget.TrimEnd([char] '\'),
            [System.IO.Path]::GetFullPath($Target).TrimEnd([char] '\'), [StringComparison]::OrdinalIgnoreCase)
        if ($same) { return $answer }
    }
    $suffix = [Guid]::NewGuid().ToString('N').Substring(0, 8)
    $beside = "$Path.new-$suffix"
    [void] (New-Item -ItemType Junction -Path $beside -Value $Target)
    $new = Get-Item -LiteralPath $beside -Force
    try {
        if ($null -ne $old) { $old.MoveTo("$Path.old-$suffix") }
        $new.MoveTo($Path)
    } catch {
        if ($null -ne $old -and -not [System.IO.Directory]::Exists($Path)) {
            (Get-Item -LiteralPath "$Path.old-$suffix" -Force).MoveTo($Path)
        }
        (Get-Item -LiteralPath $beside -Force).Delete()
        throw
    }
    if ($null -ne $old) { (Get-Item -LiteralPath "$Path.old-$suffix" -Force).Delete() }
    $answer.Changed = $true
    return $answer
}
