"""Graphics cards: nvidia-smi as a program, the driver through its library."""

from __future__ import annotations

from typing import Any

from simbox.engines.python import programs
from simbox.engines.python.answers import Call, Command
from simbox.engines.python.machine import codec
from simbox.errors import WindowsError

_PLACES = (
    "C:\\Windows\\system32\\nvidia-smi.exe",
    "C:\\Program Files\\NVIDIA Corporation\\NVSMI\\nvidia-smi.exe",
)


def _smi(call: Call) -> dict[str, Any]:
    path = next((place for place in _PLACES if call.box.filesystem.host(place).is_file()), None)
    report: dict[str, Any] = {"Path": path, "ExitCode": None, "Xml": None, "StandardError": None}
    if path is None:
        return report
    try:
        run = programs.run(call, path, "-q -x", timeout_s=60)
    except WindowsError as error:
        return report | {"StandardError": error.message}
    oem = codec(int(call.box.store.get("system", "oem_code_page", default=437)))
    report |= {
        "ExitCode": run.exit_code,
        "Xml": programs.text(run.output),
        "StandardError": run.error_output.decode(oem, "replace"),
    }
    if run.exit_code is None:
        report["StandardError"] = "nvidia-smi.exe gave no answer within 60 s"
    return report


def get(call: Call) -> dict[str, Any]:
    """Get-BoxGpu."""
    driver = call.box.windows.gpu.devices()
    if driver["Loaded"] and driver["InitResult"] != 0:
        driver["Error"] = f"cuInit gave CUDA error {driver['InitResult']}"
    return {"NvidiaSmi": _smi(call), "Driver": driver}


COMMANDS: dict[str, Command] = {"get-boxgpu": get}
