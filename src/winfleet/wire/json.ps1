# JSON of our own, alike on every version. ConvertFrom-Json turns texts that look like dates into dates (7) or only some
# of them (5.1) and refuses names that differ in case (5.1); ConvertTo-Json stops at a depth, shows some arrays as
# {value, Count} (5.1), enums as numbers (7) and loses half of a surrogate pair.

function Initialize-WireJson {
    # The patterns are made once, for all functions below.
    $global:WireJson = @{
        Token = New-Object System.Text.RegularExpressions.Regex -ArgumentList (
            '\G[ \t\r\n]*(?:(?<mark>[{}\[\],:])|"(?<text>[^"\\]*(?:\\.[^"\\]*)*)"|(?<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)|(?<word>true|false|null))')
        Escape = New-Object System.Text.RegularExpressions.Regex -ArgumentList '\\(u[0-9a-fA-F]{4}|.)'
        Special = New-Object System.Text.RegularExpressions.Regex -ArgumentList '[^ !#-\[\]-~]'
    }
}

Initialize-WireJson

function ConvertFrom-WireJson {
    # Objects as case-sensitive dictionaries, arrays as object[], whole numbers as long, others as double.
    param([string] $Text)
    $state = @{ Text = $Text; At = 0; Match = $null }
    Step-WireJson -State $state
    $value = Read-WireJson -State $state
    if ($null -ne $state.Match) { throw (New-Object -TypeName System.FormatException -ArgumentList "JSON goes on after its end at $($state.At)") }
    return , $value
}

function Step-WireJson {
    # Move to the next token; Match is null at the end.
    param([hashtable] $State)
    $match = $global:WireJson.Token.Match($State.Text, $State.At)
    if (-not $match.Success) {
        if ($State.Text.Substring($State.At).Trim().Length -gt 0) {
            throw (New-Object -TypeName System.FormatException -ArgumentList "no JSON at character $($State.At)")
        }
        $State.Match = $null
        return
    }
    $State.At = $match.Index + $match.Length
    $State.Match = $match
}

function Assert-WireJsonMark {
    param([hashtable] $State, [string] $Mark)
    if ($null -eq $State.Match -or $State.Match.Groups['mark'].Value -ne $Mark) {
        throw (New-Object -TypeName System.FormatException -ArgumentList "JSON wants '$Mark' before character $($State.At)")
    }
    Step-WireJson -State $State
}

function Read-WireJson {
    # The value that begins at the present token.
    param([hashtable] $State)
    $match = $State.Match
    if ($null -eq $match) { throw (New-Object -TypeName System.FormatException -ArgumentList 'JSON ends too early') }
    $groups = $match.Groups
    $mark = $groups['mark'].Value
    Step-WireJson -State $State
    if ($groups['text'].Success) { return ConvertFrom-WireText -Text $groups['text'].Value }
    if ($groups['number'].Success) { return ConvertFrom-WireNumber -Text $groups['number'].Value }
    if ($groups['word'].Success) {
        if ($groups['word'].Value -ceq 'null') { return $null }
        return $groups['word'].Value -ceq 'true'
    }
    if ($mark -eq '{') { return Read-WireJsonObject -State $State }
    if ($mark -eq '[') { return , (Read-WireJsonArray -State $State) }
    throw (New-Object -TypeName System.FormatException -ArgumentList "JSON has '$mark' before character $($State.At)")
}

function Read-WireJsonObject {
    param([hashtable] $State)
    $answer = New-Object 'System.Collections.Generic.Dictionary[string,object]'
    while ($null -ne $State.Match -and $State.Match.Groups['mark'].Value -ne '}') {
        if ($answer.Count -gt 0) { Assert-WireJsonMark -State $State -Mark ',' }
        if ($null -eq $State.Match -or -not $State.Match.Groups['text'].Success) {
            throw (New-Object -TypeName System.FormatException -ArgumentList "JSON wants a name before character $($State.At)")
        }
        $name = ConvertFrom-WireText -Text $State.Match.Groups['text'].Value
        Step-WireJson -State $State
        Assert-WireJsonMark -State $State -Mark ':'
        $answer[$name] = Read-WireJson -State $State
    }
    Assert-WireJsonMark -State $State -Mark '}'
    return $answer
}

function Read-WireJsonArray {
    param([hashtable] $State)
    $items = New-Object System.Collections.ArrayList
    while ($null -ne $State.Match -and $State.Match.Groups['mark'].Value -ne ']') {
        if ($items.Count -gt 0) { Assert-WireJsonMark -State $State -Mark ',' }
        [void] $items.Add((Read-WireJson -State $State))
    }
    Assert-WireJsonMark -State $State -Mark ']'
    return , $items.ToArray()
}

function ConvertFrom-WireText {
    param([string] $Text)
    if ($Text.IndexOf([char] '\') -lt 0) { return $Text }
    return $global:WireJson.Escape.Replace($Text, [System.Text.RegularExpressions.MatchEvaluator] {
        param($hit)
        $code = $hit.Groups[1].Value
        if ($code.Length -eq 5) { return [string] [char] [Convert]::ToInt32($code.Substring(1), 16) }
        switch -CaseSensitive ($code) {
            'n' { return "`n" }
            'r' { return "`r" }
            't' { return "`t" }
            'b' { return "`b" }
            'f' { return "`f" }
        }
        return $code
    })
}

function ConvertFrom-WireNumber {
    param([string] $Text)
    $culture = [Globalization.CultureInfo]::InvariantCulture
    if ($Text -match '^-?[0-9]+$') {
        $whole = [long] 0
        if ([long]::TryParse($Text, [Globalization.NumberStyles]::AllowLeadingSign, $culture, [ref] $whole)) { return $whole }
        return [decimal]::Parse($Text, $culture)
    }
    return [double]::Parse($Text, [Globalization.NumberStyles]::Float, $culture)
}

function ConvertTo-WireJson {
    # One line of ASCII. Enums and unknown types become text, times UTC in the 'o' form.
    param([object] $Value)
    $builder = New-Object System.Text.StringBuilder
    Add-WireJson -Builder $builder -Value $Value -Depth 0
    return $builder.ToString()
}

function ConvertTo-WireText {
    param([string] $Text)
    if (-not $global:WireJson.Special.IsMatch($Text)) { return '"' + $Text + '"' }
    return '"' + $global:WireJson.Special.Replace($Text, [System.Text.RegularExpressions.MatchEvaluator] {
        param($hit)
        $code = [int] $hit.Value[0]
        if ($code -eq 34 -or $code -eq 92) { return '\' + $hit.Value }
        if ($code -eq 10) { return '\n' }
        return '\u{0:x4}' -f $code
    }) + '"'
}

function Add-WireJson {
    param([System.Text.StringBuilder] $Builder, [object] $Value, [int] $Depth)
    if ($Depth -gt 60) { throw (New-Object -TypeName System.InvalidOperationException -ArgumentList 'the answer is nested too deep or holds itself') }
    if ($null -eq $Value) { [void] $Builder.Append('null'); return }
    # A custom object is what it is; anything else is what it wraps (strings and arrays may carry notes in 5.1).
    if ($Value -is [System.Management.Automation.PSObject] -and $Value.psobject.BaseObject -isnot [System.Management.Automation.PSCustomObject]) {
        $Value = $Value.psobject.BaseObject
    }
    if ($Value -is [string] -or $Value -is [char] -or $Value -is [enum]) { [void] $Builder.Append((ConvertTo-WireText -Text ([string] $Value))); return }
    if ($Value -is [bool]) { if ($Value) { [void] $Builder.Append('true') } else { [void] $Builder.Append('false') }; return }
    if ($Value -is [datetime]) { [void] $Builder.Append('"' + $Value.ToUniversalTime().ToString('o') + '"'); return }
    if ($Value -is [double] -or $Value -is [single]) {
        if ([double]::IsNaN($Value) -or [double]::IsInfinity($Value)) { [void] $Builder.Append('null'); return }
        [void] $Builder.Append(([double] $Value).ToString('R', [Globalization.CultureInfo]::InvariantCulture)); return
    }
    if ($Value -is [ValueType] -and $Value -is [IConvertible]) {
        [void] $Builder.Append($Value.ToString([Globalization.CultureInfo]::InvariantCulture)); return
    }
    $separator = ''
    if ($Value -is [System.Collections.IDictionary]) {
        [void] $Builder.Append('{')
        foreach ($name in @($Value.Keys)) {
            [void] $Builder.Append($separator + (ConvertTo-WireText -Text ([string] $name)) + ':')
            Add-WireJson -Builder $Builder -Value $Value[$name] -Depth ($Depth + 1)
            $separator = ','
        }
        [void] $Builder.Append('}')
        return
    }
    if ($Value -is [System.Collections.IEnumerable]) {
        [void] $Builder.Append('[')
        foreach ($item in $Value) {
            [void] $Builder.Append($separator)
            Add-WireJson -Builder $Builder -Value $item -Depth ($Depth + 1)
            $separator = ','
        }
        [void] $Builder.Append(']')
        return
    }
    if ($Value.psobject.BaseObject -is [System.Management.Automation.PSCustomObject]) {
        [void] $Builder.Append('{')
        foreach ($property in $Value.psobject.Properties) {
            [void] $Builder.Append($separator + (ConvertTo-WireText -Text $property.Name) + ':')
            Add-WireJson -Builder $Builder -Value $property.Value -Depth ($Depth + 1)
            $separator = ','
        }
        [void] $Builder.Append('}')
        return
    }
    [void] $Builder.Append((ConvertTo-WireText -Text ([string] $Value)))
}
