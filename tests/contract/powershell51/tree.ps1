# What PowerShell's own parser makes of each file: one JSON object a file on stdout.
# Arguments: file paths. Runs on PowerShell 7 for any system; knows nothing of 5.1, the rules beside it do.
# nodes: [kind, line, start, end, parent, role, attributes]; a parent is an index into the same list.

$language = 'System.Management.Automation.Language'
$left = @('Parent', 'Extent', 'StaticType', 'ErrorPosition', 'DefiningKeywordAst', 'FunctionDefinitionExtent')
$properties = @{}

function Add-Node {
    param($Node, [int] $Parent, [string] $Role)
    $kind = $Node.GetType().Name
    if (-not $properties.ContainsKey($kind)) {
        $properties[$kind] = @($Node.GetType().GetProperties() | Where-Object { $_.Name -notin $left -and $_.GetIndexParameters().Count -eq 0 } | ForEach-Object { $_.Name })
    }
    $index = $nodes.Count
    $attributes = @{}
    $nodes.Add(@($kind, $Node.Extent.StartLineNumber, $Node.Extent.StartOffset, $Node.Extent.EndOffset, $Parent, $Role, $attributes))
    foreach ($name in $properties[$kind]) {
        $value = $Node.$name
        if ($null -eq $value) { continue }
        if ($value -is [Management.Automation.Language.Ast]) { Add-Node $value $index $name; continue }
        if ($value -is [string] -or $value -is [bool]) { $attributes[$name] = $value; continue }
        if ($value -is [Management.Automation.Language.ITypeName]) { $attributes[$name] = $value.FullName; continue }
        if ($value -is [Management.Automation.VariablePath]) { $attributes[$name] = $value.UserPath; continue }
        if ($value -is [Management.Automation.Language.ScriptRequirements]) {
            $attributes['RequiredVersion'] = [string] $value.RequiredPSVersion
            $attributes['RequiredEditions'] = @($value.RequiredPSEditions) -join ','
            continue
        }
        if ($value -is [ValueType]) { $attributes[$name] = [string] $value; continue }
        if ($value -isnot [Collections.IEnumerable]) { continue }
        foreach ($item in $value) {
            if ($item -is [Management.Automation.Language.Ast]) { Add-Node $item $index $name }
            elseif ($item -is [Runtime.CompilerServices.ITuple]) {
                Add-Node $item.Item1 $index "$name.0"
                Add-Node $item.Item2 $index "$name.1"
            }
        }
    }
}

foreach ($path in $args) {
    $tokens = $null
    $errors = $null
    # Read as UTF-8 whatever the mark, so that offsets are those of the text that the checks read.
    $root = [Management.Automation.Language.Parser]::ParseInput([IO.File]::ReadAllText($path), $path, [ref] $tokens, [ref] $errors)
    $nodes = New-Object 'Collections.Generic.List[object]'
    Add-Node $root -1 ''
    ConvertTo-Json -Depth 5 -Compress -InputObject @{
        path = $path
        errors = @($errors | ForEach-Object { , @($_.Extent.StartLineNumber, $_.Message, $_.ErrorId) })
        tokens = @($tokens | Where-Object { "$($_.Kind)" -ne 'NewLine' } | ForEach-Object { , @([string] $_.Kind, $_.Extent.StartLineNumber, $_.Text) })
        nodes = $nodes
    }
}
