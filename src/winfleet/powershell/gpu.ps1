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

function Import-CudaDriver {
    # The type is compiled once a session. System32 only: a DLL of that name elsewhere must not be loaded.
    if ($null -ne ('WinFleet.CudaDriver' -as [type])) { return }
    Add-Type -TypeDefinition @'
using System;
using System.Runtime.InteropServices;
using System.Text;
[assembly: DefaultDllImportSearchPaths(DllImportSearchPath.System32)]
namespace WinFleet {
    public static class CudaDriver {
        [DllImport("nvcuda.dll")] public static extern int cuInit(uint flags);
        [DllImport("nvcuda.dll")] public static extern int cuDriverGetVersion(out int version);
        [DllImport("nvcuda.dll")] public static extern int cuDeviceGetCount(out int count);
        [DllImport("nvcuda.dll")] public static extern int cuDeviceGet(out int device, int ordinal);
        [DllImport("nvcuda.dll")] public static extern int cuDeviceGetAttribute(out int value, int attribute, int device);
        [DllImport("nvcuda.dll")] public static extern int cuDeviceTotalMem_v2(out UIntPtr bytes, int device);
        [DllImport("nvcuda.dll", CharSet = CharSet.Ansi)]
        public static extern int cuDeviceGetName(StringBuilder name, int length, int device);
        [DllImport("nvcuda.dll", CharSet = CharSet.Ansi)]
        public static extern int cuDeviceGetPCIBusId(StringBuilder id, int length, int device);
    }
}
'@
}

function Get-CudaDevice {
    # One device by ordinal; attribute numbers are those of cuda.h: 16 multiprocessors, 75 and 76 capability.
    param([int] $Ordinal)
    $handle = 0
    $code = [WinFleet.CudaDriver]::cuDeviceGet([ref] $handle, $Ordinal)
    if ($code -ne 0) { throw "cuDeviceGet($Ordinal) gave CUDA error $code" }
    $values = @{}
    foreach ($attribute in 16, 75, 76) {
        $value = 0
        $code = [WinFleet.CudaDriver]::cuDeviceGetAttribute([ref] $value, $attribute, $handle)
        if ($code -ne 0) { throw "cuDeviceGetAttribute($attribute) of device $Ordinal gave CUDA error $code" }
        $values[$attribute] = $value
    }
    $name = New-Object -TypeName System.Text.StringBuilder -ArgumentList 256
    $bus = New-Object -TypeName System.Text.StringBuilder -ArgumentList 64
    $bytes = [UIntPtr]::Zero
    $codes = @(
        [WinFleet.CudaDriver]::cuDeviceGetName($name, $name.Capacity, $handle),
        [WinFleet.CudaDriver]::cuDeviceGetPCIBusId($bus, $bus.Capacity, $handle),
        [WinFleet.CudaDriver]::cuDeviceTotalMem_v2([ref] $bytes, $handle)
    )
    if (@($codes | Where-Object -FilterScript { $_ -ne 0 }).Count -gt 0) {
        throw "name, bus id and memory of device $Ordinal gave CUDA errors $($codes -join ', ')"
    }
    return [pscustomobject] @{
        Ordinal = $Ordinal
        Name = $name.ToString()
        PciBusId = $bus.ToString()
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
        Import-CudaDriver
        $report.InitResult = [WinFleet.CudaDriver]::cuInit(0)
        $report.Loaded = $true
        $version = 0
        if ([WinFleet.CudaDriver]::cuDriverGetVersion([ref] $version) -eq 0) { $report.DriverVersion = $version }
        if ($report.InitResult -ne 0) {
            $report.Error = "cuInit gave CUDA error $($report.InitResult)"
            return $report
        }
        $count = 0
        $code = [WinFleet.CudaDriver]::cuDeviceGetCount([ref] $count)
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
