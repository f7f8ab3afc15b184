# HTTP as the box itself sees it: no proxy, no redirects, TLS 1.2 on, bodies as UTF-8.

function Get-BoxHttp {
    param(
        [Parameter(Mandatory = $true)] [string] $Url, [double] $TimeoutSeconds = 10, [string] $BearerFile,
        [int] $MaxBodyBytes = 1048576
    )
    return Send-HttpRequest -Url $Url -TimeoutSeconds $TimeoutSeconds -BearerFile $BearerFile -MaxBodyBytes $MaxBodyBytes -Method 'GET'
}

function Invoke-BoxHttp {
    param(
        [Parameter(Mandatory = $true)] [string] $Url, [double] $TimeoutSeconds = 10, [string] $BearerFile,
        [int] $MaxBodyBytes = 1048576, [string] $Method = 'POST', [string] $Body, [string] $ContentType = 'application/json'
    )
    $request = @{
        Url = $Url; TimeoutSeconds = $TimeoutSeconds; BearerFile = $BearerFile; MaxBodyBytes = $MaxBodyBytes; Method = $Method
    }
    if ($PSBoundParameters.ContainsKey('Body')) {
        $request['Body'] = $Body
        $request['ContentType'] = $ContentType
    }
    return Send-HttpRequest @request
}

function Send-HttpRequest {
    param(
        [string] $Url, [double] $TimeoutSeconds = 10, [string] $BearerFile, [int] $MaxBodyBytes = 1048576,
        [string] $Method, [string] $Body, [string] $ContentType
    )
    if ($Url -notmatch '^https?://') { throw (New-WireFault -Type 'BadRequest' -Message "'$Url' is no http or https address") }
    $answer = [pscustomobject] @{
        StatusCode = $null; Headers = @{}; Body = $null; BodyTruncated = $false; ElapsedMs = 0; ErrorKind = $null; ErrorMessage = $null
    }
    $protocols = [System.Net.ServicePointManager]::SecurityProtocol
    if ($protocols -ne 0) { [System.Net.ServicePointManager]::SecurityProtocol = $protocols -bor [System.Net.SecurityProtocolType]::Tls12 }
    $request = [System.Net.WebRequest]::Create($Url)
    $request.Proxy = $null
    $request.Method = $Method
    $request.AllowAutoRedirect = $false
    $request.KeepAlive = $false
    $request.Timeout = [int] ($TimeoutSeconds * 1000)
    $request.ReadWriteTimeout = [int] ($TimeoutSeconds * 1000)
    $request.ServicePoint.Expect100Continue = $false
    if ($BearerFile) {
        $request.Headers['Authorization'] = 'Bearer ' + [System.IO.File]::ReadAllText((Resolve-FilePath -Path $BearerFile)).Trim()
    }
    $clock = [System.Diagnostics.Stopwatch]::StartNew()
    $response = $null
    try {
        if ($PSBoundParameters.ContainsKey('Body')) { Write-RequestBody -Request $request -Body $Body -ContentType $ContentType }
        try {
            $response = $request.GetResponse()
        } catch {
            # An answer with an error status comes as an exception that holds it.
            $cause = $_.Exception
            while ($null -ne $cause -and $cause -isnot [System.Net.WebException]) { $cause = $cause.InnerException }
            if ($null -eq $cause -or $null -eq $cause.Response) { throw }
            $response = $cause.Response
        }
        $answer.StatusCode = [int] $response.StatusCode
        foreach ($name in $response.Headers.AllKeys) { $answer.Headers[$name] = [string] $response.Headers[$name] }
        $bytes = Read-ResponseBody -Response $response -MaxBodyBytes $MaxBodyBytes -Clock $clock -TimeoutSeconds $TimeoutSeconds
        $answer.BodyTruncated = $bytes.Length -gt $MaxBodyBytes
        $answer.Body = [System.Text.Encoding]::UTF8.GetString($bytes, 0, [Math]::Min($bytes.Length, $MaxBodyBytes))
    } catch {
        $answer.StatusCode = $null
        $answer.Headers = @{}
        $answer.ErrorKind = Get-HttpErrorKind -Exception $_.Exception
        $answer.ErrorMessage = (Get-InnermostException -ErrorRecord $_).Message
    } finally {
        if ($null -ne $response) { $response.Dispose() }
        $answer.ElapsedMs = $clock.ElapsedMilliseconds
    }
    return $answer
}

function Write-RequestBody {
    param([System.Net.HttpWebRequest] $Request, [string] $Body, [string] $ContentType)
    $bytes = (New-Object System.Text.UTF8Encoding -ArgumentList $false).GetBytes($Body)
    $Request.ContentType = $ContentType
    $Request.ContentLength = $bytes.Length
    $stream = $Request.GetRequestStream()
    $stream.Write($bytes, 0, $bytes.Length)
    $stream.Dispose()
}

function Read-ResponseBody {
    # One byte more than the limit, so that the caller sees that there was more.
    param([System.Net.HttpWebResponse] $Response, [int] $MaxBodyBytes, [System.Diagnostics.Stopwatch] $Clock, [double] $TimeoutSeconds)
    $stream = $Response.GetResponseStream()
    $all = New-Object System.IO.MemoryStream
    $buffer = New-Object byte[] -ArgumentList 65536
    while ($all.Length -le $MaxBodyBytes) {
        if ($Clock.Elapsed.TotalSeconds -gt $TimeoutSeconds) { throw (New-Object -TypeName System.TimeoutException -ArgumentList 'The answer was not complete in time.') }
        $got = $stream.Read($buffer, 0, [int] [Math]::Min($buffer.Length, $MaxBodyBytes + 1 - $all.Length))
        if ($got -le 0) { break }
        $all.Write($buffer, 0, $got)
    }
    return , $all.ToArray()
}

function Get-HttpErrorKind {
    # refused, timeout, dns, tls or other; the causes behind an exception tell more than its own status.
    param([Exception] $Exception)
    for ($cause = $Exception; $null -ne $cause; $cause = $cause.InnerException) {
        if ($cause -is [System.Net.Sockets.SocketException]) {
            switch ([int] $cause.SocketErrorCode) {
                10061 { return 'refused' }
                10060 { return 'timeout' }
                { $_ -in @(11001, 11002, 11003, 11004) } { return 'dns' }
                default { return 'other' }
            }
        }
        if ($cause -is [System.Security.Authentication.AuthenticationException]) { return 'tls' }
        if ($cause -is [System.TimeoutException]) { return 'timeout' }
        if ($cause -is [System.Net.WebException]) {
            $kinds = @{ Timeout = 'timeout'; NameResolutionFailure = 'dns'; TrustFailure = 'tls'; SecureChannelFailure = 'tls' }
            $kind = $kinds[[string] $cause.Status]
            if ($null -ne $kind) { return $kind }
        }
    }
    return 'other'
}
