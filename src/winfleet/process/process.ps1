# Processes. Their command lines are never read: one may hold a key.

function Read-ProcessTable {
    # What CIM knows of processes: the only source of parents on Windows PowerShell.
    param([int[]] $ProcessId)
    $wanted = @{ ClassName = 'Win32_Process'; Property = @('ProcessId', 'ParentProcessId', 'Name', 'ExecutablePath', 'CreationDate') }
    if ($null -ne $ProcessId -and $ProcessId.Length -gt 0) {
        $wanted['Filter'] = @($ProcessId | ForEach-Object { "ProcessId = $_" }) -join ' OR '
    }
    return , @(Get-CimInstance @wanted)
}

function Get-CreationTime {
    # UTC in the 'o' form, or null when Windows does not tell it (protected processes).
    param([System.Diagnostics.Process] $Process)
    try { return $Process.StartTime.ToUniversalTime().ToString('o') } catch { return $null }
}

function Open-Process {
    # Before a look at who it is: as long as a handle is open, the id stays with the process. It is the way to the exit code,
    # too. One that may not be opened is looked at and killed by its id.
    param([System.Diagnostics.Process] $Process)
    try { [void] $Process.Handle } catch { $global:Error.Clear() }
}

function Get-BoxProcess {
    # Name with or without .exe, in any case.
    param([string[]] $Name, [int[]] $ProcessId)
    $byName = $null -ne $Name
    $names = @($Name | ForEach-Object { $_ -replace '\.exe$', '' })
    $answers = @(foreach ($row in (Read-ProcessTable -ProcessId $ProcessId)) {
        if ($byName -and ([string] $row.Name -replace '\.exe$', '') -notin $names) { continue }
        $process = Get-Process -Id ([int] $row.ProcessId) -ErrorAction SilentlyContinue
        if ($null -eq $process) { continue }
        $created = Get-CreationTime -Process $process
        if ($null -eq $created -and $null -ne $row.CreationDate) { $created = ([datetime] $row.CreationDate).ToUniversalTime().ToString('o') }
        $priority = $null
        try { $priority = [string] $process.PriorityClass } catch { $priority = $null }
        $path = $null
        if ($row.ExecutablePath) { $path = [string] $row.ExecutablePath }
        [pscustomobject] @{
            ProcessId = [int] $row.ProcessId; ParentProcessId = [int] $row.ParentProcessId; Name = [string] $row.Name
            ExecutablePath = $path; CreationTimeUtc = $created; PriorityClass = $priority
            SessionId = [int] $process.SessionId; WorkingSetBytes = [long] $process.WorkingSet64
        }
    })
    return , @($answers)
}

function Stop-BoxProcess {
    # The creation time, compared to the millisecond, tells whether the id has passed to another process.
    param([Parameter(Mandatory = $true)] [int] $ProcessId, [Parameter(Mandatory = $true)] [string] $CreationTimeUtc)
    $process = Get-Process -Id $ProcessId -ErrorAction SilentlyContinue
    if ($null -eq $process) { return [pscustomobject] @{ Stopped = $false; ExitCode = $null } }
    Open-Process -Process $process
    $created = Get-CreationTime -Process $process
    if ($null -eq $created -or $CreationTimeUtc.Length -lt 23 -or $created.Substring(0, 23) -ne $CreationTimeUtc.Substring(0, 23)) {
        throw (New-Refusal -Message "process $ProcessId was created $created, not $CreationTimeUtc; the id was reused and nothing was stopped")
    }
    $process.Kill()
    $ended = $process.WaitForExit(15000)
    $code = $null
    if ($ended) { try { $code = $process.ExitCode } catch { $code = $null } }
    return [pscustomobject] @{ Stopped = $ended; ExitCode = $code }
}

function Test-SameTime {
    # CIM tells microseconds, .NET all digits.
    param([object] $One, [object] $Other)
    if ($null -eq $One -or $null -eq $Other) { return $false }
    return [Math]::Abs((([datetime] $One) - ([datetime] $Other)).TotalMilliseconds) -lt 1
}

function Get-ProcessTree {
    # Of Rows those of the processes in Known (id -> creation time) and of all that descends from them, parents first. An
    # id may have passed to a stranger: then neither he nor what was created after him counts.
    param([hashtable] $Known, [object[]] $Rows)
    $created = $Known.Clone()
    $rowOf = @{}
    foreach ($row in $Rows) { $rowOf[[int] $row.ProcessId] = $row }
    $queue = New-Object System.Collections.ArrayList
    $queue.AddRange(@($Known.Keys))
    $tree = New-Object System.Collections.ArrayList
    for ($at = 0; $at -lt $queue.Count; $at++) {
        $id = [int] $queue[$at]
        $stranger = $null
        if ($rowOf.ContainsKey($id)) {
            if (Test-SameTime -One $rowOf[$id].CreationDate -Other $created[$id]) { [void] $tree.Add($rowOf[$id]) } else { $stranger = $rowOf[$id].CreationDate }
        }
        foreach ($row in $Rows) {
            $child = [int] $row.ProcessId
            if ([int] $row.ParentProcessId -ne $id -or $created.ContainsKey($child)) { continue }
            if ($null -eq $row.CreationDate -or $row.CreationDate -lt $created[$id]) { continue }
            if ($null -ne $stranger -and $row.CreationDate -ge $stranger) { continue }
            $created[$child] = $row.CreationDate
            [void] $queue.Add($child)
        }
    }
    return , $tree.ToArray()
}

function Stop-ProcessTree {
    # What starts while we look is found by looking again until nothing new is there, and once more afterwards.
    param([int] $ProcessId, [datetime] $Created)
    $known = @{ $ProcessId = $Created }
    $stopped = @{}
    for ($round = 0; $round -lt 5; $round++) {
        $tree = Get-ProcessTree -Known $known -Rows (Read-ProcessTable)
        $again = Get-ProcessTree -Known $known -Rows (Read-ProcessTable)
        if ($again.Length -gt $tree.Length) { continue }
        $left = @($again | Where-Object { -not $stopped.ContainsKey([int] $_.ProcessId) })
        if ($left.Count -eq 0) { return }
        # Parents first, so that they start no others.
        foreach ($row in $left) {
            $id = [int] $row.ProcessId
            $stopped[$id] = $true
            $known[$id] = $row.CreationDate
            Stop-SameProcess -ProcessId $id -Created $row.CreationDate
        }
    }
}

function Stop-SameProcess {
    # Kill this process, unless its id has passed to another one since it was looked up.
    param([int] $ProcessId, [datetime] $Created)
    $process = Get-Process -Id $ProcessId -ErrorAction SilentlyContinue
    if ($null -eq $process) { return }
    Open-Process -Process $process
    try {
        if (-not (Test-SameTime -One $process.StartTime -Other $Created)) { return }
        $process.Kill()
        [void] $process.WaitForExit(5000)
    } catch {
        # It ended by itself in the meantime.
        return
    }
}
