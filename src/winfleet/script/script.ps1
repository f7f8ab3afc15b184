# Free text of the user: PowerShell in a runspace of its own, or cmd.exe. Output is sent while it comes.

function Invoke-BoxScript {
    # ExitCode: of `exit N` or of the program that failed last; 1 after an error that ended the text; null after a time-out.
    param(
        [Parameter(Mandatory = $true)] [string] $Text, [string] $Shell = 'powershell', [string] $WorkingDirectory,
        [System.Collections.IDictionary] $Environment, [double] $TimeoutSeconds = 0, [byte[]] $Payload
    )
    $folder = $env:USERPROFILE
    if ($WorkingDirectory) { $folder = Resolve-FilePath -Path $WorkingDirectory }
    if (-not [System.IO.Directory]::Exists($folder)) {
        throw (New-Object -TypeName System.IO.DirectoryNotFoundException -ArgumentList "Could not find the working folder '$folder'.")
    }
    if ($Shell -eq 'cmd') {
        return Invoke-CmdText -Text $Text -Folder $folder -Environment $Environment -TimeoutSeconds $TimeoutSeconds -Payload $Payload
    }
    if ($Shell -ne 'powershell') { throw (New-WireFault -Type 'BadRequest' -Message "'$Shell' is no shell; powershell and cmd are") }
    return Invoke-PowerShellText -Text $Text -Folder $folder -Environment $Environment -TimeoutSeconds $TimeoutSeconds -Payload $Payload
}

function Write-WireOutput {
    # Output frames of text, of 256 Ki characters at most: a frame is held several times over while it is made.
    param([string] $Stream, [string] $Text)
    $at = 0
    while ($at -lt $Text.Length) {
        $length = [Math]::Min(262144, $Text.Length - $at)
        # Both halves of a character stay together.
        if ($at + $length -lt $Text.Length -and [char]::IsHighSurrogate($Text[$at + $length - 1])) { $length++ }
        Write-WireFrame -Kind 'output' -Data @{ stream = $Stream; text = $Text.Substring($at, $length) }
        $at += $length
    }
}

function Invoke-CmdText {
    # One line goes on the command line of cmd.exe, several into a batch file of their own.
    param([string] $Text, [string] $Folder, [System.Collections.IDictionary] $Environment, [double] $TimeoutSeconds, [byte[]] $Payload)
    $lines = @($Text.Replace("`r`n", "`n").TrimEnd([char] "`n").Split([char] "`n"))
    $script = $null
    try {
        $line = $lines[0]
        if ($lines.Length -gt 1) {
            $script = [System.IO.Path]::Combine([System.IO.Path]::GetTempPath(), "winfleet-$([Guid]::NewGuid().ToString('N')).cmd")
            Write-NewFile -Path $script -Bytes (ConvertTo-OemByte -Text ("@echo off`r`n" + ($lines -join "`r`n") + "`r`n"))
            $line = '"' + $script + '"'
        }
        $start = New-Object System.Diagnostics.ProcessStartInfo
        $start.FileName = [System.IO.Path]::Combine([Environment]::SystemDirectory, 'cmd.exe')
        $start.Arguments = '/d /s /c "' + $line + '"'
        $start.WorkingDirectory = $Folder
        if ($null -ne $Environment) {
            foreach ($name in $Environment.Keys) { $start.EnvironmentVariables[[string] $name] = [string] $Environment[$name] }
        }
        return Receive-NativeOutput -Start $start -Payload $Payload -TimeoutSeconds $TimeoutSeconds
    } finally {
        if ($null -ne $script) { [System.IO.File]::Delete($script) }
    }
}

function ConvertTo-OemByte {
    # cmd.exe reads batch files in the console's code page; what that lacks cannot be said in one.
    param([string] $Text)
    $page = [int] [Microsoft.Win32.Registry]::GetValue('HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Nls\CodePage', 'OEMCP', '437')
    $encoding = [System.Text.Encoding]::GetEncoding($page, [System.Text.EncoderFallback]::ExceptionFallback, [System.Text.DecoderFallback]::ReplacementFallback)
    try {
        return , $encoding.GetBytes($Text)
    } catch {
        throw (New-WireFault -Type 'BadRequest' -Message "code page $page of this box cannot write that text into a batch file; use one line, or powershell")
    }
}

function Receive-NativeOutput {
    # Run a program; its bytes go into output frames as they are, stdin is the payload and then at its end.
    param([System.Diagnostics.ProcessStartInfo] $Start, [byte[]] $Payload, [double] $TimeoutSeconds)
    $Start.UseShellExecute = $false
    $Start.CreateNoWindow = $true
    $Start.RedirectStandardInput = $true
    $Start.RedirectStandardOutput = $true
    $Start.RedirectStandardError = $true
    $clock = [System.Diagnostics.Stopwatch]::StartNew()
    $process = [System.Diagnostics.Process]::Start($Start)
    try {
        $writing = $null
        if ($null -ne $Payload -and $Payload.Length -gt 0) {
            $writing = $process.StandardInput.BaseStream.WriteAsync($Payload, 0, $Payload.Length)
        } else {
            $process.StandardInput.BaseStream.Dispose()
        }
        $sources = New-Object System.Collections.ArrayList
        foreach ($name in @('stdout', 'stderr')) {
            $stream = $process.StandardOutput.BaseStream
            if ($name -eq 'stderr') { $stream = $process.StandardError.BaseStream }
            $buffer = New-Object byte[] -ArgumentList 65536
            [void] $sources.Add(@{ Name = $name; Stream = $stream; Buffer = $buffer; Task = $stream.ReadAsync($buffer, 0, $buffer.Length) })
        }
        $timedOut = $false
        $lastSign = $clock.Elapsed.TotalSeconds
        while ($sources.Count -gt 0) {
            $at = [System.Threading.Tasks.Task]::WaitAny([System.Threading.Tasks.Task[]] @($sources | ForEach-Object { $_.Task }), 200)
            $now = $clock.Elapsed.TotalSeconds
            if ($null -ne $writing -and $writing.IsCompleted) {
                try { $process.StandardInput.BaseStream.Dispose() } catch { $global:Error.Clear() }
                $writing = $null
            }
            if ($at -ge 0) {
                $lastSign = $now
                $source = $sources[$at]
                $got = 0
                if (-not $source.Task.IsFaulted) { $got = $source.Task.Result }
                if ($got -le 0) { $sources.RemoveAt($at); continue }
                $piece = New-Object byte[] -ArgumentList $got
                [Array]::Copy($source.Buffer, $piece, $got)
                Write-WireFrame -Kind 'output' -Data @{ stream = $source.Name; raw = $true } -Payload $piece
                $source.Task = $source.Stream.ReadAsync($source.Buffer, 0, $source.Buffer.Length)
            } elseif ($process.HasExited -and $now - $lastSign -gt 2) {
                # Something that it started in the background keeps the pipes open: that is not our command any more.
                break
            }
            if ($TimeoutSeconds -gt 0 -and $now -gt $TimeoutSeconds -and -not $timedOut -and -not $process.HasExited) {
                $timedOut = $true
                Stop-ProcessTree -ProcessId $process.Id -Created $process.StartTime
            }
        }
        if (-not $timedOut) { $timedOut = -not (Wait-ProcessEnd -Process $process -Clock $clock -TimeoutSeconds $TimeoutSeconds) }
        $code = $null
        if (-not $timedOut) { $code = $process.ExitCode }
        return [pscustomobject] @{ ExitCode = $code; TimedOut = $timedOut }
    } finally {
        $process.Dispose()
    }
}

function Wait-ProcessEnd {
    # A program may close its output and go on. False when its time was up and it was stopped.
    param([System.Diagnostics.Process] $Process, [System.Diagnostics.Stopwatch] $Clock, [double] $TimeoutSeconds)
    if ($TimeoutSeconds -le 0) { $Process.WaitForExit(); return $true }
    $left = [int] [Math]::Max(0, ($TimeoutSeconds - $Clock.Elapsed.TotalSeconds) * 1000)
    if ($Process.WaitForExit($left)) { return $true }
    Stop-ProcessTree -ProcessId $Process.Id -Created $Process.StartTime
    return $false
}

function Disconnect-StandardInput {
    # Programs that the text starts inherit stdin: without this they would read the requests of this session.
    if ($global:Wire.ContainsKey('EmptyInput')) { return }
    $global:Wire['EmptyInput'] = $null
    try {
        $native = Get-NativeType -Name 'StandardHandle' -Table @{ 'kernel32.dll' = @{ SetStdHandle = [bool], [int], [IntPtr] } }
        $pipe = New-Object System.IO.Pipes.AnonymousPipeServerStream -ArgumentList ([System.IO.Pipes.PipeDirection]::Out), ([System.IO.HandleInheritability]::Inheritable)
        [void] $native::SetStdHandle(-10, $pipe.ClientSafePipeHandle.DangerousGetHandle())
        # The reading end lives as long as the session, the writing end not at all: whoever reads is at the end.
        $global:Wire['EmptyInput'] = $pipe.ClientSafePipeHandle
        [Console]::SetIn([System.IO.TextReader]::Null)
        $pipe.SafePipeHandle.Dispose()
    } catch {
        # Only programs that read stdin would notice.
        $global:Error.Clear()
    }
}

function Invoke-PowerShellText {
    param([string] $Text, [string] $Folder, [System.Collections.IDictionary] $Environment, [double] $TimeoutSeconds, [byte[]] $Payload)
    $tokens = $null
    $faults = $null
    $tree = [System.Management.Automation.Language.Parser]::ParseInput($Text, [ref] $tokens, [ref] $faults)
    if (@($faults).Count -gt 0) {
        foreach ($fault in $faults) { Write-WireOutput -Stream 'stderr' -Text "$($fault.Message) At line $($fault.Extent.StartLineNumber): $($fault.Extent.Text)`n" }
        return [pscustomobject] @{ ExitCode = 1; TimedOut = $false }
    }
    if ($null -eq $tree.BeginBlock -and $null -eq $tree.ProcessBlock -and $tree.EndBlock.Unnamed) {
        $Text += "`n`n" + '$global:WFSuccess = $?'
    }
    Disconnect-StandardInput
    $before = @{}
    $runspace = [System.Management.Automation.Runspaces.RunspaceFactory]::CreateRunspace([System.Management.Automation.Runspaces.InitialSessionState]::CreateDefault())
    $shell = [System.Management.Automation.PowerShell]::Create()
    try {
        if ($null -ne $Environment) {
            foreach ($name in $Environment.Keys) {
                $before[$name] = [Environment]::GetEnvironmentVariable([string] $name)
                [Environment]::SetEnvironmentVariable([string] $name, [string] $Environment[$name])
            }
        }
        $runspace.Open()
        [void] $runspace.SessionStateProxy.Path.SetLocation($Folder)
        $runspace.SessionStateProxy.SetVariable('ProgressPreference', 'SilentlyContinue')
        $shell.Runspace = $runspace
        $queue = [hashtable]::Synchronized(@{ Written = [long] 0; Sent = [long] 0 })
        [void] $shell.AddScript((Get-RenderingText)).AddArgument($Text).AddArgument($queue)
        return Receive-ShellOutput -Shell $shell -Queue $queue -Payload $Payload -TimeoutSeconds $TimeoutSeconds
    } finally {
        foreach ($name in $before.Keys) { [Environment]::SetEnvironmentVariable([string] $name, $before[$name]) }
        # A runspace that did not stop would make Dispose wait for ever.
        if ($shell.InvocationStateInfo.State -ne [System.Management.Automation.PSInvocationState]::Running -and
            $shell.InvocationStateInfo.State -ne [System.Management.Automation.PSInvocationState]::Stopping) {
            $shell.Dispose()
            $runspace.Dispose()
        }
    }
}

function Get-RenderingText {
    # What runs in the other runspace: strings pass as they are, runs of other objects are formatted together. Text
    # that is ahead of what was sent by 4 Mi characters waits: it must not fill the memory of a shell.
    return 'param($WFText, $WFQueue)
function Out-WireText {
    begin { $format = $null }
    process {
        if ($_ -is [string]) {
            if ($null -ne $format) { $format.End(); $format = $null }
            $_
        } elseif ($null -ne $_) {
            if ($null -eq $format) {
                $format = { Out-String -Stream -Width 160 }.GetSteppablePipeline()
                $format.Begin($true)
            }
            $format.Process($_)
        }
    }
    end { if ($null -ne $format) { $format.End() } }
}
function Wait-WireRoom {
    process {
        $_
        $WFQueue.Written += ([string] $_).Length + 1
        while ($WFQueue.Written - $WFQueue.Sent -gt 4MB) { [System.Threading.Thread]::Sleep(10) }
    }
}
$input | . ([ScriptBlock]::Create($WFText)) | Out-WireText | Wait-WireRoom'
}

function Receive-ShellOutput {
    # Send what the runspace writes until it has ended or its time is up.
    param([System.Management.Automation.PowerShell] $Shell, [hashtable] $Queue, [byte[]] $Payload, [double] $TimeoutSeconds)
    $given = New-Object 'System.Management.Automation.PSDataCollection[psobject]'
    if ($null -ne $Payload) {
        foreach ($line in (New-Object System.Text.UTF8Encoding -ArgumentList $false).GetString($Payload).Replace("`r`n", "`n").TrimEnd([char] "`n").Split([char] "`n")) { $given.Add($line) }
    }
    $given.Complete()
    $output = New-Object 'System.Management.Automation.PSDataCollection[psobject]'
    $settings = New-Object System.Management.Automation.PSInvocationSettings
    # So that `exit N` arrives here with its N.
    $settings.ExposeFlowControlExceptions = $true
    $clock = [System.Diagnostics.Stopwatch]::StartNew()
    $began = [datetime]::Now
    $running = $Shell.BeginInvoke($given, $output, $settings, $null, $null)
    while (-not $running.AsyncWaitHandle.WaitOne(100)) {
        Send-ShellOutput -Shell $Shell -Output $output -Queue $Queue
        if ($TimeoutSeconds -gt 0 -and $clock.Elapsed.TotalSeconds -gt $TimeoutSeconds) {
            Stop-ShellRun -Shell $Shell -Began $began
            Send-ShellOutput -Shell $Shell -Output $output -Queue $Queue
            return [pscustomobject] @{ ExitCode = $null; TimedOut = $true }
        }
    }
    $code = 0
    try {
        [void] $Shell.EndInvoke($running)
        Send-ShellOutput -Shell $Shell -Output $output -Queue $Queue
        if ($Shell.Runspace.SessionStateProxy.GetVariable('WFSuccess') -eq $false) {
            $code = $Shell.Runspace.SessionStateProxy.GetVariable('LASTEXITCODE')
            if (-not $code) { $code = 1 }
        }
    } catch {
        Send-ShellOutput -Shell $Shell -Output $output -Queue $Queue
        $cause = $_.Exception
        while ($null -ne $cause.InnerException -and $cause -isnot [System.Management.Automation.ExitException]) { $cause = $cause.InnerException }
        if ($cause -is [System.Management.Automation.ExitException]) {
            $code = [int] $cause.Argument
        } else {
            $code = 1
            $record = $_
            if ($_.Exception.InnerException -is [System.Management.Automation.RuntimeException]) { $record = $_.Exception.InnerException.ErrorRecord }
            Write-WireOutput -Stream 'stderr' -Text (ConvertTo-ErrorText -ErrorRecord $record)
        }
    }
    return [pscustomobject] @{ ExitCode = [int] $code; TimedOut = $false }
}

function Stop-ShellRun {
    # First the programs that the text started and waits for, then the text.
    param([System.Management.Automation.PowerShell] $Shell, [datetime] $Began)
    foreach ($row in (Read-ProcessTable)) {
        if ([int] $row.ParentProcessId -eq $PID -and $null -ne $row.CreationDate -and $row.CreationDate -ge $Began.AddSeconds(-1)) {
            Stop-ProcessTree -ProcessId ([int] $row.ProcessId) -Created $row.CreationDate
        }
    }
    $stopping = $Shell.BeginStop($null, $null)
    [void] $stopping.AsyncWaitHandle.WaitOne(10000)
}

function Send-ShellOutput {
    # What has come since the last time, in few frames.
    param([System.Management.Automation.PowerShell] $Shell, [object] $Output, [hashtable] $Queue)
    $out = New-Object System.Text.StringBuilder
    foreach ($line in $Output.ReadAll()) {
        [void] $out.Append([string] $line).Append("`n")
        $Queue.Sent += ([string] $line).Length + 1
        if ($out.Length -lt 262144) { continue }
        Write-WireOutput -Stream 'stdout' -Text $out.ToString()
        [void] $out.Clear()
    }
    foreach ($record in $Shell.Streams.Information.ReadAll()) { [void] $out.Append([string] $record).Append("`n") }
    Write-WireOutput -Stream 'stdout' -Text $out.ToString()
    $errors = New-Object System.Text.StringBuilder
    foreach ($record in $Shell.Streams.Warning.ReadAll()) { [void] $errors.Append("WARNING: $record`n") }
    foreach ($record in $Shell.Streams.Error.ReadAll()) { [void] $errors.Append((ConvertTo-ErrorText -ErrorRecord $record)) }
    Write-WireOutput -Stream 'stderr' -Text $errors.ToString()
}

function ConvertTo-ErrorText {
    # A line that a native program wrote to stderr is that line; an error has its place in the text.
    param([System.Management.Automation.ErrorRecord] $ErrorRecord)
    $message = [string] $ErrorRecord.Exception.Message
    if (([string] $ErrorRecord.FullyQualifiedErrorId).StartsWith('NativeCommandError', [StringComparison]::Ordinal)) { return "$message`n" }
    $position = ''
    if ($null -ne $ErrorRecord.InvocationInfo) { $position = [string] $ErrorRecord.InvocationInfo.PositionMessage }
    if ($position.Length -eq 0) { return "$message`n" }
    return "$message`n$($position.Replace("`r`n", "`n"))`n"
}
