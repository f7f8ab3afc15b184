# Copies of PowerShell files that note each of their statements when it first runs in a process.
# Arguments: folder for the copies, folder for the notes as the box sees it, file paths.
# Prints one JSON line a file: the number and the line of each statement. Runs on PowerShell 7 for any system.

$copies, $notes, $paths = $args
$number = 0
foreach ($path in $paths) {
    $tokens = $null
    $errors = $null
    $root = [Management.Automation.Language.Parser]::ParseFile($path, [ref] $tokens, [ref] $errors)
    if (@($errors).Count -gt 0) { throw "$path has errors: $($errors[0].Message)" }
    $text = $root.Extent.Text
    $statements = @($root.FindAll({
        param($node)
        if ($node -is [Management.Automation.Language.FunctionDefinitionAst]) { return $false }
        if ($node -isnot [Management.Automation.Language.StatementAst]) { return $false }
        if ($node.Parent -is [Management.Automation.Language.NamedBlockAst]) { return $true }
        if ($node.Parent -isnot [Management.Automation.Language.StatementBlockAst]) { return $false }
        # Inside @( ) and $( ) a plain pipeline is part of the statement around it.
        $around = $node.Parent.Parent
        $inner = $around -is [Management.Automation.Language.ArrayExpressionAst] -or $around -is [Management.Automation.Language.SubExpressionAst]
        return -not ($inner -and $node -is [Management.Automation.Language.PipelineAst])
    }, $true) | Sort-Object -Property { $_.Extent.StartOffset })
    $builder = New-Object Text.StringBuilder
    $at = 0
    $marks = @(foreach ($statement in $statements) {
        $number++
        $offset = $statement.Extent.StartOffset
        # The text of a file may begin after offset 0 of its extent only when it begins with a byte order mark.
        [void] $builder.Append($text.Substring($at, $offset - $at))
        [void] $builder.Append("if(!`$global:WFC_$number){`$global:WFC_$number=1;[IO.File]::AppendAllText(`"$notes\`$PID`",'$number ')};")
        $at = $offset
        , @($number, $statement.Extent.StartLineNumber)
    })
    [void] $builder.Append($text.Substring($at))
    [IO.File]::WriteAllText([IO.Path]::Combine($copies, [IO.Path]::GetFileName($path)), $builder.ToString())
    ConvertTo-Json -InputObject @{ file = [IO.Path]::GetFileName($path); statements = $marks } -Depth 4 -Compress
}
