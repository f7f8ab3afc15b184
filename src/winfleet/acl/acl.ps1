# Access lists as SDDL and as entries by SID, so that no translated account name is ever compared.

function ConvertTo-AclSddl {
    # Owner, group and access list of a security object.
    param([System.Security.AccessControl.ObjectSecurity] $Acl)
    return $Acl.GetSecurityDescriptorSddlForm([System.Security.AccessControl.AccessControlSections] 'Owner, Group, Access')
}

function Get-AclOfPath {
    param([string] $Path)
    $answer = [pscustomobject] @{
        Path = $Path; Exists = $false; Directory = $null; Sddl = $null; OwnerSid = $null; Protected = $null; Access = @()
    }
    if (-not (Test-Path -LiteralPath $Path)) { return $answer }
    $sidType = [System.Security.Principal.SecurityIdentifier]
    $acl = Get-Acl -LiteralPath $Path
    $answer.Exists = $true
    $answer.Directory = -not [System.IO.File]::Exists($Path)
    $answer.Sddl = ConvertTo-AclSddl -Acl $acl
    $answer.OwnerSid = [string] $acl.GetOwner($sidType).Value
    $answer.Protected = [bool] $acl.AreAccessRulesProtected
    $entries = @(foreach ($rule in $acl.GetAccessRules($true, $true, $sidType)) {
        [pscustomobject] @{
            Sid = [string] $rule.IdentityReference.Value
            Rights = [int] $rule.FileSystemRights
            Type = [string] $rule.AccessControlType
            Inherited = [bool] $rule.IsInherited
            InheritanceFlags = [string] $rule.InheritanceFlags
            PropagationFlags = [string] $rule.PropagationFlags
        }
    })
    $answer.Access = @($entries)
    return $answer
}

function Get-BoxAcl {
    param([string[]] $Path)
    $answers = @(foreach ($one in $Path) { Get-AclOfPath -Path $one })
    return , @($answers)
}

function Set-BoxAcl {
    # Sddl replaces the access list, and owner and group where it names them.
    param([string] $Path, [string] $Sddl)
    [void] (Assert-ChangeablePath -Path $Path -Done 'given another access list' -Followed $true)
    $acl = Get-Acl -LiteralPath $Path
    $before = ConvertTo-AclSddl -Acl $acl
    $sections = [System.Security.AccessControl.AccessControlSections]::Access
    if ($Sddl -match '(^|\))\s*O:') { $sections = $sections -bor [System.Security.AccessControl.AccessControlSections]::Owner }
    if ($Sddl -match 'G:(?=[A-Z]{2}|S-1-)') { $sections = $sections -bor [System.Security.AccessControl.AccessControlSections]::Group }
    $acl.SetSecurityDescriptorSddlForm($Sddl, $sections)
    Set-Acl -LiteralPath $Path -AclObject $acl
    $after = ConvertTo-AclSddl -Acl (Get-Acl -LiteralPath $Path)
    return [pscustomobject] @{ Changed = ($after -ne $before) }
}
