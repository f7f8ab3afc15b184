# Who listens.

function Get-BoxListener {
    param([int[]] $Port)
    $processes = @{}
    $listeners = @(foreach ($connection in @(Get-NetTCPConnection -State Listen -ErrorAction SilentlyContinue)) {
        if ($null -ne $Port -and $Port.Count -gt 0 -and [int] $connection.LocalPort -notin $Port) { continue }
        $owner = [int] $connection.OwningProcess
        if (-not $processes.ContainsKey($owner)) {
            $path = $null
            $created = $null
            $process = Get-Process -Id $owner -ErrorAction SilentlyContinue
            if ($null -ne $process) {
                # Protected processes show neither.
                try { $path = $process.Path } catch { $path = $null }
                try { $created = $process.StartTime.ToUniversalTime().ToString('o') } catch { $created = $null }
            }
            $processes[$owner] = @($path, $created)
        }
        [pscustomobject] @{
            LocalAddress = [string] $connection.LocalAddress
            LocalPort = [int] $connection.LocalPort
            OwningProcess = $owner
            ExecutablePath = $processes[$owner][0]
            CreationTimeUtc = $processes[$owner][1]
        }
    })
    return , @($listeners)
}
