# Running a Windows program and keeping what it wrote as bytes. No pipeline touches them, so no code page can.

function Invoke-NativeProgram {
    # Run Path with Arguments (one command line, quoted by the caller) and wait; returns ExitCode, Output and
    # ErrorOutput (byte[]) and TimedOut. Throws when the program cannot be started.
    param([string] $Path, [string] $Arguments = '', [int] $TimeoutSeconds = 60)
    $start = New-Object System.Diagnostics.ProcessStartInfo
    $start.FileName = $Path
    $start.Arguments = $Arguments
    $start.WorkingDirectory = [Environment]::SystemDirectory
    $start.UseShellExecute = $false
    # A console of its own has the OEM code page; that of a remote shell may have been switched to UTF-8.
    $start.CreateNoWindow = $true
    # Without its own stdin the program could read the requests meant for this session.
    $start.RedirectStandardInput = $true
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    $process = [System.Diagnostics.Process]::Start($start)
    try {
        $process.StandardInput.Close()
        $output = New-Object System.IO.MemoryStream
        $errorOutput = New-Object System.IO.MemoryStream
        $copies = [System.Threading.Tasks.Task[]] @(
            $process.StandardOutput.BaseStream.CopyToAsync($output),
            $process.StandardError.BaseStream.CopyToAsync($errorOutput)
        )
        $ended = $process.WaitForExit($TimeoutSeconds * 1000)
        if (-not $ended) {
            $process.Kill()
            [void] $process.WaitForExit(5000)
        }
        # A grandchild may hold the pipes open; what has arrived by then is the answer.
        [void] [System.Threading.Tasks.Task]::WaitAll($copies, 5000)
        $code = $null
        if ($ended) { $code = $process.ExitCode }
        return [pscustomobject] @{
            ExitCode = $code
            Output = $output.ToArray()
            ErrorOutput = $errorOutput.ToArray()
            TimedOut = (-not $ended)
        }
    } finally {
        $process.Dispose()
    }
}

function ConvertFrom-Utf8Byte {
    # Text of UTF-8 bytes, without a byte order mark.
    param([byte[]] $Bytes)
    return [System.Text.Encoding]::UTF8.GetString($Bytes).TrimStart([char] 0xFEFF)
}

function ConvertFrom-OemByte {
    # Text of bytes in the OEM code page, the one that console programs of Windows write.
    # The machine's code page, not the culture's: a user's regional format does not change what netsh writes.
    param([byte[]] $Bytes)
    $key = 'HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\Nls\CodePage'
    $page = [int] [Microsoft.Win32.Registry]::GetValue($key, 'OEMCP', '437')
    return [System.Text.Encoding]::GetEncoding($page).GetString($Bytes)
}

function Get-NativeFolder {
    # The real System32, also for a 32-bit process.
    if ([Environment]::Is64BitOperatingSystem -and -not [Environment]::Is64BitProcess) {
        return [System.IO.Path]::Combine($env:SystemRoot, 'Sysnative')
    }
    return [Environment]::SystemDirectory
}

function Read-TextFile {
    # The text of a small UTF-8 file, or null when it does not exist.
    param([string] $Path)
    if (-not [System.IO.File]::Exists($Path)) { return $null }
    return [System.IO.File]::ReadAllText($Path)
}
