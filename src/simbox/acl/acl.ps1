# Get-Acl and Set-Acl on the simulator's access lists; Wine answers from Unix mode bits and forgets what is set.

function Get-Acl {
    [CmdletBinding()]
    param(
        [Parameter(ParameterSetName = 'ByPath', Position = 0)] [string[]] $Path,
        [Parameter(ParameterSetName = 'ByLiteralPath')] [string[]] $LiteralPath
    )
    foreach ($one in @($Path) + @($LiteralPath)) {
        if (-not $one) { continue }
        $found = @(Invoke-Simulator acl.get @{ paths = @($one) })[0]
        if (-not $found.Exists) {
            $PSCmdlet.WriteError((New-CmdletFault -Id 'GetAcl_PathNotFound_Exception,Microsoft.PowerShell.Commands.GetAclCommand' -Category ObjectNotFound -Target $one -Type ([Management.Automation.ItemNotFoundException]) -Message "Cannot find path '$one' because it does not exist."))
            continue
        }
        $security = [IO.Directory]::Exists($one) ? [Security.AccessControl.DirectorySecurity]::new() : [Security.AccessControl.FileSecurity]::new()
        $security.SetSecurityDescriptorSddlForm($found.Sddl)
        $security | Add-Member -NotePropertyName Path -NotePropertyValue "Microsoft.PowerShell.Core\FileSystem::$one" -PassThru
    }
}

function Set-Acl {
    [CmdletBinding()]
    param(
        [Parameter(ParameterSetName = 'ByPath', Mandatory, Position = 0)] [string[]] $Path,
        [Parameter(ParameterSetName = 'ByLiteralPath', Mandatory)] [string[]] $LiteralPath,
        [Parameter(Mandatory, Position = 1)] [object] $AclObject
    )
    foreach ($one in @($Path) + @($LiteralPath)) {
        if (-not $one) { continue }
        $sddl = $AclObject.GetSecurityDescriptorSddlForm('Owner, Group, Access')
        [void] (Invoke-Simulator acl.set @{ path = $one; sddl = $sddl })
    }
}
