# Exceptions: what really went wrong, and refusals of our own.

function Get-InnermostException {
    # Errors of .NET methods arrive wrapped; those of COM objects wrapped or not, depending on the version.
    param([System.Management.Automation.ErrorRecord] $ErrorRecord)
    $exception = $ErrorRecord.Exception
    while ($null -ne $exception.InnerException) { $exception = $exception.InnerException }
    return $exception
}

function New-Refusal {
    # An error of type Refused: the box could do it and will not.
    param([string] $Message)
    $exception = New-Object -TypeName System.InvalidOperationException -ArgumentList $Message
    return New-Object -TypeName System.Management.Automation.ErrorRecord -ArgumentList @(
        $exception, 'Refused', [System.Management.Automation.ErrorCategory]::PermissionDenied, $null)
}
