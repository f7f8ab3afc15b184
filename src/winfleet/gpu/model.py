"""Graphics cards: what nvidia-smi prints joined with what the CUDA driver says.

Facts: nvidia-smi does not know the count of multiprocessors, the CUDA driver does (attribute 16); CUDA's
order of devices need not be nvidia-smi's, so both are joined by PCI bus id. Element names of ``nvidia-smi -q
-x`` differ between drivers (DTD v11 to v13); only those that stayed are read, everything else is optional.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, ModelError, integer, items, mapping, optional_integer, optional_text, text
from winfleet.version import version_numbers

# Every spelling of "no value" seen in nvidia-smi output, compared in lower case without brackets.
_NO_VALUE = frozenset(
    {
        "",
        "n/a",
        "none",
        "deprecated",
        "not supported",
        "function not found",
        "unknown error",
        "requested functionality has been deprecated",
        "not available in wddm driver model",
    }
)
_DESKTOP_PROGRAMS = frozenset({"dwm.exe", "explorer.exe", "lockapp.exe"})
_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-9a-f]))?", re.IGNORECASE)


def bus_id(value: str) -> str:
    """One spelling of a PCI bus id: ``00000000:01:00.0`` (nvidia-smi) and ``0000:01:00.0`` (CUDA) become
    equal.

    Raises ModelError.
    """
    found = _BUS_ID.fullmatch(value.strip())
    if found is None:
        raise ModelError(f"no PCI bus id: {value!r}")
    domain, bus, device, function = (int(part or "0", 16) for part in found.groups())
    return f"{domain:08x}:{bus:02x}:{device:02x}.{function:x}"


@dataclass(frozen=True)
class GpuProcess(Model):
    """A process that nvidia-smi lists. Attributes: process_id, name (path or program name), kind ("C", "G",
    "C+G")."""

    process_id: int
    name: str
    kind: str


@dataclass(frozen=True)
class GpuCard(Model):
    """One card.

    Attributes: pci_bus_id (normalised), name, uuid, pci_device_id ("10de:2685"), memory_*_mib (framebuffer;
    on WDDM "free" is advisory), driver_model ("WDDM", "TCC", "MCDM" or None), display_attached and
    display_active (None: not told), processes, multiprocessors (None: the CUDA driver did not answer),
    compute_capability ("8.9"), cuda_ordinal (index for --device).
    """

    pci_bus_id: str
    name: str
    uuid: str | None = None
    pci_device_id: str | None = None
    memory_total_mib: int | None = None
    memory_used_mib: int | None = None
    memory_free_mib: int | None = None
    driver_model: str | None = None
    display_attached: bool | None = None
    display_active: bool | None = None
    processes: tuple[GpuProcess, ...] = ()
    multiprocessors: int | None = None
    compute_capability: str | None = None
    cuda_ordinal: int | None = None

    @property
    def drives_desktop(self) -> bool:
        """True when a display hangs on the card or the desktop's programs run on it.

        ``display_active`` alone is not asked: it flips when a monitor falls asleep.
        """
        programs = {process.name.replace("/", "\\").rpartition("\\")[2].lower() for process in self.processes}
        return bool(self.display_attached) or bool(programs & _DESKTOP_PROGRAMS)


@dataclass(frozen=True)
class GpuState(Model):
    """All cards of a box.

    Attributes: driver_version ("616.56"; None without a driver), cuda_version (highest that the driver
    supports, "13.3"), cards in nvidia-smi order, smi_path, smi_fault (why nvidia-smi gave nothing),
    driver_fault (why the CUDA driver gave nothing).
    """

    driver_version: str | None
    cuda_version: str | None
    cards: tuple[GpuCard, ...]
    smi_path: str | None = None
    smi_fault: str | None = None
    driver_fault: str | None = None

    @property
    def driver_numbers(self) -> tuple[int, ...]:
        """The driver version as numbers that compare; empty without one."""
        return version_numbers(self.driver_version)

    @classmethod
    def parse(cls, value: Any) -> GpuState:
        """From the JSON value of Get-BoxGpu. Raises ModelError."""
        data = mapping(value, "Get-BoxGpu")
        smi = mapping(data.get("NvidiaSmi") or {}, "NvidiaSmi")
        driver = mapping(data.get("Driver") or {}, "Driver")
        path, code, xml = (
            optional_text(smi, "Path"),
            optional_integer(smi, "ExitCode"),
            optional_text(smi, "Xml"),
        )
        versions: tuple[str | None, str | None] = (None, None)
        cards: list[GpuCard] = []
        smi_fault = None
        if path is None:
            smi_fault = "nvidia-smi.exe is not on the box: no NVIDIA driver is installed"
        elif code != 0 or not xml:
            said = (optional_text(smi, "StandardError") or xml or "").strip()
            smi_fault = f"{path} ended with code {code}: {said or 'no output'}"
        else:
            *versions, cards = parse_smi(xml)  # type: ignore[assignment]
        driver_fault = None
        if not driver.get("Loaded"):
            driver_fault = f"nvcuda.dll could not be used: {optional_text(driver, 'Error') or 'not loaded'}"
        elif driver.get("InitResult") not in (0, None):
            driver_fault = f"cuInit answered {cuda_error(integer(driver, 'InitResult'))}"
        cards = _joined(cards, items(driver.get("Devices"), "Devices"))
        supported = versions[1] or _driver_api_version(optional_integer(driver, "DriverVersion"))
        return cls(versions[0], supported, tuple(cards), path, smi_fault, driver_fault)


def cuda_error(code: int) -> str:
    """Words for the driver API results that cuInit gives (CUDA driver API, CUresult)."""
    words = {
        3: "not initialised",
        36: "the CUDA program needs a newer driver",
        100: "no CUDA device",
        803: "driver and library versions do not fit together",
        999: "unknown error",
    }
    return f"{code} ({words.get(code, 'see CUresult')})"


def _driver_api_version(number: int | None) -> str | None:
    return None if not number else f"{number // 1000}.{number % 1000 // 10}"


def _present(node: ElementTree.Element, path: str) -> str | None:
    found = node.findtext(path)
    if found is None or found.strip().strip("[]").lower() in _NO_VALUE:
        return None
    return found.strip()


def _mib(node: ElementTree.Element, path: str) -> int | None:
    found = re.fullmatch(r"(\d+)\s*MiB", _present(node, path) or "")
    return int(found[1]) if found else None


def _yes(node: ElementTree.Element, *paths: str) -> bool | None:
    for path in paths:
        found = _present(node, path)
        if found is not None and found.lower() in {"yes", "enabled", "no", "disabled"}:
            return found.lower() in {"yes", "enabled"}
    return None


def _pci_device(node: ElementTree.Element) -> str | None:
    found = re.fullmatch(
        r"(?:0x)?([0-9a-f]{4})([0-9a-f]{4})", _present(node, "pci/pci_device_id") or "", re.IGNORECASE
    )
    return f"{found[2]}:{found[1]}".lower() if found else None


def parse_smi(xml: str) -> tuple[str | None, str | None, list[GpuCard]]:
    """Driver version, CUDA version and cards in the text of ``nvidia-smi -q -x``. Raises ModelError.

    The document type is cut off before parsing: it names a file that is not there.
    """
    body = re.sub(r"<!DOCTYPE[^>]*>", "", xml.lstrip("\ufeff"))
    body = re.sub(r"^\s*<\?xml[^>]*\?>", "", body)
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise ModelError(f"nvidia-smi -q -x gave no XML: {error}") from error
    cards = []
    for node in root.findall("gpu"):
        processes = tuple(
            GpuProcess(
                int(_present(entry, "pid") or 0),
                _present(entry, "process_name") or "",
                _present(entry, "type") or "",
            )
            for entry in node.findall("processes/process_info")
        )
        cards.append(
            GpuCard(
                pci_bus_id=bus_id(_present(node, "pci/pci_bus_id") or node.get("id") or ""),
                name=_present(node, "product_name") or "",
                uuid=_present(node, "uuid"),
                pci_device_id=_pci_device(node),
                memory_total_mib=_mib(node, "fb_memory_usage/total"),
                memory_used_mib=_mib(node, "fb_memory_usage/used"),
                memory_free_mib=_mib(node, "fb_memory_usage/free"),
                driver_model=_present(node, "driver_model/current_dm")
                or _present(node, "gpu_driver_model/current_dm"),
                display_attached=_yes(node, "display_attached", "display_mode"),
                display_active=_yes(node, "display_active"),
                processes=processes,
            )
        )
    version = _present(root, "driver_version") or _present(root, "kmd_version")
    return version, _present(root, "cuda_version"), cards


def _joined(cards: list[GpuCard], devices: list[Any]) -> list[GpuCard]:
    """The cards with what the CUDA driver knows of each; cards that only the driver knows come last."""
    known = {card.pci_bus_id: card for card in cards}
    for entry in devices:
        device = mapping(entry, "Devices")
        key = bus_id(text(device, "PciBusId"))
        major, minor = (
            optional_integer(device, "ComputeCapabilityMajor"),
            optional_integer(device, "ComputeCapabilityMinor"),
        )
        total = optional_integer(device, "TotalMemoryBytes")
        card = known.get(key) or GpuCard(
            key, text(device, "Name"), memory_total_mib=None if total is None else total // 2**20
        )
        known[key] = GpuCard(
            **{
                **card.__dict__,
                "multiprocessors": optional_integer(device, "MultiprocessorCount"),
                "compute_capability": None if major is None else f"{major}.{minor or 0}",
                "cuda_ordinal": optional_integer(device, "Ordinal"),
            }
        )
    return list(known.values())
