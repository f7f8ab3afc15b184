"""The GPU of a simulated box: who uses how much of its memory, what the driver and nvidia-smi say."""

from __future__ import annotations

import ntpath
import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from simbox.box import Box

MIB = 1 << 20
RESERVED_MIB = 414  # total = reserved + used + free, as in the capture of a real card


class Gpu:
    """Memory ledger of each device, nvcuda's answers and the XML of `nvidia-smi -q -x`."""

    REMOTE = frozenset({"devices", "smi_xml"})

    def __init__(self, box: Box) -> None:
        self._box = box
        self._lock = threading.Lock()
        self._used: dict[int, tuple[int, int]] = {}  # pid: device, bytes
        self._draining: list[tuple[float, int, int]] = []  # monotonic end, device, bytes

    def state(self) -> dict[str, Any]:
        """The `gpu` section of the store."""
        state: dict[str, Any] = self._box.store.get("gpu")
        return state

    def allocate(self, pid: int, device: int, size_bytes: int) -> None:
        """Record what a process holds of a device; replaces its earlier figure."""
        with self._lock:
            self._used[pid] = (device, size_bytes)

    def release(self, pid: int) -> None:
        """A process has gone; its memory is free after the profile's serve.memory_drain_seconds."""
        delay_s = float(self._box.profile.get("serve", "memory_drain_seconds", default=0))
        with self._lock:
            held = self._used.pop(pid, None)
            if held and delay_s > 0:
                self._draining.append((time.monotonic() + delay_s, *held))

    def used_bytes(self, device: int) -> int:
        """Used memory of a device: desktop, servers, and what has not drained yet."""
        now = time.monotonic()
        with self._lock:
            self._draining = [item for item in self._draining if item[0] > now]
            held = sum(size for where, size in self._used.values() if where == device)
            held += sum(size for _, where, size in self._draining if where == device)
        return int(self.state().get("desktop_used_mib", 0)) * MIB + held

    def free_bytes(self, device: int) -> int:
        """Free memory of a device: what is neither used nor reserved by the driver."""
        total = int(self.state()["devices"][device]["memory_mib"]) * MIB
        return max(0, total - RESERVED_MIB * MIB - self.used_bytes(device))

    def devices(self) -> dict[str, Any]:
        """As the Driver of Get-BoxGpu. InitResult 100: no device; without a driver nvcuda.dll does not
        load.
        """
        gpu = self.state()
        if not gpu.get("driver_loaded", True):
            return {
                "Loaded": False,
                "Error": "Unable to load DLL 'nvcuda.dll'",
                "InitResult": None,
                "DriverVersion": None,
                "Devices": [],
            }
        major, minor = (int(part) for part in gpu["cuda_version"].split("."))
        return {
            "Loaded": True,
            "Error": None,
            "InitResult": 0 if gpu["devices"] else 100,
            "DriverVersion": major * 1000 + minor * 10,
            "Devices": [
                {
                    "Ordinal": ordinal,
                    "Name": device["name"],
                    "PciBusId": device["pci_bus_id"],
                    "MultiprocessorCount": device["multiprocessors"],
                    "ComputeCapabilityMajor": device["compute_capability"][0],
                    "ComputeCapabilityMinor": device["compute_capability"][1],
                    "TotalMemoryBytes": device["memory_mib"] * MIB,
                }
                for ordinal, device in enumerate(gpu["devices"])
            ],
        }

    def smi_xml(self) -> str:
        """The text of `nvidia-smi -q -x` in the shape of driver 580 and later (DTD v13)."""
        gpu = self.state()
        lines = [
            '<?xml version="1.0" ?>',
            '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">',
            "<nvidia_smi_log>",
            f"\t<timestamp>{datetime.now():%a %b %d %H:%M:%S %Y}</timestamp>",
            f"\t<driver_version>{gpu['driver_version']}</driver_version>",
            f"\t<cuda_version>{gpu['cuda_version']}</cuda_version>",
            f"\t<attached_gpus>{len(gpu['devices'])}</attached_gpus>",
        ]
        for index, device in enumerate(gpu["devices"]):
            lines += self._device_xml(gpu, index, device)
        return "\n".join([*lines, "</nvidia_smi_log>", ""])

    def _device_xml(self, gpu: dict[str, Any], index: int, device: dict[str, Any]) -> list[str]:
        total, used = int(device["memory_mib"]), self.used_bytes(index) // MIB
        busy = any(where == index for where, _ in self._used.values())
        lines = [f'\t<gpu id="{device["pci_bus_id"]}">']

        def leaf(depth: int, name: str, value: object) -> None:
            lines.append("\t" * depth + f"<{name}>{escape(str(value))}</{name}>")

        def group(name: str, **values: object) -> None:
            lines.append(f"\t\t<{name}>")
            for key, value in values.items():
                leaf(3, key, value)
            lines.append(f"\t\t</{name}>")

        leaf(2, "product_name", device["name"])
        leaf(2, "product_brand", "GeForce")
        leaf(2, "product_architecture", "Ada Lovelace")
        leaf(2, "display_mode", "Requested functionality has been deprecated")
        leaf(2, "display_attached", "Yes" if device["display_attached"] else "No")
        leaf(2, "display_active", "Enabled" if device["display_active"] else "Disabled")
        leaf(2, "persistence_mode", "N/A")
        leaf(2, "addressing_mode", "N/A")
        group("mig_mode", current_mig="N/A", pending_mig="N/A")
        group("driver_model", current_dm=gpu["driver_model"], pending_dm=gpu["driver_model"])
        leaf(2, "serial", "N/A")
        leaf(2, "uuid", device["uuid"])
        leaf(2, "minor_number", "N/A")
        leaf(2, "vbios_version", gpu.get("vbios", "N/A"))
        bus = device["pci_bus_id"]
        group(
            "pci",
            pci_bus=bus[9:11],
            pci_device=bus[12:14],
            pci_domain=bus[4:8],
            pci_base_class=3,
            pci_sub_class=0,
            pci_device_id=device["pci_device_id"],
            pci_bus_id=bus,
            pci_sub_system_id="40BF10DE",
        )
        leaf(2, "fan_speed", "30 %")
        leaf(2, "performance_state", "P0" if busy else "P8")
        group("clocks_event_reasons", clocks_event_reason_gpu_idle="Not Active" if busy else "Active")
        group(
            "fb_memory_usage",
            total=f"{total} MiB",
            reserved=f"{RESERVED_MIB} MiB",
            used=f"{used} MiB",
            free=f"{self.free_bytes(index) // MIB} MiB",
        )
        group("bar1_memory_usage", total="65536 MiB", used="1 MiB", free="65535 MiB")
        leaf(2, "compute_mode", "Default")
        group(
            "utilization",
            gpu_util=f"{3 if busy else 1} %",
            memory_util="1 %",
            encoder_util="0 %",
            decoder_util="0 %",
            jpeg_util="0 %",
            ofa_util="0 %",
        )
        group("temperature", gpu_temp="41 C" if busy else "33 C", gpu_temp_tlimit="49 C", memory_temp="N/A")
        group(
            "gpu_power_readings",
            power_state="P0" if busy else "P8",
            average_power_draw="N/A",
            instant_power_draw="61.30 W" if busy else "19.82 W",
            current_power_limit="425.00 W",
        )
        group(
            "clocks",
            graphics_clock="2520 MHz" if busy else "210 MHz",
            sm_clock="2520 MHz" if busy else "210 MHz",
            mem_clock="10501 MHz" if busy else "405 MHz",
            video_clock="1950 MHz",
        )
        group(
            "max_clocks",
            graphics_clock="3120 MHz",
            sm_clock="3120 MHz",
            mem_clock="10501 MHz",
            video_clock="2415 MHz",
        )
        lines += self._processes_xml(index, device)
        return [*lines, "\t</gpu>"]

    def _processes_xml(self, index: int, device: dict[str, Any]) -> list[str]:
        rows = []
        if device["display_attached"]:
            names = self._box.profile.get("processes", default=[])
            rows += [(1200 + 4 * number, "C+G", f"C:\\Windows\\{name}") for number, name in enumerate(names)]
        for pid, (where, _) in sorted(self._used.items()):
            entry = self._box.windows.process.find(pid)
            if where == index and entry:
                rows.append((pid, "C", entry.path))
        lines = ["\t\t<processes>"]
        for pid, kind, path in rows:
            lines += [
                "\t\t\t<process_info>",
                "\t\t\t\t<gpu_instance_id>N/A</gpu_instance_id>",
                "\t\t\t\t<compute_instance_id>N/A</compute_instance_id>",
                f"\t\t\t\t<pid>{pid}</pid>",
                f"\t\t\t\t<type>{kind}</type>",
                f"\t\t\t\t<process_name>{escape(ntpath.normpath(path))}</process_name>",
                # WDDM hides what each process uses from NVML
                "\t\t\t\t<used_memory>N/A</used_memory>",
                "\t\t\t</process_info>",
            ]
        return [*lines, "\t\t</processes>"]
