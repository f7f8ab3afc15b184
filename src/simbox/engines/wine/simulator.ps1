# The connection to the simulator: one request a connection, one line of JSON each way.

function Invoke-Simulator {
    param([string] $Method, [hashtable] $Parameters = @{})
    $request = @{ token = $env:SIMBOX_TOKEN; op = 'rpc'; method = $Method; params = $Parameters }
    $line = (ConvertTo-Json -InputObject $request -Depth 20 -Compress -EscapeHandling EscapeNonAscii) + "`n"
    $client = [Net.Sockets.TcpClient]::new()
    try {
        $client.Connect('127.0.0.1', [int] $env:SIMBOX_PORT)
        $stream = $client.GetStream()
        $bytes = [Text.Encoding]::ASCII.GetBytes($line)
        $stream.Write($bytes, 0, $bytes.Length)
        $text = [IO.StreamReader]::new($stream, [Text.UTF8Encoding]::new($false)).ReadLine()
    } finally {
        $client.Dispose()
    }
    if ([string]::IsNullOrEmpty($text)) { throw [IO.IOException]::new("the simulator closed the connection of $Method") }
    $answer = ConvertFrom-Json -InputObject $text -DateKind String
    if (-not $answer.ok) { throw (New-WindowsException -Fault $answer.error) }
    return $answer.value
}

function New-WindowsException {
    # The exception that Windows or .NET would raise, with its HRESULT.
    param([object] $Fault)
    $known = switch ($Fault.type) {
        'System.Runtime.InteropServices.COMException' { [Runtime.InteropServices.COMException]::new($Fault.message) }
        'System.Security.Principal.IdentityNotMappedException' { [Security.Principal.IdentityNotMappedException]::new($Fault.message) }
        'Microsoft.Management.Infrastructure.CimException' { [Microsoft.Management.Infrastructure.CimException]::new($Fault.message) }
        default {
            $type = $Fault.type -as [type]
            if ($null -ne $type -and $type.IsSubclassOf([Exception]) -and $type.GetConstructor([type[]] @([string]))) {
                [Activator]::CreateInstance($type, [object[]] @([string] $Fault.message))
            } else {
                [InvalidOperationException]::new("$($Fault.type): $($Fault.message)")
            }
        }
    }
    if ($Fault.hresult) { $known.HResult = [Convert]::ToInt32($Fault.hresult, 16) }
    return $known
}

function New-CmdletFault {
    # The error record of a cmdlet's own error: its id, category and message.
    param([string] $Message, [string] $Id, [string] $Category, [object] $Target, [type] $Type = [Exception])
    return [Management.Automation.ErrorRecord]::new($Type::new($Message), $Id, $Category, $Target)
}
