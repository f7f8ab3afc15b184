"""nvidia-smi.exe: -q -x, --query-gpu and the plain table's first lines."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from simbox.programs.invocation import Invocation

_NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running."
)
# --query-gpu field: path in the XML.
_FIELDS = {
    "name": "product_name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "pci.bus_id": "pci/pci_bus_id",
    "pci.device_id": "pci/pci_device_id",
    "memory.total": "fb_memory_usage/total",
    "memory.used": "fb_memory_usage/used",
    "memory.free": "fb_memory_usage/free",
    "memory.reserved": "fb_memory_usage/reserved",
    "display_active": "display_active",
    "display_attached": "display_attached",
    "driver_model.current": "driver_model/current_dm",
    "pstate": "performance_state",
    "utilization.gpu": "utilization/gpu_util",
    "temperature.gpu": "temperature/gpu_temp",
    "power.draw": "gpu_power_readings/instant_power_draw",
    "fan.speed": "fan_speed",
}


def run(invocation: Invocation) -> int:
    """Exit codes: 0, 2 invalid argument, 9 no driver, 6 no device."""
    gpu = invocation.box.windows.gpu
    state = gpu.state()
    if not state.get("driver_loaded", True):
        invocation.out(_NO_DRIVER)
        return 9
    arguments = invocation.arguments
    query = next((text.partition("=")[2] for text in arguments if text.startswith("--query-gpu=")), None)
    if query is not None:
        shape = next((text.partition("=")[2] for text in arguments if text.startswith("--format=")), "csv")
        return _query(invocation, query.split(","), shape.split(","))
    if {"-q", "--query"} & set(arguments) and {"-x", "--xml-format"} & set(arguments):
        invocation.stdout(gpu.smi_xml().encode())
        return 0
    unknown = [text for text in arguments if text not in ("-q", "-L", "--list-gpus")]
    if unknown:
        invocation.out(
            f"Invalid combination of input arguments. Please run 'nvidia-smi -h' for help: {unknown[0]}"
        )
        return 2
    if not state["devices"]:
        invocation.out("No devices were found")
        return 6
    for index, device in enumerate(state["devices"]):
        if "-L" in arguments or "--list-gpus" in arguments:
            invocation.out(f"GPU {index}: {device['name']} (UUID: {device['uuid']})")
        else:
            invocation.out(
                f"| NVIDIA-SMI {state['driver_version']}  KMD Version: {state['driver_version']}  "
                f"CUDA UMD Version: {state['cuda_version']} |"
            )
            used = gpu.used_bytes(index) >> 20
            invocation.out(f"| {index}  {device['name']}  {used}MiB / {device['memory_mib']}MiB |")
    return 0


def _query(invocation: Invocation, names: list[str], shape: list[str]) -> int:
    """One unknown field fails the whole query, as with the real program."""
    gpu = invocation.box.windows.gpu
    state = gpu.state()
    own = {"index", "driver_version", "kmd_version", "compute_cap", "count"}
    for name in names:
        if name not in _FIELDS and name not in own:
            invocation.out(f'Field "{name}" is not a valid field to query.')
            return 2
    if "noheader" not in shape:
        invocation.out(", ".join(names))
    for index, device in enumerate(ElementTree.fromstring(gpu.smi_xml()).iter("gpu")):
        major, minor = state["devices"][index]["compute_capability"]
        values = {
            "index": str(index),
            "driver_version": state["driver_version"],
            "kmd_version": state["driver_version"],
            "compute_cap": f"{major}.{minor}",
            "count": str(len(state["devices"])),
        }
        row = [str(values.get(name) or device.findtext(_FIELDS[name]) or "[N/A]") for name in names]
        if "nounits" in shape:
            row = [re.sub(r"^([\d.]+) (MiB|%|W|C)$", r"\1", text) for text in row]
        invocation.out(", ".join(row))
    return 0
