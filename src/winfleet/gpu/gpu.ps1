# What NVIDIA's tool and NVIDIA's driver say of the graphics cards.

function Find-NvidiaSmi {
    # The driver puts it into System32; drivers before 2020 had a folder of their own.
    $places = @(
        [System.IO.Path]::Combine((Get-NativeFolder), 'nvidia-smi.exe'),
        [System.IO.Path]::Combine($env:ProgramW6432, 'NVIDIA Corporation\NVSMI\nvidia-smi.exe')
    )
    foreach ($place in $places) {
        if ([System.IO.File]::Exists($place)) { return $place }
    }
    return $null
}

function Get-NvidiaSmiReport {
    $report = [pscustomobject] @{ Path = Find-NvidiaSmi; ExitCode = $null; Xml = $null; StandardError = $null }
    if ($null -eq $report.Path) { return $report }
    try {
        # The whole XML: one unknown field in a --query-gpu list would fail all the others.
        $run = Invoke-NativeProgram -Path $report.Path -Arguments '-q -x' -TimeoutSeconds 60
        $report.ExitCode = $run.ExitCode
        $report.Xml = ConvertFrom-Utf8Byte -Bytes $run.Output
        $report.StandardError = ConvertFrom-OemByte -Bytes $run.ErrorOutput
        if ($run.TimedOut) { $report.StandardError = 'nvidia-smi.exe gave no answer within 60 s' }
    } catch {
        $report.StandardError = $_.Exception.Message
    }
    return $report
}

function Get-CudaDriver {
    # NVIDIA's driver API, as far as it tells what devices there are.
    $number = [int].MakeByRefType()
    return Get-NativeType -Name 'CudaDriver' -Table @{ 'nvcuda.dll' = @{
        cuInit = [int], [uint32]
        cuDriverGetVersion = [int], $number
        cuDeviceGetCount = [int], $number
        cuDeviceGet = [int], $number, [int]
        cuDeviceGetAttribute = [int], $number, [int], [int]
        cuDeviceTotalMem_v2 = [int], [UIntPtr].MakeByRefType(), [int]
        cuDeviceGetName = [int], [byte[]], [int], [int]
        cuDeviceGetPCIBusId = [int], [byte[]], [int], [int]
    } }
}

function ConvertFrom-CString {
    # The text before the first zero byte.
    param([byte[]] $Bytes)
    return [System.Text.Encoding]::ASCII.GetString($Bytes).Split([char] 0)[0]
}

function Get-CudaDevice {
    # One device by ordinal; attribute numbers are those of cuda.h: 16 multiprocessors, 75 and 76 capability.
    param([int] $Ordinal)
    $driver = Get-CudaDriver
    $handle = 0
    $code = $driver::cuDeviceGet([ref] $handle, $Ordinal)
    if ($code -ne 0) { throw "cuDeviceGet($Ordinal) gave CUDA error $code" }
    $values = @{}
    foreach ($attribute in 16, 75, 76) {
        $value = 0
        $code = $driver::cuDeviceGetAttribute([ref] $value, $attribute, $handle)
        if ($code -ne 0) { throw "cuDeviceGetAttribute($attribute) of device $Ordinal gave CUDA error $code" }
        $values[$attribute] = $value
    }
    $name = New-Object -TypeName 'byte[]' -ArgumentList 256
    $bus = New-Object -TypeName 'byte[]' -ArgumentList 64
    $bytes = [UIntPtr]::Zero
    $codes = @(
        $driver::cuDeviceGetName($name, $name.Length, $handle),
        $driver::cuDeviceGetPCIBusId($bus, $bus.Length, $handle),
        $driver::cuDeviceTotalMem_v2([ref] $bytes, $handle)
    )
    if (@($codes | Where-Object -FilterScript { $_ -ne 0 }).Count -gt 0) {
        throw "name, bus id and memory of device $Ordinal gave CUDA errors $($codes -join ', ')"
    }
    return [pscustomobject] @{
        Ordinal = $Ordinal
        Name = ConvertFrom-CString -Bytes $name
        PciBusId = ConvertFrom-CString -Bytes $bus
        MultiprocessorCount = $values[16]
        ComputeCapabilityMajor = $values[75]
        ComputeCapabilityMinor = $values[76]
        TotalMemoryBytes = [long] $bytes.ToUInt64()
    }
}

function Get-CudaDriverReport {
    # nvidia-smi does not tell the number of multiprocessors; the driver does, and needs no context for it.
    $report = [pscustomobject] @{
        Loaded = $false; Error = $null; InitResult = $null; DriverVersion = $null; Devices = @()
    }
    $library = [System.IO.Path]::Combine((Get-NativeFolder), 'nvcuda.dll')
    if (-not [System.IO.File]::Exists($library)) {
        $report.Error = "$library does not exist: no NVIDIA driver is installed"
        return $report
    }
    try {
        $driver = Get-CudaDriver
        $report.InitResult = $driver::cuInit(0)
        $report.Loaded = $true
        $version = 0
        if ($driver::cuDriverGetVersion([ref] $version) -eq 0) { $report.DriverVersion = $version }
        if ($report.InitResult -ne 0) {
            $report.Error = "cuInit gave CUDA error $($report.InitResult)"
            return $report
        }
        $count = 0
        $code = $driver::cuDeviceGetCount([ref] $count)
        if ($code -ne 0) { throw "cuDeviceGetCount gave CUDA error $code" }
        $devices = New-Object System.Collections.Generic.List[object]
        for ($ordinal = 0; $ordinal -lt $count; $ordinal++) { $devices.Add((Get-CudaDevice -Ordinal $ordinal)) }
        $report.Devices = $devices.ToArray()
    } catch {
        $report.Error = (Get-InnermostException -ErrorRecord $_).Message
    }
    return $report
}

function Get-BoxGpu {
    return [pscustomobject] @{ NvidiaSmi = Get-NvidiaSmiReport; Driver = Get-CudaDriverReport }
}
