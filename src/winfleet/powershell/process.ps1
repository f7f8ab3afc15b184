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
    $created = Get-CreationTime -Process $process
    if ($null -eq $created -or $CreationTimeUtc.Length -lt 23 -or $created.Substring(0, 23) -ne $CreationTimeUtc.Substring(0, 23)) {
        throw (New-Refusal -Message "process $ProcessId was created $created, not $CreationTimeUtc; the id was reused and nothing was stopped")
    }
    # Opened now: afterwards there is no way to its exit code.
    [void] $process.Handle
    $process.Kill()
    $ended = $process.WaitForExit(15000)
    $code = $null
    if ($ended) { $code = $process.ExitCode }
    return [pscustomobject] @{ Stopped = $ended; ExitCode = $code }
}

function Get-ProcessTree {
    # The ids of a process and of all that descends from it, parents first. Only children that are not older than their
    # parent count: the id of a parent that is gone may belong to someone else by now.
    param([int] $ProcessId, [object[]] $Rows)
    $created = @{}
    foreach ($row in $Rows) { $created[[int] $row.ProcessId] = $row.CreationDate }
    $tree = New-Object System.Collections.ArrayList
    [void] $tree.Add($ProcessId)
    for ($at = 0; $at -lt $tree.Count; $at++) {
        $parent = $tree[$at]
        foreach ($row in $Rows) {
            $id = [int] $row.ProcessId
            if ([int] $row.ParentProcessId -ne $parent -or $tree.Contains($id)) { continue }
            if ($null -ne $created[$parent] -and $null -ne $row.CreationDate -and $row.CreationDate -lt $created[$parent]) { continue }
            [void] $tree.Add($id)
        }
    }
    return , $tree.ToArray()
}

function Stop-ProcessTree {
    # What starts while we look is found by looking again until nothing new is there, and once more afterwards.
    param([int] $ProcessId)
    $stopped = @{}
    for ($round = 0; $round -lt 5; $round++) {
        $tree = Get-ProcessTree -ProcessId $ProcessId -Rows (Read-ProcessTable)
        $again = Get-ProcessTree -ProcessId $ProcessId -Rows (Read-ProcessTable)
        if ($again.Length -gt $tree.Length) { continue }
        $left = @($again | Where-Object { -not $stopped.ContainsKey($_) })
        if ($left.Count -eq 0) { return }
        # Parents first, so that they start no others.
        foreach ($id in $left) {
            $stopped[$id] = $true
            $process = Get-Process -Id $id -ErrorAction SilentlyContinue
            if ($null -eq $process) { continue }
            try {
                $process.Kill()
                [void] $process.WaitForExit(5000)
            } catch {
                # It ended by itself in the meantime.
                continue
            }
        }
    }
}
