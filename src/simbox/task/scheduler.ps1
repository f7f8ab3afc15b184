# New-Object for what Wine lacks behind it: the COM object Schedule.Service and the account database.

function New-Object {
    [CmdletBinding(DefaultParameterSetName = 'Net')]
    param(
        [Parameter(ParameterSetName = 'Com', Mandatory, Position = 0)] [string] $ComObject,
        [Parameter(ParameterSetName = 'Net', Mandatory, Position = 0)] [string] $TypeName,
        [Parameter(ParameterSetName = 'Net', Position = 1)] [object[]] $ArgumentList,
        [Parameter(ParameterSetName = 'Com')] [switch] $Strict,
        [Collections.IDictionary] $Property
    )
    if ($ComObject -eq 'Schedule.Service') { return New-TaskService }
    if ($TypeName -in @('System.Security.Principal.NTAccount', 'Security.Principal.NTAccount')) {
        return New-WindowsAccount -Name ($ArgumentList -join '\')
    }
    Microsoft.PowerShell.Utility\New-Object @PSBoundParameters
}

function Add-Method {
    param([object] $To, [string] $Name, [scriptblock] $Does)
    Add-Member -InputObject $To -MemberType ScriptMethod -Name $Name -Value $Does
}

function New-TaskService {
    $service = [pscustomobject] @{ PSTypeName = 'System.__ComObject#TaskService'; Connected = $false }
    Add-Method $service Connect { $this.Connected = $true }
    Add-Method $service GetFolder {
        param([string] $path)
        if (-not $this.Connected) {
            throw (New-WindowsException -Fault @{
                type = 'System.Runtime.InteropServices.COMException'; hresult = '0x80070006'
                message = 'The handle is invalid. (Exception from HRESULT: 0x80070006 (E_HANDLE))'
            })
        }
        New-TaskFolder -Path (Invoke-Simulator scheduler.folder @{ path = $path })
    }
    return $service
}

function Join-TaskPath {
    param([string] $Folder, [string] $Name)
    if ($Name.StartsWith('\')) { return $Name }
    return $Folder.TrimEnd([char] '\') + '\' + $Name
}

function New-TaskFolder {
    param([string] $Path)
    $folder = [pscustomobject] @{ PSTypeName = 'System.__ComObject#TaskFolder'; Path = $Path; Name = ($Path -split '\\')[-1] }
    Add-Method $folder GetTask {
        param([string] $path)
        $full = Join-TaskPath -Folder $this.Path -Name $path
        $found = Invoke-Simulator scheduler.get @{ path = $full }
        if (-not $found.Exists) {
            throw (New-WindowsException -Fault @{
                type = 'System.IO.FileNotFoundException'; hresult = '0x80070002'
                message = 'The system cannot find the file specified. (Exception from HRESULT: 0x80070002)'
            })
        }
        New-RegisteredTask -Path $full
    }
    Add-Method $folder RegisterTask {
        param([string] $path, [string] $xml, [int] $flags, $user, $password, [int] $logonType, $sddl)
        $full = Join-TaskPath -Folder $this.Path -Name $path
        if ($flags -band 1) {
            $verdict = Invoke-Simulator scheduler.validate @{ path = $full; xml = $xml; password = $password }
            if (-not $verdict.Valid) {
                throw (New-WindowsException -Fault @{
                    type = 'System.Runtime.InteropServices.COMException'
                    hresult = $verdict.Error.hresult; message = $verdict.Error.message
                })
            }
            return $null
        }
        [void] (Invoke-Simulator scheduler.register @{ path = $full; xml = $xml; password = $password })
        New-RegisteredTask -Path $full
    }
    Add-Method $folder DeleteTask {
        param([string] $path, [int] $flags)
        [void] (Invoke-Simulator scheduler.delete @{ path = (Join-TaskPath -Folder $this.Path -Name $path) })
    }
    Add-Method $folder DeleteFolder {
        param([string] $path, [int] $flags)
        [void] (Invoke-Simulator scheduler.delete_folder @{ path = (Join-TaskPath -Folder $this.Path -Name $path) })
    }
    Add-Method $folder GetTasks {
        param([int] $flags)
        foreach ($one in @(Invoke-Simulator scheduler.tasks @{ folder = $this.Path })) { New-RegisteredTask -Path $one }
    }
    Add-Method $folder GetFolders {
        param([int] $flags)
        foreach ($one in @(Invoke-Simulator scheduler.inside @{ folder = $this.Path })) { New-TaskFolder -Path $one }
    }
    Add-Method $folder CreateFolder {
        param([string] $path, $sddl)
        $full = Join-TaskPath -Folder $this.Path -Name $path
        New-TaskFolder -Path (Invoke-Simulator scheduler.create_folder @{ path = $full })
    }
    return $folder
}

function Get-TaskField {
    # One property of a task as it is now: COM reads each property when it is asked for.
    param([string] $Path, [string] $Field)
    return (Invoke-Simulator scheduler.get @{ path = $Path }).$Field
}

function ConvertTo-ComTime {
    # UTC text as the local time that COM gives; never is 30 November 1999.
    param([string] $Text)
    if ([string]::IsNullOrEmpty($Text)) { return [datetime]::new(1999, 11, 30) }
    $instant = [DateTimeOffset]::Parse($Text, [Globalization.CultureInfo]::InvariantCulture)
    return [datetime]::SpecifyKind($instant.LocalDateTime, 'Unspecified')
}

function New-RegisteredTask {
    param([string] $Path)
    $task = [pscustomobject] @{ PSTypeName = 'System.__ComObject#RegisteredTask'; Path = $Path; Name = ($Path -split '\\')[-1] }
    $properties = @{
        Xml = { Get-TaskField $this.Path Xml }
        State = { [Array]::IndexOf([string[]] @('Unknown', 'Disabled', 'Queued', 'Ready', 'Running'), [string] (Get-TaskField $this.Path State)) }
        LastRunTime = { ConvertTo-ComTime (Get-TaskField $this.Path LastRunTimeUtc) }
        NextRunTime = { ConvertTo-ComTime (Get-TaskField $this.Path NextRunTimeUtc) }
        NumberOfMissedRuns = { [int] (Get-TaskField $this.Path MissedRuns) }
        LastTaskResult = { [int] (Get-TaskField $this.Path LastTaskResult) }
    }
    foreach ($name in $properties.Keys) {
        Add-Member -InputObject $task -MemberType ScriptProperty -Name $name -Value $properties[$name]
    }
    Add-Member -InputObject $task -MemberType ScriptProperty -Name Enabled -Value {
        [bool] (Get-TaskField $this.Path Enabled)
    } -SecondValue {
        param($value)
        [void] (Invoke-Simulator scheduler.set_enabled @{ path = $this.Path; enabled = [bool] $value })
    }
    Add-Method $task GetInstances {
        param([int] $flags)
        foreach ($one in @(Get-TaskField $this.Path Instances)) {
            [pscustomobject] @{
                EnginePID = $one.EnginePid; InstanceGuid = $one.InstanceGuid; Path = $this.Path
                State = [Array]::IndexOf([string[]] @('Unknown', 'Disabled', 'Queued', 'Ready', 'Running'), [string] $one.State)
            }
        }
    }
    Add-Method $task Run {
        param($parameters)
        [void] (Invoke-Simulator scheduler.start @{ path = $this.Path })
    }
    Add-Method $task Stop {
        param([int] $flags)
        [void] (Invoke-Simulator scheduler.stop @{ path = $this.Path })
    }
    return $task
}

function New-WindowsAccount {
    # An NTAccount whose Translate asks the box's account database.
    param([string] $Name)
    $account = [pscustomobject] @{ PSTypeName = 'System.Security.Principal.NTAccount'; Value = $Name }
    Add-Method $account Translate {
        param([type] $target)
        $found = @(Invoke-Simulator account.resolve @{ names = @($this.Value) })[0]
        if ($null -eq $found.Sid) {
            throw [Security.Principal.IdentityNotMappedException]::new('Some or all identity references could not be translated.')
        }
        [Security.Principal.SecurityIdentifier]::new($found.Sid)
    }
    return $account
}
