# The loader: sent as ONE line (program.py joins the lines below), the only code that PowerShell's own reader sees.
# $WF = '<nonce>:<sha256 of the program>' stands before it.
$ErrorActionPreference = 'Stop';
$ProgressPreference = 'SilentlyContinue';
# A policy such as AppLocker: no method below could be called. What is said is all that such a session may do.
if ($ExecutionContext.SessionState.LanguageMode -ne 'FullLanguage') { 'winfleet: PowerShell here is limited to ' + $ExecutionContext.SessionState.LanguageMode + ', the loop needs FullLanguage'; exit 1 };
try {
$WFIn = New-Object System.IO.StreamReader -ArgumentList ([Console]::OpenStandardInput()), (New-Object System.Text.UTF8Encoding -ArgumentList $false), $false, 65536;
$WFOut = [Console]::OpenStandardOutput();
$WFSha = [System.Security.Cryptography.SHA256]::Create();
$WFHex = { param($bytes) ([BitConverter]::ToString($WFSha.ComputeHash([byte[]] $bytes)) -replace '-', '').ToLowerInvariant() };
$WFBody = [Convert]::ToBase64String([System.Text.Encoding]::ASCII.GetBytes('{"PSVersion":"' + $PSVersionTable.PSVersion + '"}'));
$WFLine = [System.Text.Encoding]::ASCII.GetBytes("`n~WF1 " + $WF.Split(':')[0] + ' 0 0 loaded ' + $WFBody.Length + ' ' + (& $WFHex ([System.Text.Encoding]::ASCII.GetBytes($WFBody))).Substring(0, 8) + ' ' + $WFBody + "`n");
$WFOut.Write($WFLine, 0, $WFLine.Length);
$WFOut.Flush();
# The empty line after the bootstrap may still be in the pipe.
do { $WFText = $WFIn.ReadLine() } while ($null -ne $WFText -and $WFText.Trim().Length -eq 0);
if ($null -ne $WFText) {
$WFZip = New-Object System.IO.Compression.GZipStream -ArgumentList (New-Object System.IO.MemoryStream -ArgumentList (, [Convert]::FromBase64String($WFText))), ([System.IO.Compression.CompressionMode]::Decompress);
$WFPlain = New-Object System.IO.MemoryStream;
$WFZip.CopyTo($WFPlain);
if ((& $WFHex $WFPlain.ToArray()) -ne $WF.Split(':')[1]) { throw 'the program arrived damaged: its SHA-256 differs' };
. ([ScriptBlock]::Create([System.Text.Encoding]::UTF8.GetString($WFPlain.ToArray())));
Start-WireLoop -Nonce $WF.Split(':')[0] -Reader $WFIn -Output $WFOut
}
} catch {
[Console]::Error.WriteLine('winfleet: ' + $_.Exception.Message + ' ' + $_.InvocationInfo.PositionMessage);
# Else PowerShell would go on and take what comes for code.
exit 1
}
