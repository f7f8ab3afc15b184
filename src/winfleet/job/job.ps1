# Detached jobs: a folder that says what to do, and an on-demand task that does it, outliving this session.

function Get-JobText {
    # The text of one of the job's small files, or null. Most are missing most of the time: that is no exception.
    param([string] $Folder, [string] $Name)
    $path = [System.IO.Path]::Combine($Folder, $Name)
    if (-not [System.IO.File]::Exists($path)) { return $null }
    try {
        return [System.Text.Encoding]::UTF8.GetString([Convert]::FromBase64String((Read-FileBase64 -Path $path))).Trim()
    } catch {
        # Replaced between the look and the opening.
        return $null
    }
}

function Get-JobDescription {
    # What job.json holds, or null.
    param([string] $Folder)
    $text = Get-JobText -Folder $Folder -Name 'job.json'
    if (-not $text) { return $null }
    return ConvertFrom-WireJson -Text $text
}

function Get-JobProcess {
    # The live process of the job, or null. An id alone proves nothing: it may have passed to another process.
    param([string] $Folder)
    $parts = @(([string] (Get-JobText -Folder $Folder -Name 'pid')).Split([char] ' '))
    if ($parts.Length -ne 2) { return $null }
    $process = Get-Process -Id ([int] $parts[0]) -ErrorAction SilentlyContinue
    if ($null -eq $process) { return $null }
    Open-Process -Process $process
    if ((Get-CreationTime -Process $process) -ne $parts[1]) { return $null }
    return $process
}

function Get-JobState {
    # absent, running, done or lost.
    param([string] $Folder)
    $job = Get-JobDescription -Folder $Folder
    if ($null -eq $job) { return 'absent' }
    if ($null -ne (Get-JobText -Folder $Folder -Name 'rc')) { return 'done' }
    if ($null -ne (Get-JobProcess -Folder $Folder)) { return 'running' }
    if ($null -eq (Get-JobText -Folder $Folder -Name 'pid')) {
        $task = (Get-BoxTask -TaskPath ([string] $job['TaskPath']))[0]
        if ([string] $task.State -in @('Running', 'Queued')) { return 'running' }
    }
    # It may have ended between the first look and the second.
    if ($null -ne (Get-JobText -Folder $Folder -Name 'rc')) { return 'done' }
    return 'lost'
}

function Start-BoxJob {
    param(
        [Parameter(Mandatory = $true)] [string] $Path, [Parameter(Mandatory = $true)] [string] $Hash,
        [Parameter(Mandatory = $true)] [object[]] $Steps, [Parameter(Mandatory = $true)] [string] $TaskPath
    )
    $folder = Resolve-FilePath -Path $Path
    $state = Get-JobState -Folder $folder
    if ($state -ne 'absent') {
        $held = [string] (Get-JobDescription -Folder $folder)['Hash']
        if ($state -eq 'running' -and $held -cne $Hash) {
            throw (New-Refusal -Message "another job runs in $Path; stop it first")
        }
        if ($held -ceq $Hash -and ($state -eq 'running' -or ($state -eq 'done' -and (Get-JobText -Folder $folder -Name 'rc') -eq '0'))) {
            return [pscustomobject] @{ State = $state }
        }
    }
    [void] [System.IO.Directory]::CreateDirectory($folder)
    foreach ($name in @('rc', 'pid', 'started', 'step', 'stdout.log')) { [System.IO.File]::Delete([System.IO.Path]::Combine($folder, $name)) }
    Write-JobFile -Folder $folder -Name 'job.json' -Text (ConvertTo-WireJson -Value @{ Hash = $Hash; Steps = $Steps; TaskPath = $TaskPath })
    Write-JobFile -Folder $folder -Name 'run.ps1' -Text (Get-JobRunnerText -Folder $folder)
    [void] (Register-BoxTask -TaskPath $TaskPath -Xml (Get-JobTaskXml -Folder $folder))
    [void] (Start-BoxTask -TaskPath $TaskPath)
    # Until the runner has said who it is, the job could not be told from a lost one.
    $clock = [System.Diagnostics.Stopwatch]::StartNew()
    while ($clock.Elapsed.TotalSeconds -lt 30 -and $null -eq (Get-JobText -Folder $folder -Name 'pid')) {
        if ($clock.Elapsed.TotalSeconds -gt 3 -and (Get-JobState -Folder $folder) -eq 'lost') { break }
        Start-Sleep -Milliseconds 50
    }
    return [pscustomobject] @{ State = (Get-JobState -Folder $folder) }
}

function Get-JobTaskXml {
    # SYSTEM: no password, no session that could end. Read as text, not as a file, so no execution policy applies.
    param([string] $Folder)
    $script = [System.IO.Path]::Combine($Folder, 'run.ps1').Replace("'", "''")
    $arguments = '-NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command ". ([ScriptBlock]::Create([IO.File]::ReadAllText(''' + $script + ''')))"'
    $program = [System.IO.Path]::Combine([Environment]::SystemDirectory, 'WindowsPowerShell\v1.0\powershell.exe')
    return '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">' +
        '<Principals><Principal id="Author"><UserId>S-1-5-18</UserId><RunLevel>HighestAvailable</RunLevel></Principal></Principals>' +
        '<Settings><MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>' +
        '<DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries><StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>' +
        '<ExecutionTimeLimit>PT0S</ExecutionTimeLimit><Priority>5</Priority></Settings>' +
        '<Actions Context="Author"><Exec><Command>' + [System.Security.SecurityElement]::Escape($program) + '</Command>' +
        '<Arguments>' + [System.Security.SecurityElement]::Escape($arguments) + '</Arguments></Exec></Actions></Task>'
}

function Get-BoxJob {
    param([Parameter(Mandatory = $true)] [string] $Path, [long] $LogOffsetBytes = 0, [long] $LogMaxBytes = 1048576)
    $folder = Resolve-FilePath -Path $Path
    $state = Get-JobState -Folder $folder
    $hash = $null
    if ($state -ne 'absent') { $hash = [string] (Get-JobDescription -Folder $folder)['Hash'] }
    $code = $null
    if ($state -eq 'done') { $code = [int] (Get-JobText -Folder $folder -Name 'rc') }
    $id = $null
    $owner = Get-JobText -Folder $folder -Name 'pid'
    if ($owner) { $id = [int] $owner.Split([char] ' ')[0] }
    $log = Read-JobLog -Folder $folder -OffsetBytes $LogOffsetBytes -MaxBytes $LogMaxBytes -Whole ($state -ne 'running')
    return [pscustomobject] @{
        State = $state; Hash = $hash; ExitCode = $code; StartedUtc = Get-JobText -Folder $folder -Name 'started'
        ProcessId = $id; Step = Get-JobText -Folder $folder -Name 'step'
        Log = $log.Text; LogSizeBytes = $log.SizeBytes; LogNextOffsetBytes = $log.NextOffsetBytes
    }
}

function Read-JobLog {
    # Text from the offset, in whole lines while more may come, so that no character is cut in two.
    param([string] $Folder, [long] $OffsetBytes, [long] $MaxBytes, [bool] $Whole)
    $answer = @{ Text = ''; SizeBytes = [long] 0; NextOffsetBytes = $OffsetBytes }
    $path = [System.IO.Path]::Combine($Folder, 'stdout.log')
    if (-not [System.IO.File]::Exists($path)) { return $answer }
    $stream = Open-FileForReading -Path $path
    try {
        $answer.SizeBytes = [long] $stream.Length
        $length = [int] [Math]::Max(0, [Math]::Min($MaxBytes, $stream.Length - $OffsetBytes))
        $bytes = New-Object byte[] -ArgumentList $length
        [void] $stream.Seek([Math]::Min($OffsetBytes, $stream.Length), [System.IO.SeekOrigin]::Begin)
        $length = $stream.Read($bytes, 0, $length)
    } finally {
        $stream.Dispose()
    }
    if (-not $Whole -or $OffsetBytes + $length -lt $answer.SizeBytes) {
        $end = $length
        while ($end -gt 0 -and $bytes[$end - 1] -ne 10) { $end-- }
        if ($end -gt 0 -or $length -lt $MaxBytes) { $length = $end }
    }
    $answer.NextOffsetBytes = $OffsetBytes + $length
    $answer.Text = ConvertFrom-LogByte -Bytes $bytes -Count $length
    return $answer
}

function ConvertFrom-LogByte {
    # Programs write UTF-8 or the OEM code page; which, only the bytes tell.
    param([byte[]] $Bytes, [int] $Count)
    try {
        return (New-Object System.Text.UTF8Encoding -ArgumentList $false, $true).GetString($Bytes, 0, $Count)
    } catch {
        $part = New-Object byte[] -ArgumentList $Count
        [Array]::Copy($Bytes, $part, $Count)
        return ConvertFrom-OemByte -Bytes $part
    }
}

function Stop-BoxJob {
    param([Parameter(Mandatory = $true)] [string] $Path)
    $folder = Resolve-FilePath -Path $Path
    $process = Get-JobProcess -Folder $folder
    if ($null -ne $process) { Stop-ProcessTree -ProcessId $process.Id -Created $process.StartTime }
    return [pscustomobject] @{ State = (Get-JobState -Folder $folder) }
}
