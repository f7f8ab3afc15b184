# Scheduled tasks through Schedule.Service: the XML goes in and out as the service stores it. schtasks.exe would
# translate it and pass it through the console's code page.

function Open-TaskService {
    $service = New-Object -ComObject Schedule.Service
    $service.Connect()
    return $service
}

function Split-TaskPath {
    # Folder ("\" or "\a\b") and Name of a full task path.
    param([string] $TaskPath)
    if ($TaskPath -notmatch '^\\([^\\]+\\)*[^\\]+$') {
        throw (New-Object -TypeName System.ArgumentException -ArgumentList "'$TaskPath' is no full task path such as \Folder\Name")
    }
    $cut = $TaskPath.LastIndexOf([char] '\')
    $folder = $TaskPath.Substring(0, $cut)
    if ($folder.Length -eq 0) { $folder = '\' }
    return [pscustomobject] @{ Folder = $folder; Name = $TaskPath.Substring($cut + 1) }
}

function Find-RegisteredTask {
    # The COM object of a task, or null when the folder or the task does not exist.
    param([object] $Service, [string] $TaskPath)
    $parts = Split-TaskPath -TaskPath $TaskPath
    try {
        return $Service.GetFolder($parts.Folder).GetTask($parts.Name)
    } catch {
        # ERROR_FILE_NOT_FOUND, ERROR_PATH_NOT_FOUND
        if ((Get-InnermostException -ErrorRecord $_).HResult -in @(-2147024894, -2147024893)) { return $null }
        throw
    }
}

function Get-RequiredTask {
    param([string] $TaskPath)
    $task = Find-RegisteredTask -Service (Open-TaskService) -TaskPath $TaskPath
    if ($null -eq $task) {
        throw (New-Object -TypeName System.IO.FileNotFoundException -ArgumentList "There is no scheduled task '$TaskPath'.")
    }
    return $task
}

function ConvertTo-TaskStateName {
    param([int] $State)
    return @('Unknown', 'Disabled', 'Queued', 'Ready', 'Running')[$State]
}

function ConvertTo-TaskTime {
    # COM gives local time, and 1899 or 1999 for "never".
    param([datetime] $Time)
    if ($Time.Year -lt 2000) { return $null }
    return [datetime]::SpecifyKind($Time, [DateTimeKind]::Local).ToUniversalTime().ToString('o')
}

function Find-TaskFolder {
    # The COM object of a folder, or null when it does not exist.
    param([object] $Service, [string] $Folder)
    try {
        return $Service.GetFolder($Folder)
    } catch {
        if ((Get-InnermostException -ErrorRecord $_).HResult -in @(-2147024894, -2147024893)) { return $null }
        throw
    }
}

function Get-TaskFolderOnTheWay {
    # The folders from the innermost to the one below the root, with what is in them; hidden tasks count.
    param([object] $Service, [string] $Folder)
    while ($Folder -ne '\' -and $Folder.Length -gt 0) {
        $found = Find-TaskFolder -Service $Service -Folder $Folder
        if ($null -ne $found) {
            [pscustomobject] @{
                Path = [string] $found.Path
                Tasks = @(foreach ($task in $found.GetTasks(1)) { [string] $task.Name })
                Folders = @(foreach ($inner in $found.GetFolders(0)) { [string] $inner.Name })
            }
        }
        $Folder = $Folder.Substring(0, $Folder.LastIndexOf([char] '\'))
    }
}

function Get-TaskOfPath {
    param([object] $Service, [string] $TaskPath)
    $answer = [pscustomobject] @{
        TaskPath = $TaskPath; Exists = $false; Xml = $null; State = $null; Enabled = $null; LastRunTimeUtc = $null
        LastTaskResult = $null; NextRunTimeUtc = $null; MissedRuns = $null; Instances = @(); Folders = @(); Error = $null
    }
    try {
        $answer.Folders = @(Get-TaskFolderOnTheWay -Service $Service -Folder (Split-TaskPath -TaskPath $TaskPath).Folder)
        $task = Find-RegisteredTask -Service $Service -TaskPath $TaskPath
        if ($null -eq $task) { return $answer }
        $answer.Exists = $true
        $answer.Xml = [string] $task.Xml
        $answer.State = ConvertTo-TaskStateName -State $task.State
        $answer.Enabled = [bool] $task.Enabled
        $answer.LastRunTimeUtc = ConvertTo-TaskTime -Time $task.LastRunTime
        $answer.LastTaskResult = [int] $task.LastTaskResult
        $answer.NextRunTimeUtc = ConvertTo-TaskTime -Time $task.NextRunTime
        $answer.MissedRuns = [int] $task.NumberOfMissedRuns
        $answer.Instances = @(foreach ($instance in $task.GetInstances(0)) {
            [pscustomobject] @{
                EnginePid = [int] $instance.EnginePID
                InstanceGuid = [string] $instance.InstanceGuid
                State = ConvertTo-TaskStateName -State $instance.State
            }
        })
    } catch {
        $answer.Error = (Get-InnermostException -ErrorRecord $_).Message
    }
    return $answer
}

function Get-BoxTask {
    param([string[]] $TaskPath)
    $service = Open-TaskService
    $answers = @(foreach ($one in $TaskPath) { Get-TaskOfPath -Service $service -TaskPath $one })
    return , @($answers)
}

function Get-TaskAccount {
    # What RegisterTask wants beside the XML and lets override it: the XML's own user (only with a password, else
    # null) and logon type.
    param([string] $Xml, [string] $Password)
    $account = [pscustomobject] @{ User = $null; Password = $null; LogonType = Get-TaskLogonType -Xml $Xml }
    if ([string]::IsNullOrEmpty($Password)) { return $account }
    $document = New-Object -TypeName System.Xml.XmlDocument
    $document.LoadXml($Xml)
    $names = New-Object -TypeName System.Xml.XmlNamespaceManager -ArgumentList $document.NameTable
    $names.AddNamespace('t', 'http://schemas.microsoft.com/windows/2004/02/mit/task')
    $user = $document.SelectSingleNode('/t:Task/t:Principals/t:Principal/t:UserId', $names)
    if ($null -eq $user) { return $account }
    $account.User = $user.InnerText.Trim()
    $account.Password = $Password
    if ($account.User -notlike 'S-1-*') { return $account }
    try {
        $sid = New-Object -TypeName System.Security.Principal.SecurityIdentifier -ArgumentList $account.User
        $account.User = [string] $sid.Translate([System.Security.Principal.NTAccount]).Value
    } catch {
        # A SID whose name is not known here: the service has the last word.
        return $account
    }
    return $account
}

function Get-TaskLogonType {
    param([string] $Xml)
    $document = New-Object -TypeName System.Xml.XmlDocument
    try { $document.LoadXml($Xml) } catch { return 0 } # the service says what is wrong with it
    $names = New-Object -TypeName System.Xml.XmlNamespaceManager -ArgumentList $document.NameTable
    $names.AddNamespace('t', 'http://schemas.microsoft.com/windows/2004/02/mit/task')
    $principal = $document.SelectSingleNode('/t:Task/t:Principals/t:Principal', $names)
    if ($null -eq $principal) { return 0 }
    if ($null -ne $principal.SelectSingleNode('t:GroupId', $names)) { return 4 }
    $user = $principal.SelectSingleNode('t:UserId', $names)
    if ($null -ne $user -and $user.InnerText.Trim() -in @('S-1-5-18', 'S-1-5-19', 'S-1-5-20')) { return 5 }
    $logon = $principal.SelectSingleNode('t:LogonType', $names)
    if ($null -eq $logon) { return 0 }
    $numbers = @{ Password = 1; S4U = 2; InteractiveToken = 3; InteractiveTokenOrPassword = 6 }
    return [int] $numbers[$logon.InnerText.Trim()]
}

function Test-BoxTask {
    param([string] $TaskPath, [string] $Xml, [string] $Password)
    $answer = [pscustomobject] @{ Valid = $false; Error = $null }
    $parts = Split-TaskPath -TaskPath $TaskPath
    try {
        # TASK_VALIDATE_ONLY. In the root folder: that of the task may not exist yet and must not be made.
        $root = (Open-TaskService).GetFolder('\')
        $account = Get-TaskAccount -Xml $Xml -Password $Password
        [void] $root.RegisterTask($parts.Name, $Xml, 1, $account.User, $account.Password, $account.LogonType, $null)
        $answer.Valid = $true
    } catch {
        $cause = Get-InnermostException -ErrorRecord $_
        $answer.Error = [pscustomobject] @{ hresult = '0x{0:x8}' -f $cause.HResult; message = $cause.Message }
    }
    return $answer
}

function Open-TaskFolder {
    # The folder, made when it is missing.
    param([object] $Service, [string] $Folder)
    $found = Find-TaskFolder -Service $Service -Folder $Folder
    if ($null -ne $found) { return $found }
    return $Service.GetFolder('\').CreateFolder($Folder, $null)
}

function Register-BoxTask {
    param([string] $TaskPath, [string] $Xml, [string] $Password)
    $parts = Split-TaskPath -TaskPath $TaskPath
    $account = Get-TaskAccount -Xml $Xml -Password $Password
    $folder = Open-TaskFolder -Service (Open-TaskService) -Folder $parts.Folder
    # TASK_CREATE_OR_UPDATE: one step, so there is no moment with half a task.
    [void] $folder.RegisterTask($parts.Name, $Xml, 6, $account.User, $account.Password, $account.LogonType, $null)
    return [pscustomobject] @{ Xml = [string] $folder.GetTask($parts.Name).Xml }
}

function Unregister-BoxTask {
    param([string] $TaskPath)
    $service = Open-TaskService
    if ($null -eq (Find-RegisteredTask -Service $service -TaskPath $TaskPath)) {
        return [pscustomobject] @{ Changed = $false }
    }
    $parts = Split-TaskPath -TaskPath $TaskPath
    $service.GetFolder($parts.Folder).DeleteTask($parts.Name, 0)
    return [pscustomobject] @{ Changed = $true }
}

function Remove-BoxTaskFolder {
    # Folders that hold nothing; one that is not there or not empty is passed over. Windows' own are never touched.
    param([string[]] $Path)
    $service = Open-TaskService
    $removed = @(foreach ($one in $Path) {
        $parts = Split-TaskPath -TaskPath $one
        if ($one -match '^\\Microsoft(\\|$)') {
            throw (New-Refusal -Message "'$one' is no task folder of ours; nothing more was removed")
        }
        $folder = Find-TaskFolder -Service $service -Folder $one
        if ($null -eq $folder) { continue }
        $held = @(foreach ($task in $folder.GetTasks(1)) { $task }) + @(foreach ($inner in $folder.GetFolders(0)) { $inner })
        if ($held.Length -gt 0) { continue }
        try {
            [void] $service.GetFolder($parts.Folder).DeleteFolder($parts.Name, 0)
        } catch {
            # ERROR_DIR_NOT_EMPTY: a task that this account may not see
            if ((Get-InnermostException -ErrorRecord $_).HResult -ne -2147024751) { throw }
            continue
        }
        $one
    })
    return [pscustomobject] @{ Removed = @($removed) }
}

function Get-TaskStateAnswer {
    param([string] $TaskPath)
    $task = Get-RequiredTask -TaskPath $TaskPath
    return [pscustomobject] @{ State = ConvertTo-TaskStateName -State $task.State }
}

function Start-BoxTask {
    param([string] $TaskPath)
    [void] (Get-RequiredTask -TaskPath $TaskPath).Run($null)
    return Get-TaskStateAnswer -TaskPath $TaskPath
}

function Stop-BoxTask {
    param([string] $TaskPath)
    [void] (Get-RequiredTask -TaskPath $TaskPath).Stop(0)
    return Get-TaskStateAnswer -TaskPath $TaskPath
}

function Enable-BoxTask {
    param([string] $TaskPath)
    (Get-RequiredTask -TaskPath $TaskPath).Enabled = $true
    return Get-TaskStateAnswer -TaskPath $TaskPath
}

function Disable-BoxTask {
    param([string] $TaskPath)
    (Get-RequiredTask -TaskPath $TaskPath).Enabled = $false
    return Get-TaskStateAnswer -TaskPath $TaskPath
}
