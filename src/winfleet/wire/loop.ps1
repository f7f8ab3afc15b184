# The frame loop of docs/box-commands.md section 1: requests from our own reader, answers in frames, each one write.

function Start-WireLoop {
    # Answers until stdin ends. Everything that the session remembers is in $global:Wire.
    param([string] $Nonce, [System.IO.StreamReader] $Reader, [System.IO.Stream] $Output)
    $global:Wire = @{
        Nonce = $Nonce; Output = $Output; Hash = [System.Security.Cryptography.SHA256]::Create()
        Sequence = 0; Index = 1; Reply = $true; Frames = $null; Kept = 0; LastSequence = 0
        Memory = New-Object System.Collections.ArrayList; Payload = $null
    }
    try {
        # A BOM would otherwise be the first thing that a native program reads (dotnet/runtime#28929).
        [Console]::InputEncoding = New-Object System.Text.UTF8Encoding -ArgumentList $false
    } catch {
        $global:Error.Clear()
    }
    Write-WireFrame -Kind 'ready' -Data (Get-BoxSession)
    while ($true) {
        $line = $Reader.ReadLine()
        if ($null -eq $line) { return }
        if ($line.Trim().Length -gt 0) { Invoke-WireRequest -Line $line }
        $global:Error.Clear()
    }
}

function Get-WireSum {
    # SHA-256 of bytes, lower case hexadecimal.
    param([byte[]] $Bytes)
    return ([BitConverter]::ToString($global:Wire.Hash.ComputeHash($Bytes)) -replace '-', '').ToLowerInvariant()
}

function Write-WireFrame {
    # One frame of the present request; it is remembered for a request that arrives again.
    param([string] $Kind, [object] $Data, [byte[]] $Payload)
    $ascii = [System.Text.Encoding]::ASCII
    $body = [Convert]::ToBase64String($ascii.GetBytes((ConvertTo-WireJson -Value $Data)))
    if ($null -ne $Payload -and $Payload.Length -gt 0) { $body += '.' + [Convert]::ToBase64String($Payload) }
    $wire = $global:Wire
    $sum = (Get-WireSum -Bytes $ascii.GetBytes($body)).Substring(0, 8)
    $bytes = $ascii.GetBytes("`n~WF1 $($wire.Nonce) $($wire.Sequence) $($wire.Index) $Kind $($body.Length) $sum $body`n")
    $wire.Index++
    if ($null -ne $wire.Frames) {
        [void] $wire.Frames.Add($bytes)
        $wire.Kept += $bytes.Length
        # An answer that will not be remembered must not fill the memory of this process while it grows.
        if ($wire.Kept -gt 8MB) {
            $wire.Memory[$wire.Memory.Count - 1].Frames = $null
            $wire.Frames = $null
        }
    }
    if ($wire.Reply) { Send-WireByte -Bytes $bytes }
}

function Send-WireByte {
    param([byte[]] $Bytes)
    $global:Wire.Output.Write($Bytes, 0, $Bytes.Length)
    $global:Wire.Output.Flush()
}

function Write-WireProgress {
    param([string] $Activity, [long] $Done, [long] $Total)
    Write-WireFrame -Kind 'progress' -Data @{ activity = $Activity; done = $Done; total = $Total }
}

function Set-WirePayload {
    # The bytes that go with the answer of the present command.
    param([byte[]] $Bytes)
    $global:Wire.Payload = $Bytes
}

function New-WireFault {
    # An error of one of our own types: BadRequest, HashMismatch, UnknownCommand, ... (Refused: New-Refusal).
    param([string] $Type, [string] $Message)
    $exception = New-Object -TypeName System.InvalidOperationException -ArgumentList $Message
    return New-Object -TypeName System.Management.Automation.ErrorRecord -ArgumentList @(
        $exception, $Type, [System.Management.Automation.ErrorCategory]::InvalidOperation, $null)
}

function ConvertTo-WireError {
    # The error object of an error record. A method's own exception counts, not its wrapping.
    param([System.Management.Automation.ErrorRecord] $ErrorRecord, [string] $Command)
    $id = [string] $ErrorRecord.FullyQualifiedErrorId
    $own = $id.Split(',')[0]
    $exception = Get-InnermostException -ErrorRecord $ErrorRecord
    $type = $exception.GetType().FullName
    $result = $null
    if ($own -cin @('ReadOnlyRefused', 'UnknownCommand', 'AnswerForgotten', 'NotRun', 'HashMismatch', 'Refused', 'BadRequest')) {
        $type = $own
    } elseif ($exception.HResult -ne 0) {
        $result = '0x{0:X8}' -f $exception.HResult
    }
    return @{
        type = $type; id = $id; category = [string] $ErrorRecord.CategoryInfo.Category
        message = [string] $exception.Message; hresult = $result; command = $Command
    }
}

function Invoke-WireRequest {
    # One line from the controller: noise, a repetition, or work.
    param([string] $Line)
    $wire = $global:Wire
    $parts = $Line.Trim().Split([char] ' ')
    $header = $null
    try {
        $text = (New-Object System.Text.UTF8Encoding -ArgumentList $false).GetString([Convert]::FromBase64String($parts[0]))
        $header = ConvertFrom-WireJson -Text $text
        if ($header['nonce'] -cne $wire.Nonce) { return }
        $sequence = [long] $header['seq']
        $payload = $null
        $bytes = 0
        if ($parts.Length -gt 1) {
            $payload = [Convert]::FromBase64String($parts[1])
            $bytes = $payload.Length
        }
        # Cut within its payload: the whole request follows.
        if ($header.ContainsKey('payload_bytes') -and $bytes -ne $header['payload_bytes']) { return }
    } catch {
        # Whoever sent it did not know the nonce, or the line was cut: there is no request to answer.
        return
    }
    $reply = $header['reply'] -ne $false
    if ($sequence -le $wire.LastSequence) {
        if ($reply) { Send-RememberedAnswer -Sequence $sequence }
        return
    }
    $wire.LastSequence = $sequence
    $wire.Sequence = $sequence
    $wire.Index = 0
    $wire.Kept = 0
    $wire.Reply = $reply
    $wire.Frames = New-Object System.Collections.ArrayList
    [void] $wire.Memory.Add(@{ Sequence = $sequence; Frames = $wire.Frames })
    while ($wire.Memory.Count -gt 4) { $wire.Memory.RemoveAt(0) }
    $clock = [System.Diagnostics.Stopwatch]::StartNew()
    $wire.Payload = $null
    try {
        $answers = Get-WireAnswer -Calls @($header['calls']) -Mode ([string] $header['mode']) -Payload $payload
    } catch {
        $answers = @(@{ ok = $false; error = (ConvertTo-WireError -ErrorRecord $_ -Command '') })
    }
    try {
        Write-WireFrame -Kind 'result' -Data @{ answers = @($answers); duration_ms = $clock.ElapsedMilliseconds } -Payload $wire.Payload
    } catch {
        $fault = @{ ok = $false; error = (ConvertTo-WireError -ErrorRecord $_ -Command '') }
        Write-WireFrame -Kind 'result' -Data @{ answers = @($fault); duration_ms = $clock.ElapsedMilliseconds }
    }
    $wire.Frames = $null
    Limit-WireMemory
}

function Limit-WireMemory {
    # At most 8 MiB of remembered frames: the oldest are dropped, their numbers stay known.
    $total = 0
    for ($at = $global:Wire.Memory.Count - 1; $at -ge 0; $at--) {
        $entry = $global:Wire.Memory[$at]
        if ($null -eq $entry.Frames) { continue }
        foreach ($frame in $entry.Frames) { $total += $frame.Length }
        if ($total -gt 8MB) { $entry.Frames = $null }
    }
}

function Send-RememberedAnswer {
    param([long] $Sequence)
    $wire = $global:Wire
    foreach ($entry in $wire.Memory) {
        if ($entry.Sequence -eq $Sequence -and $null -ne $entry.Frames) {
            foreach ($frame in $entry.Frames) { Send-WireByte -Bytes $frame }
            return
        }
    }
    $fault = ConvertTo-WireError -Command '' -ErrorRecord (New-WireFault -Type 'AnswerForgotten' -Message (
        "request $Sequence was carried out, its answer is no longer in memory; read the state again"))
    $wire.Sequence = $Sequence
    $wire.Index = 0
    $wire.Reply = $true
    Write-WireFrame -Kind 'result' -Data @{ answers = @(@{ ok = $false; error = $fault }); duration_ms = 0 }
}

function Get-WireAnswer {
    # The answers of the calls of one request, in order.
    param([object[]] $Calls, [string] $Mode, [byte[]] $Payload)
    if ($Mode -cne 'read' -and $Mode -cne 'change') {
        throw (New-WireFault -Type 'BadRequest' -Message "mode '$Mode' is neither read nor change")
    }
    if ($null -ne $Payload -and $Calls.Length -ne 1) {
        throw (New-WireFault -Type 'BadRequest' -Message "a payload goes with one call, here are $($Calls.Length)")
    }
    $failed = $false
    $answers = New-Object System.Collections.ArrayList
    foreach ($call in $Calls) {
        $name = ''
        try {
            if ($call -isnot [System.Collections.IDictionary]) {
                throw (New-WireFault -Type 'BadRequest' -Message 'a call is an object with command and parameters')
            }
            $name = [string] $call['command']
            if ($failed) { throw (New-WireFault -Type 'NotRun' -Message 'a call before it failed') }
            $value = Invoke-WireCall -Name $name -Given $call['parameters'] -Mode $Mode -Payload $Payload
            [void] $answers.Add(@{ ok = $true; value = $value })
        } catch {
            $failed = $Mode -ceq 'change'
            [void] $answers.Add(@{ ok = $false; error = (ConvertTo-WireError -ErrorRecord $_ -Command $name) })
        }
    }
    return , $answers.ToArray()
}

function Invoke-WireCall {
    # Run one box command with parameters by name.
    param([string] $Name, [object] $Given, [string] $Mode, [byte[]] $Payload)
    $function = $null
    # Any function Verb-BoxNoun of the program is a command; nothing else is.
    if ($Name -cmatch '^[A-Z][a-z]+-Box[A-Za-z]+$') {
        $function = Get-Command -Name $Name -CommandType Function -ErrorAction SilentlyContinue
    }
    if ($null -eq $function) { throw (New-WireFault -Type 'UnknownCommand' -Message "this box knows no command '$Name'") }
    if ($Mode -ceq 'read' -and $Name -cnotmatch '^(Get|Test)-') {
        throw (New-WireFault -Type 'ReadOnlyRefused' -Message "$Name changes the box and this session only reads")
    }
    $arguments = Get-WireArgument -Function $function -Given $Given
    if ($null -ne $Payload) {
        if (-not $function.Parameters.ContainsKey('Payload')) {
            throw (New-WireFault -Type 'BadRequest' -Message "$Name takes no payload")
        }
        $arguments['Payload'] = $Payload
    }
    try {
        $values = @(& $function @arguments)
    } catch {
        $bound = $_.Exception -is [System.Management.Automation.ParameterBindingException]
        if ($bound -and ([string] $_.FullyQualifiedErrorId).EndsWith(",$Name", [StringComparison]::Ordinal)) {
            throw (New-WireFault -Type 'BadRequest' -Message $_.Exception.Message)
        }
        throw
    }
    if ($values.Length -gt 1) {
        throw (New-Object -TypeName System.InvalidOperationException -ArgumentList "$Name answered with $($values.Length) values instead of one")
    }
    if ($values.Length -eq 0) { return $null }
    return , $values[0]
}

function Get-WireArgument {
    # The parameters of a call as a table for splatting; unknown and missing ones are told by name.
    param([System.Management.Automation.FunctionInfo] $Function, [object] $Given)
    $own = @($Function.Parameters.Keys | Where-Object {
        $_ -ne 'Payload' -and $_ -notin [System.Management.Automation.Cmdlet]::CommonParameters
    })
    $arguments = @{}
    if ($null -ne $Given) {
        if ($Given -isnot [System.Collections.IDictionary]) { throw (New-WireFault -Type 'BadRequest' -Message 'parameters is an object of names and values') }
        foreach ($name in $Given.Keys) {
            if ($own -cnotcontains $name) {
                throw (New-WireFault -Type 'BadRequest' -Message "$($Function.Name) has no parameter '$name'; it has: $($own -join ', ')")
            }
            if ($null -ne $Given[$name]) { $arguments[$name] = $Given[$name] }
        }
    }
    foreach ($name in $own) {
        if ($arguments.ContainsKey($name)) { continue }
        foreach ($attribute in $Function.Parameters[$name].Attributes) {
            if ($attribute -is [System.Management.Automation.ParameterAttribute] -and $attribute.Mandatory) {
                throw (New-WireFault -Type 'BadRequest' -Message "$($Function.Name) wants the parameter '$name'")
            }
        }
    }
    return $arguments
}
