# Get-CimInstance and Invoke-CimMethod for the classes that facts use; Wine has no CIM engine.

function Get-CimInstance {
    [CmdletBinding()]
    param(
        [Parameter(Mandatory, Position = 0)] [string] $ClassName, [string] $Namespace, [string] $Filter, [string[]] $Property
    )
    $rows = switch ($ClassName) {
        'Win32_OperatingSystem' { Get-OperatingSystemRow }
        'Win32_ComputerSystem' { Get-ComputerSystemRow }
        'Win32_Process' { Get-ProcessRow }
        'FirewallProduct' { Get-FirewallProductRow }
        default {
            $PSCmdlet.ThrowTerminatingError((New-CmdletFault -Id 'HRESULT 0x80041010,Microsoft.Management.Infrastructure.CimCmdlets.GetCimInstanceCommand' -Category MetadataError -Target $ClassName -Message 'Invalid class '))
        }
    }
    if ($Filter) { $rows = $rows | Where-Object (ConvertFrom-WqlFilter -Filter $Filter) }
    $rows
}

function ConvertFrom-WqlFilter {
    # Comparisons with = joined by AND and OR, the part of WQL that needs no engine.
    param([string] $Filter)
    $term = '\s*(?<name>\w+)\s*=\s*(?<value>''[^'']*''|"[^"]*"|\d+)\s*'
    if ($Filter -notmatch "^$term((AND|OR)$term)*`$") {
        throw [NotSupportedException]::new("the stand-in of Get-CimInstance does not understand the filter: $Filter")
    }
    $text = [regex]::Replace($Filter, $term, {
        param($hit)
        $value = $hit.Groups['value'].Value.Trim([char[]] '''"').Replace("'", "''")
        " (`$_.$($hit.Groups['name'].Value) -eq '$value') "
    })
    return [scriptblock]::Create(($text -replace '\)\s+AND\s+\(', ') -and (' -replace '\)\s+OR\s+\(', ') -or ('))
}

function Get-OperatingSystemRow {
    $facts = Invoke-Simulator system.facts
    [pscustomobject] @{
        Caption = $facts.Caption; Version = $facts.Version; BuildNumber = $facts.BuildNumber
        LastBootUpTime = [DateTimeOffset]::Parse($facts.BootTimeUtc, [Globalization.CultureInfo]::InvariantCulture).LocalDateTime
        TotalVisibleMemorySize = [uint64] ($facts.TotalPhysicalMemoryBytes / 1024)
        FreePhysicalMemory = [uint64] ($facts.FreePhysicalMemoryBytes / 1024)
        CSName = $facts.ComputerName
    }
}

function Get-ComputerSystemRow {
    $facts = Invoke-Simulator system.facts
    [pscustomobject] @{
        Name = $facts.ComputerName; TotalPhysicalMemory = [uint64] $facts.TotalPhysicalMemoryBytes
        NumberOfLogicalProcessors = [uint32] $facts.LogicalProcessorCount
    }
}

function Get-ProcessRow {
    # Wine's own processes, in the shape of the class.
    foreach ($process in Get-Process) {
        [pscustomobject] @{
            ProcessId = [uint32] $process.Id
            ParentProcessId = [uint32] $(if ($process.Parent) { $process.Parent.Id } else { 0 })
            Name = $(if ($process.Path) { [IO.Path]::GetFileName($process.Path) } else { $process.ProcessName })
            ExecutablePath = $process.Path
            CreationDate = $(try { $process.StartTime } catch { $null })
            SessionId = [uint32] $process.SessionId
            WorkingSetSize = [uint64] $process.WorkingSet64
        }
    }
}

function Invoke-CimMethod {
    # GetOwnerSid of a Win32_Process: Wine gives all processes one owner, the simulator knows whose task they are.
    [CmdletBinding()]
    param([Parameter(Mandatory)] [object] $InputObject, [Parameter(Mandatory)] [string] $MethodName)
    if ($MethodName -ne 'GetOwnerSid') {
        throw [NotSupportedException]::new("the stand-in of Invoke-CimMethod has no method $MethodName")
    }
    $ids = [Collections.Generic.List[int]]::new()
    $process = Get-Process -Id ([int] $InputObject.ProcessId)
    while ($null -ne $process -and -not $ids.Contains($process.Id)) {
        $ids.Add($process.Id)
        $process = $process.Parent
    }
    [pscustomobject] @{ Sid = [string] (Invoke-Simulator process.owner @{ pids = $ids.ToArray() }); ReturnValue = [uint32] 0 }
}
