# Names and security identifiers.

function Get-BoxAccount {
    # Name may be an account (user, DOMAIN\user, BUILTIN\Administrators) or a SID, which answers with its name.
    param([string[]] $Name)
    $sidType = [System.Security.Principal.SecurityIdentifier]
    $accountType = [System.Security.Principal.NTAccount]
    $answers = @(foreach ($wanted in $Name) {
        $answer = [pscustomobject] @{ Name = $wanted; Sid = $null; Error = $null }
        try {
            if ($wanted -match '^S-1-[0-9-]+$') {
                $sid = New-Object -TypeName System.Security.Principal.SecurityIdentifier -ArgumentList $wanted
                $answer.Sid = $sid.Value
                $answer.Name = [string] $sid.Translate($accountType).Value
            } else {
                $account = New-Object -TypeName System.Security.Principal.NTAccount -ArgumentList $wanted
                $answer.Sid = [string] $account.Translate($sidType).Value
            }
        } catch {
            $answer.Error = (Get-InnermostException -ErrorRecord $_).Message
        }
        $answer
    })
    return , @($answers)
}
