# What PowerShell's own parser sees in each file: one JSON object a file on stdout.
# Arguments: file paths. Runs on PowerShell 7 for any system; knows nothing of 5.1, the rules beside it do.

function Get-TypeText { param($Ast) if ($null -eq $Ast) { $null } else { $Ast.TypeName.FullName } }

function Get-Owner {
    # The name of the function that a node is in; '' outside.
    param($Ast)
    for ($up = $Ast.Parent; $null -ne $up; $up = $up.Parent) {
        if ($up -is [Management.Automation.Language.FunctionDefinitionAst]) { return $up.Name }
    }
    return ''
}

function Get-CreatedType {
    # The type that an expression makes for certain: New-Object T, [T]::new(), [T] value; else nothing.
    param($Ast)
    $command = $Ast
    if ($command -is [Management.Automation.Language.PipelineAst] -and $command.PipelineElements.Count -eq 1) { $command = $command.PipelineElements[0] }
    if ($command -is [Management.Automation.Language.CommandAst] -and $command.GetCommandName() -eq 'New-Object') { return Get-NewObjectType $command }
    if ($command -is [Management.Automation.Language.CommandExpressionAst]) { $command = $command.Expression }
    if ($command -is [Management.Automation.Language.ConvertExpressionAst]) { return Get-TypeText $command.Type }
}

function Get-NewObjectType {
    param($Command)
    $elements = $Command.CommandElements
    for ($at = 1; $at -lt $elements.Count; $at++) {
        if ($elements[$at] -is [Management.Automation.Language.CommandParameterAst]) {
            if ($elements[$at].ParameterName -eq 'ComObject') { return $null }
            if ($elements[$at].ParameterName -ne 'TypeName') { continue }
            $at++
        }
        if ($elements[$at] -is [Management.Automation.Language.StringConstantExpressionAst]) { return $elements[$at].Value }
        return $null
    }
}

foreach ($path in $args) {
    $tokens = $null
    $errors = $null
    $root = [Management.Automation.Language.Parser]::ParseFile($path, [ref] $tokens, [ref] $errors)
    $all = $root.FindAll({ $true }, $true)
    $found = @{
        path = $path
        errors = @($errors | ForEach-Object { @{ line = $_.Extent.StartLineNumber; text = $_.Message } })
        functions = @(); commands = @(); statics = @(); types = @(); newer = @(); members = @(); bindings = @()
    }
    foreach ($token in $tokens) {
        if ("$($token.Kind)" -in 'QuestionQuestion', 'QuestionQuestionEquals', 'QuestionDot', 'QuestionLBracket', 'AndAnd', 'OrOr', 'QuestionMark', 'Clean') {
            $found.newer += @{ line = $token.Extent.StartLineNumber; text = $token.Text }
        }
    }
    foreach ($node in $all) {
        $line = $node.Extent.StartLineNumber
        switch ($node.GetType().Name) {
            'TernaryExpressionAst' { $found.newer += @{ line = $line; text = 'a ? b : c' } }
            'PipelineChainAst' { $found.newer += @{ line = $line; text = 'pipeline chain' } }
            'PipelineAst' { if ($node.Background) { $found.newer += @{ line = $line; text = 'background &' } } }
            'FunctionDefinitionAst' {
                $parameters = @($node.Parameters) + @($node.Body.ParamBlock.Parameters) | Where-Object { $_ }
                $found.functions += @{ line = $line; name = $node.Name; parameters = @($parameters | ForEach-Object { $_.Name.VariablePath.UserPath }) }
                foreach ($parameter in $parameters) {
                    if ($parameter.StaticType -and $parameter.Attributes.Where({ $_ -is [Management.Automation.Language.TypeConstraintAst] })) {
                        $type = $parameter.Attributes.Where({ $_ -is [Management.Automation.Language.TypeConstraintAst] })[0].TypeName.FullName
                        $found.bindings += @{ owner = $node.Name; name = $parameter.Name.VariablePath.UserPath; type = $type }
                    }
                }
            }
            'CommandAst' {
                $given = @($node.CommandElements | Where-Object { $_ -is [Management.Automation.Language.CommandParameterAst] } | ForEach-Object { $_.ParameterName })
                $splat = @($node.CommandElements | Where-Object { $_ -is [Management.Automation.Language.VariableExpressionAst] -and $_.Splatted }).Count -gt 0
                $name = $node.GetCommandName()
                if ($name) { $found.commands += @{ line = $line; name = $name; parameters = $given; splat = $splat } }
                if ($name -eq 'New-Object') {
                    $type = Get-NewObjectType $node
                    if ($type) { $found.types += @{ line = $line; name = $type } }
                }
            }
            'TypeExpressionAst' { $found.types += @{ line = $line; name = $node.TypeName.FullName } }
            'TypeConstraintAst' { $found.types += @{ line = $line; name = $node.TypeName.FullName } }
            'AssignmentStatementAst' {
                if ($node.Left -is [Management.Automation.Language.VariableExpressionAst]) {
                    $found.bindings += @{ owner = (Get-Owner $node); name = $node.Left.VariablePath.UserPath; type = (Get-CreatedType $node.Right) }
                } elseif ($node.Left -is [Management.Automation.Language.ConvertExpressionAst] -and $node.Left.Child -is [Management.Automation.Language.VariableExpressionAst]) {
                    $found.bindings += @{ owner = (Get-Owner $node); name = $node.Left.Child.VariablePath.UserPath; type = (Get-TypeText $node.Left.Type) }
                }
            }
            'ForEachStatementAst' { $found.bindings += @{ owner = (Get-Owner $node); name = $node.Variable.VariablePath.UserPath; type = $null } }
            { $_ -in 'MemberExpressionAst', 'InvokeMemberExpressionAst' } {
                if ($node.Member -isnot [Management.Automation.Language.StringConstantExpressionAst]) { break }
                $call = $node -is [Management.Automation.Language.InvokeMemberExpressionAst]
                $count = if ($call) { @($node.Arguments | Where-Object { $_ }).Count } else { 0 }
                if ($node.Static -and $node.Expression -is [Management.Automation.Language.TypeExpressionAst]) {
                    $found.statics += @{ line = $line; type = $node.Expression.TypeName.FullName; member = $node.Member.Value; call = $call; count = $count }
                } elseif (-not $node.Static -and $node.Expression -is [Management.Automation.Language.VariableExpressionAst]) {
                    $found.members += @{ line = $line; owner = (Get-Owner $node); name = $node.Expression.VariablePath.UserPath; member = $node.Member.Value; call = $call; count = $count }
                }
            }
        }
    }
    ConvertTo-Json -InputObject $found -Depth 6 -Compress
}
