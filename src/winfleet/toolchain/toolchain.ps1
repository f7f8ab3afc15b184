# What is installed to build with. Programs are found by where they are installed, not through the PATH of this
# process: a remote session has the PATH of the time when its service started.

function Get-MachineSearchPath {
    # The folders of the machine's PATH, then the user's, as they are now in the registry.
    $folders = New-Object System.Collections.Generic.List[string]
    foreach ($target in [EnvironmentVariableTarget]::Machine, [EnvironmentVariableTarget]::User) {
        $path = [Environment]::GetEnvironmentVariable('Path', $target)
        if ($null -eq $path) { continue }
        foreach ($folder in $path.Split([char[]] ';', [StringSplitOptions]::RemoveEmptyEntries)) {
            $folders.Add([Environment]::ExpandEnvironmentVariables($folder.Trim().Trim([char] '"')))
        }
    }
    return , $folders.ToArray()
}

function Find-Program {
    # The first of the folders that holds the program, or null.
    param([string] $FileName, [string[]] $Folder)
    foreach ($one in $Folder) {
        if (-not [System.IO.Path]::IsPathRooted($one)) { continue }
        try { $candidate = [System.IO.Path]::Combine($one, $FileName) } catch { continue }
        if ([System.IO.File]::Exists($candidate)) { return $candidate }
    }
    return $null
}

function Get-ProgramVersion {
    # Path and what the program says of its version; the text is the program's error when it does not start.
    param([string] $Path)
    if ([string]::IsNullOrEmpty($Path)) { return $null }
    try {
        $run = Invoke-NativeProgram -Path $Path -Arguments '--version'
        $text = ConvertFrom-Utf8Byte -Bytes $run.Output
        if ($run.ExitCode -ne 0) { $text = $text + (ConvertFrom-Utf8Byte -Bytes $run.ErrorOutput) }
    } catch {
        $text = $_.Exception.Message
    }
    return [pscustomobject] @{ Path = $Path; VersionText = $text.Trim() }
}

function Get-CudaInstallation {
    # Every CUDA toolkit that the machine's environment names (CUDA_PATH, CUDA_PATH_V13_3, ...).
    $environment = [Environment]::GetEnvironmentVariables([EnvironmentVariableTarget]::Machine)
    $found = @(foreach ($variable in @($environment.Keys | Sort-Object)) {
        if ($variable -notmatch '^CUDA_PATH(_V[0-9_]+)?$') { continue }
        $path = [string] $environment[$variable]
        $compiler = Find-Program -FileName 'nvcc.exe' -Folder ([System.IO.Path]::Combine($path, 'bin'))
        $version = Get-ProgramVersion -Path $compiler
        $text = $null
        if ($null -ne $version) { $text = $version.VersionText }
        [pscustomobject] @{
            Variable = [string] $variable
            Path = $path
            VersionJson = Read-TextFile -Path ([System.IO.Path]::Combine($path, 'version.json'))
            NvccVersion = $text
        }
    })
    return , @($found)
}

function Get-VswhereReport {
    # The installer's own finder; -products * because Build Tools are left out otherwise.
    $path = [System.IO.Path]::Combine(${env:ProgramFiles(x86)}, 'Microsoft Visual Studio\Installer\vswhere.exe')
    $report = [pscustomobject] @{ Path = $null; Json = $null }
    if (-not [System.IO.File]::Exists($path)) { return $report }
    $report.Path = $path
    $arguments = '-products * -requires Microsoft.VisualStudio.Component.VC.Tools.x86.x64 -format json -utf8'
    $run = Invoke-NativeProgram -Path $path -Arguments $arguments
    $report.Json = ConvertFrom-Utf8Byte -Bytes $run.Output
    return $report
}

function Get-VisualStudioInstallation {
    param([string] $VswhereJson)
    $found = New-Object System.Collections.Generic.List[object]
    if (-not [string]::IsNullOrEmpty($VswhereJson)) {
        # Assigned before the loop: a pipeline would see the whole JSON array as one object here.
        $instances = ConvertFrom-Json -InputObject $VswhereJson
        foreach ($instance in $instances) {
            $path = [string] $instance.installationPath
            $build = [System.IO.Path]::Combine($path, 'VC\Auxiliary\Build')
            $toolset = Read-TextFile -Path ([System.IO.Path]::Combine($build, 'Microsoft.VCToolsVersion.default.txt'))
            if ($null -ne $toolset) { $toolset = $toolset.Trim() }
            $batch = [System.IO.Path]::Combine($build, 'vcvars64.bat')
            if (-not [System.IO.File]::Exists($batch)) { $batch = $null }
            $found.Add([pscustomobject] @{
                InstallationPath = $path; DefaultToolset = $toolset; VcVars64Path = $batch
            })
        }
    }
    return , $found.ToArray()
}

function Get-VcpkgInstallation {
    # The root given, else that of the machine's environment.
    param([string] $VcpkgRoot)
    if ([string]::IsNullOrEmpty($VcpkgRoot)) {
        $VcpkgRoot = [Environment]::GetEnvironmentVariable('VCPKG_ROOT', [EnvironmentVariableTarget]::Machine)
    }
    if ([string]::IsNullOrEmpty($VcpkgRoot) -or -not [System.IO.Directory]::Exists($VcpkgRoot)) { return $null }
    return [pscustomobject] @{
        Root = $VcpkgRoot
        Exe = Find-Program -FileName 'vcpkg.exe' -Folder $VcpkgRoot
    }
}

function Get-BoxToolchain {
    param([string] $VcpkgRoot)
    $vswhere = Get-VswhereReport
    $studios = Get-VisualStudioInstallation -VswhereJson $vswhere.Json
    $folders = New-Object System.Collections.Generic.List[string]
    $folders.AddRange([string[]] (Get-MachineSearchPath))
    foreach ($place in 'CMake\bin', 'Git\cmd', 'Ninja') {
        $folders.Add([System.IO.Path]::Combine($env:ProgramW6432, $place))
    }
    foreach ($studio in $studios) {
        $bundled = [System.IO.Path]::Combine($studio.InstallationPath, 'Common7\IDE\CommonExtensions\Microsoft\CMake')
        $folders.Add([System.IO.Path]::Combine($bundled, 'CMake\bin'))
        $folders.Add([System.IO.Path]::Combine($bundled, 'Ninja'))
    }
    $folders.Add((Get-NativeFolder))
    $programs = @{}
    foreach ($name in 'cmake', 'ninja', 'git', 'curl') {
        $programs[$name] = Get-ProgramVersion -Path (Find-Program -FileName ($name + '.exe') -Folder $folders.ToArray())
    }
    return [pscustomobject] @{
        Cuda = Get-CudaInstallation
        Vswhere = $vswhere
        VisualStudio = $studios
        Programs = $programs
        Vcpkg = Get-VcpkgInstallation -VcpkgRoot $VcpkgRoot
    }
}

function Add-Occurrence {
    # Count one more of a text in a table.
    param([hashtable] $Table, [string] $Text)
    if (-not $Table.ContainsKey($Text)) { $Table[$Text] = 0 }
    $Table[$Text] = $Table[$Text] + 1
}

function Get-BoxCompileCommand {
    # What the compiler is really told: the file has megabytes, so it is counted here and not carried away.
    param([string] $Path, [string] $Definition)
    $answer = [pscustomobject] @{
        Exists = $false; CommandCount = 0; CudaCommandCount = 0; DefinitionValues = @{}; WithoutDefinition = 0
        Architectures = @{}
    }
    $text = Read-TextFile -Path $Path
    if ($null -eq $text) { return $answer }
    $answer.Exists = $true
    $commands = ConvertFrom-Json -InputObject $text
    $wanted = New-Object -TypeName System.Text.RegularExpressions.Regex -ArgumentList (
        '[-/]D\s*"?' + [System.Text.RegularExpressions.Regex]::Escape($Definition) + '(?:=([^\s"]*))?(?=["\s]|$)')
    $architecture = New-Object -TypeName System.Text.RegularExpressions.Regex -ArgumentList (
        '(?:--generate-code|-gencode|--gpu-architecture|-arch)[=\s]+"?([^\s"]+)')
    foreach ($command in $commands) {
        $answer.CommandCount++
        if ([string] $command.file -notmatch '\.cu$') { continue }
        $answer.CudaCommandCount++
        $line = [string] $command.command
        if ([string]::IsNullOrEmpty($line)) { $line = @($command.arguments) -join ' ' }
        $hits = $wanted.Matches($line)
        if ($hits.Count -eq 0) {
            $answer.WithoutDefinition++
        } else {
            # The last definition on a command line is the one that holds.
            Add-Occurrence -Table $answer.DefinitionValues -Text $hits[$hits.Count - 1].Groups[1].Value
        }
        foreach ($hit in $architecture.Matches($line)) {
            Add-Occurrence -Table $answer.Architectures -Text $hit.Groups[1].Value
        }
    }
    return $answer
}
