# What runs in the task of a job. Start-BoxJob writes these functions into the job's run.ps1, with those they need.

function Get-JobRunnerText {
    # A program of its own: it must not need the session that started it.
    param([string] $Folder)
    $names = @(
        'Initialize-WireJson', 'ConvertFrom-WireJson', 'Step-WireJson', 'Assert-WireJsonMark', 'Read-WireJson', 'Read-WireJsonObject',
        'Read-WireJsonArray', 'ConvertFrom-WireText', 'ConvertFrom-WireNumber', 'ConvertTo-WireJson', 'ConvertTo-WireText', 'Add-WireJson',
        'Open-FileForReading', 'Get-FileSum', 'Move-FileInPlace', 'Set-ReadOnly', 'Get-InnermostException', 'ConvertTo-ArgumentText',
        'Start-JobRun', 'Write-JobFile', 'Write-JobLog', 'Invoke-JobStep', 'Invoke-JobProgram', 'Invoke-JobBatch', 'Invoke-JobDownload',
        'Invoke-JobVerify', 'Test-JobFile', 'Remove-JobFile', 'Copy-ToJobLog')
    $text = New-Object System.Text.StringBuilder
    foreach ($name in $names) {
        [void] $text.Append("function $name {" + (Get-Command -Name $name -CommandType Function).Definition + "}`r`n")
    }
    [void] $text.Append("Initialize-WireJson`r`nStart-JobRun -Folder '" + $Folder.Replace("'", "''") + "'`r`n")
    return $text.ToString()
}

function Write-JobFile {
    # A reader sees all of it or nothing.
    param([string] $Folder, [string] $Name, [string] $Text)
    $path = [System.IO.Path]::Combine($Folder, $Name)
    [System.IO.File]::WriteAllText("$path.new", $Text, (New-Object System.Text.UTF8Encoding -ArgumentList $false))
    [void] (Move-FileInPlace -Source "$path.new" -Destination $path)
}

function Start-JobRun {
    # Runs the steps of job.json and writes rc last; ends this process.
    param([string] $Folder)
    $ErrorActionPreference = 'Stop'
    $ProgressPreference = 'SilentlyContinue'
    $self = [System.Diagnostics.Process]::GetCurrentProcess()
    Write-JobFile -Folder $Folder -Name 'started' -Text ([datetime]::UtcNow.ToString('o'))
    Write-JobFile -Folder $Folder -Name 'pid' -Text "$PID $($self.StartTime.ToUniversalTime().ToString('o'))"
    $share = [System.IO.FileShare] 'ReadWrite, Delete'
    $log = [System.IO.FileStream]::new(([System.IO.Path]::Combine($Folder, 'stdout.log')), ([System.IO.FileMode]::Append), ([System.IO.FileAccess]::Write), $share)
    $code = 1
    try {
        $job = ConvertFrom-WireJson -Text ([System.IO.File]::ReadAllText([System.IO.Path]::Combine($Folder, 'job.json')))
        $run = @{ Folder = $Folder; Log = $log; Environment = @{}; Resumed = $false; Again = $null }
        $all = [Environment]::GetEnvironmentVariables()
        foreach ($name in $all.Keys) { $run.Environment[[string] $name] = [string] $all[$name] }
        $code = 0
        $steps = @($job['Steps'])
        for ($at = 0; $at -lt $steps.Length; $at++) {
            Write-JobFile -Folder $Folder -Name 'step' -Text ([string] $steps[$at]['Name'])
            $code = Invoke-JobStep -Run $run -Step $steps[$at]
            if ($code -eq 0) { continue }
            if (-not $run.Again) { break }
            $names = @($steps | ForEach-Object { [string] $_['Name'] })
            $back = [array]::IndexOf($names, [string] $run.Again)
            $run.Again = $null
            if ($back -lt 0 -or $back -ge $at) { break }
            $at = $back - 1
        }
    } catch {
        $code = 1
        Write-JobLog -Log $log -Text ([string] $_.Exception.Message)
    } finally {
        $log.Dispose()
    }
    Write-JobFile -Folder $Folder -Name 'rc' -Text ([string] $code)
    exit $code
}

function Write-JobLog {
    # A line of our own.
    param([System.IO.Stream] $Log, [string] $Text)
    $bytes = [System.Text.Encoding]::UTF8.GetBytes("$Text`r`n")
    $Log.Write($bytes, 0, $bytes.Length)
    $Log.Flush()
}

function Invoke-JobStep {
    # The exit code of one step. 9009: the program could not be started; 1: a check failed.
    param([hashtable] $Run, [object] $Step)
    $code = 1
    try {
        switch ([string] $Step['Kind']) {
            'run' { $code = Invoke-JobProgram -Run $Run -Step $Step }
            'environment' { $code = Invoke-JobBatch -Run $Run -Step $Step }
            'download' { $code = Invoke-JobDownload -Run $Run -Step $Step }
            'verify' { $code = Invoke-JobVerify -Run $Run -Step $Step }
            default { Write-JobLog -Log $Run.Log -Text "$($Step['Name']): '$($Step['Kind'])' is no kind of step" }
        }
    } catch {
        $cause = Get-InnermostException -ErrorRecord $_
        Write-JobLog -Log $Run.Log -Text "$($Step['Name']): $($cause.Message)"
        if ($cause -is [System.ComponentModel.Win32Exception]) { $code = 9009 }
    }
    return $code
}

function ConvertTo-ArgumentText {
    # A command line that CommandLineToArgvW takes apart into exactly these arguments.
    param([string[]] $Arguments)
    $quoted = foreach ($one in $Arguments) {
        if ($one.Length -gt 0 -and $one -notmatch '[\s"]') { $one; continue }
        '"' + (($one -replace '(\\*)"', '$1$1\"') -replace '(\\+)$', '$1$1') + '"'
    }
    return @($quoted) -join ' '
}

function Copy-ToJobLog {
    # Run a program, its output into the log as it comes; its exit code.
    param([hashtable] $Run, [string] $Program, [string] $Arguments, [string] $Folder, [System.Collections.IDictionary] $More)
    $start = New-Object System.Diagnostics.ProcessStartInfo
    $start.FileName = $Program
    $start.Arguments = $Arguments
    $start.WorkingDirectory = $Folder
    $start.UseShellExecute = $false
    $start.CreateNoWindow = $true
    $start.RedirectStandardInput = $true
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    $start.EnvironmentVariables.Clear()
    foreach ($name in $Run.Environment.Keys) { $start.EnvironmentVariables[$name] = $Run.Environment[$name] }
    if ($null -ne $More) { foreach ($name in $More.Keys) { $start.EnvironmentVariables[[string] $name] = [string] $More[$name] } }
    $process = [System.Diagnostics.Process]::Start($start)
    $process.StandardInput.BaseStream.Dispose()
    $streams = @($process.StandardOutput.BaseStream, $process.StandardError.BaseStream)
    $buffers = @((New-Object byte[] -ArgumentList 65536), (New-Object byte[] -ArgumentList 65536))
    $tasks = @($streams[0].ReadAsync($buffers[0], 0, 65536), $streams[1].ReadAsync($buffers[1], 0, 65536))
    $open = New-Object System.Collections.ArrayList
    $open.AddRange(@(0, 1))
    $quiet = [System.Diagnostics.Stopwatch]::StartNew()
    while ($open.Count -gt 0) {
        $at = [System.Threading.Tasks.Task]::WaitAny([System.Threading.Tasks.Task[]] @($open | ForEach-Object { $tasks[$_] }), 500)
        if ($at -lt 0) {
            # A compiler's server or the like that stays behind holds the pipes open.
            if ($process.HasExited -and $quiet.Elapsed.TotalSeconds -gt 3) { break }
            continue
        }
        $quiet.Restart()
        $which = $open[$at]
        $got = 0
        if (-not $tasks[$which].IsFaulted) { $got = $tasks[$which].Result }
        if ($got -le 0) { $open.RemoveAt($at); continue }
        $Run.Log.Write($buffers[$which], 0, $got)
        $Run.Log.Flush()
        $tasks[$which] = $streams[$which].ReadAsync($buffers[$which], 0, 65536)
    }
    $process.WaitForExit()
    return $process.ExitCode
}

function Invoke-JobProgram {
    param([hashtable] $Run, [object] $Step)
    $program = [string] $Step['Program']
    $arguments = ConvertTo-ArgumentText -Arguments @($Step['Arguments'] | Where-Object { $null -ne $_ } | ForEach-Object { [string] $_ })
    $folder = [string] $Step['WorkingDirectory']
    if (-not $folder) { $folder = $Run.Folder }
    if ($program -match '\.(bat|cmd)$') {
        $arguments = '/d /s /c ""' + $program + '" ' + $arguments + '"'
        $program = [System.IO.Path]::Combine([Environment]::SystemDirectory, 'cmd.exe')
    }
    return Copy-ToJobLog -Run $Run -Program $program -Arguments $arguments -Folder $folder -More $Step['Environment']
}

function Invoke-JobBatch {
    # Run a batch file and keep the environment that it leaves. cmd /u writes that as UTF-16, whatever the code page.
    param([hashtable] $Run, [object] $Step)
    $batch = [string] $Step['Batch']
    if (-not [System.IO.File]::Exists($batch)) {
        Write-JobLog -Log $Run.Log -Text "$($Step['Name']): there is no $batch"
        return 9009
    }
    $cmd = [System.IO.Path]::Combine([Environment]::SystemDirectory, 'cmd.exe')
    $file = [System.IO.Path]::Combine($Run.Folder, 'environment.txt')
    $arguments = ConvertTo-ArgumentText -Arguments @($Step['Arguments'] | Where-Object { $null -ne $_ } | ForEach-Object { [string] $_ })
    $line = '/d /s /c "call "' + $batch + '" ' + $arguments + ' && "' + $cmd + '" /u /d /c set >"' + $file + '""'
    $code = Copy-ToJobLog -Run $Run -Program $cmd -Arguments $line -Folder $Run.Folder
    if ($code -ne 0) { return $code }
    $kept = @{}
    foreach ($entry in [System.IO.File]::ReadAllText($file, [System.Text.Encoding]::Unicode).Split([char] "`n")) {
        $cut = $entry.IndexOf([char] '=')
        if ($cut -gt 0) { $kept[$entry.Substring(0, $cut)] = $entry.Substring($cut + 1).TrimEnd([char] "`r") }
    }
    [System.IO.File]::Delete($file)
    if ($kept.Count -eq 0) {
        Write-JobLog -Log $Run.Log -Text "$($Step['Name']): $batch left no environment"
        return 1
    }
    $Run.Environment = $kept
    return 0
}

function Remove-JobFile {
    # Also one that is read-only.
    param([string] $Path)
    if (-not [System.IO.File]::Exists($Path)) { return }
    [void] (Set-ReadOnly -Path $Path -Wanted $false)
    [System.IO.File]::Delete($Path)
}

function Invoke-JobDownload {
    # What is still missing of a file. A curl before 8.5 takes the answer to "nothing is missing" for an error (416, code 22).
    param([hashtable] $Run, [object] $Step)
    $path = [string] $Step['Path']
    $wanted = [long] $Step['SizeBytes']
    $size = [long] -1
    if ([System.IO.File]::Exists($path)) { $size = (New-Object System.IO.FileInfo -ArgumentList $path).Length }
    if ($size -gt $wanted) {
        Write-JobLog -Log $Run.Log -Text "$($Step['Name']): $path had $size bytes, more than $wanted; deleted"
        Remove-JobFile -Path $path
        $size = [long] -1
    }
    $Run.Resumed = ($size -ge 0)
    if ($size -eq $wanted) {
        Write-JobLog -Log $Run.Log -Text "$($Step['Name']): $path is there already, $size bytes"
        return 0
    }
    $code = Invoke-JobProgram -Run $Run -Step $Step
    if ($code -eq 33 -and $Run.Resumed) {
        # The server gives the file as a whole only.
        Remove-JobFile -Path $path
        $Run.Resumed = $false
        $code = Invoke-JobProgram -Run $Run -Step $Step
    }
    return $code
}

function Test-JobFile {
    # What is wrong with a file, or null.
    param([object] $Step)
    $path = [string] $Step['Path']
    $size = (New-Object System.IO.FileInfo -ArgumentList $path).Length
    if ($size -ne [long] $Step['SizeBytes']) { return "$path has $size bytes, not $($Step['SizeBytes'])" }
    $magic = [string] $Step['MagicHex']
    if ($magic) {
        $start = New-Object byte[] -ArgumentList ([int] ($magic.Length / 2))
        $stream = Open-FileForReading -Path $path
        try { [void] $stream.Read($start, 0, $start.Length) } finally { $stream.Dispose() }
        $seen = ([BitConverter]::ToString($start) -replace '-', '')
        if ($seen -ne $magic) { return "$path begins with $seen, not $magic" }
    }
    $sum = Get-FileSum -Path $path
    if ($sum -ne [string] $Step['Sha256']) { return "$path has SHA-256 $sum, not $($Step['Sha256'])" }
    return $null
}

function Invoke-JobVerify {
    # Check a file and put it where it belongs, read-only, with a stamp that tells later runs not to read it again.
    param([hashtable] $Run, [object] $Step)
    $path = [string] $Step['Path']
    $destination = [string] $Step['Destination']
    $fault = Test-JobFile -Step $Step
    if ($null -ne $fault) {
        Write-JobLog -Log $Run.Log -Text "$($Step['Name']): $fault"
        $again = [string] $Step['Again']
        if ($again) {
            Remove-JobFile -Path $path
            # What an earlier try left may have been of another file; what this job fetched as a whole will be the same again.
            if ($Run.Resumed) {
                Write-JobLog -Log $Run.Log -Text "$($Step['Name']): deleted, fetched anew"
                $Run.Again = $again
            }
        }
        return 1
    }
    $size = (New-Object System.IO.FileInfo -ArgumentList $path).Length
    [void] (Move-FileInPlace -Source $path -Destination $destination)
    [void] (Set-ReadOnly -Path $destination -Wanted $true)
    $stamp = @{ SizeBytes = $size; Sha256 = ([string] $Step['Sha256']).ToLowerInvariant(); LastWriteTimeUtc = [System.IO.File]::GetLastWriteTimeUtc($destination).ToString('o') }
    Write-JobFile -Folder ([System.IO.Path]::GetDirectoryName($destination)) -Name ([System.IO.Path]::GetFileName($destination) + '.verified.json') -Text (ConvertTo-WireJson -Value $stamp)
    Write-JobLog -Log $Run.Log -Text "$($Step['Name']): $destination verified, $size bytes"
    return 0
}
