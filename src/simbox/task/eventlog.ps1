# Get-WinEvent for the Task Scheduler's own log; Wine has no event log.

function Get-WinEvent {
    [CmdletBinding(DefaultParameterSetName = 'Log')]
    param(
        [Parameter(ParameterSetName = 'Log', Mandatory, Position = 0)] [string[]] $LogName,
        [Parameter(ParameterSetName = 'List', Mandatory)] [string[]] $ListLog,
        [Parameter(ParameterSetName = 'Log')] [string] $FilterXPath,
        [Parameter(ParameterSetName = 'Log')] [long] $MaxEvents = [long]::MaxValue
    )
    $known = 'Microsoft-Windows-TaskScheduler/Operational'
    $asked = @($ListLog) + @($LogName) | Where-Object { $_ }
    foreach ($one in $asked) {
        if ($one -ne $known) {
            $PSCmdlet.ThrowTerminatingError((New-CmdletFault -Id 'NoMatchingLogsFound,Microsoft.PowerShell.Commands.GetWinEventCommand' -Category ObjectNotFound -Target $null -Message "There is not an event log on the localhost computer that matches ""$one""."))
        }
    }
    if ($ListLog) { return [pscustomobject] @{ LogName = $known; IsEnabled = [bool] (Invoke-Simulator scheduler.log_enabled) } }
    if ($FilterXPath -notmatch '^\*\[(System\[(?<ids>EventID=\d+( or EventID=\d+)*)\] and )?EventData\[Data\[@Name=''TaskName''\]=(?<q>[''"])(?<name>.*)\k<q>\]\]$') {
        throw [NotSupportedException]::new("the stand-in of Get-WinEvent does not understand the filter: $FilterXPath")
    }
    $numbers = @([regex]::Matches([string] $Matches['ids'], '\d+') | ForEach-Object { [int] $_.Value })
    $most = [int] [Math]::Min($MaxEvents, 10000)
    $found = @(Invoke-Simulator scheduler.events @{ path = $Matches['name']; numbers = $numbers; most = $most })
    if ($found.Length -eq 0) {
        $PSCmdlet.ThrowTerminatingError((New-CmdletFault -Id 'NoMatchingEventsFound,Microsoft.PowerShell.Commands.GetWinEventCommand' -Category ObjectNotFound -Target $null -Message 'No events were found that match the specified selection criteria.'))
    }
    foreach ($one in $found) {
        $event = [pscustomobject] @{
            Id = [int] $one.Id; Text = [string] $one.Xml
            TimeCreated = [DateTimeOffset]::Parse($one.TimeUtc, [Globalization.CultureInfo]::InvariantCulture).LocalDateTime
        }
        Add-Method $event ToXml { $this.Text }
        $event
    }
}
