# What the Task Scheduler's own log tells of tasks. It is switched off unless somebody enabled it.

function Get-TaskEventOfPath {
    param([string] $TaskPath, [int[]] $Id, [int] $MaxEvents)
    $answer = [pscustomobject] @{ TaskPath = $TaskPath; Events = @(); Error = $null }
    $name = $TaskPath
    try {
        # XPath compares letter by letter: ask with the task's own spelling.
        $task = Find-RegisteredTask -Service (Open-TaskService) -TaskPath $TaskPath
        if ($null -ne $task) { $name = [string] $task.Path }
        $numbers = ''
        if ($null -ne $Id -and $Id.Length -gt 0) {
            $numbers = 'System[' + (@($Id | ForEach-Object { "EventID=$_" }) -join ' or ') + '] and '
        }
        $quote = "'"
        if ($name.Contains("'")) { $quote = '"' }
        $filter = "*[$($numbers)EventData[Data[@Name='TaskName']=$quote$name$quote]]"
        $found = @(Get-WinEvent -LogName 'Microsoft-Windows-TaskScheduler/Operational' -FilterXPath $filter -MaxEvents $MaxEvents -ErrorAction Stop)
        $answer.Events = @(foreach ($one in $found) {
            [pscustomobject] @{ Id = [int] $one.Id; TimeUtc = ([datetime] $one.TimeCreated).ToUniversalTime().ToString('o'); Xml = [string] $one.ToXml() }
        })
    } catch {
        if ($_.FullyQualifiedErrorId -notlike 'NoMatchingEventsFound*') {
            $answer.Error = (Get-InnermostException -ErrorRecord $_).Message
        }
    }
    return $answer
}

function Get-BoxTaskEvent {
    # The newest events of each task; Id: only events of these numbers.
    param([string[]] $TaskPath, [int[]] $Id, [int] $MaxEvents = 50)
    $log = @(Get-WinEvent -ListLog 'Microsoft-Windows-TaskScheduler/Operational' -ErrorAction Stop)[0]
    $answers = @(foreach ($one in $TaskPath) { Get-TaskEventOfPath -TaskPath $one -Id $Id -MaxEvents $MaxEvents })
    return [pscustomobject] @{ LogEnabled = [bool] $log.IsEnabled; Tasks = @($answers) }
}
