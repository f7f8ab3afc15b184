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

function Stop-ProcessTree {
    # A process and all that descends from it, the root first so that it starts no others. Only children younger than
    # their parent count: an id of a dead parent may belong to someone else by now.
    param([int] $ProcessId)
    $rows = Read-ProcessTable
    $pending = New-Object System.Collections.Queue
    $pending.Enqueue($ProcessId)
    $seen = @{}
    while ($pending.Count -gt 0) {
        $id = [int] $pending.Dequeue()
        if ($seen.ContainsKey($id)) { continue }
        $seen[$id] = $true
        $parent = @($rows | Where-Object { [int] $_.ProcessId -eq $id })
        foreach ($row in $rows) {
            if ([int] $row.ParentProcessId -ne $id) { continue }
            if ($parent.Count -gt 0 -and $null -ne $row.CreationDate -and $row.CreationDate -lt $parent[0].CreationDate) { continue }
            $pending.Enqueue([int] $row.ProcessId)
        }
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
