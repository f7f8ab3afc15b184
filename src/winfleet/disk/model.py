"""The disk under a path: NVMe, not NVMe, or unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from winfleet.answer import Model, items, mapping, optional_integer, optional_text, text

Kind = Literal["nvme", "not nvme", "unknown"]

# MSFT_Disk.BusType. Buses that may hide an NVMe device answer "unknown": Intel RST and VMD report RAID for
# NVMe, Storage Spaces and VHDX report themselves, guests of a hypervisor report SAS or SCSI.
_PLAIN_BUSES = {
    "ata": "ATA",
    "usb": "USB",
    "sata": "SATA",
    "sd": "SD",
    "mmc": "MMC",
    "1394": "IEEE 1394",
    "atapi": "ATAPI",
}
_NUMBERS = {
    "1": "SCSI", "2": "ATAPI", "3": "ATA", "4": "1394", "6": "Fibre Channel", "7": "USB", "8": "RAID",
    "9": "iSCSI", "10": "SAS", "11": "SATA", "12": "SD", "13": "MMC", "15": "File Backed Virtual",
    "16": "Spaces", "17": "NVMe",
}  # fmt: skip


@dataclass(frozen=True)
class DiskPlace(Model):
    """Where a path lies.

    Attributes: path (as asked), existing_path (nearest folder that exists, junctions resolved), root, kind
    and reason (why that answer), bus ("NVMe"; None: not told), model, file_system, size_bytes, free_bytes,
    chain (each step from the path to the disk, for people).
    """

    path: str
    existing_path: str | None
    root: str | None
    kind: Kind
    reason: str
    bus: str | None
    model: str | None
    file_system: str | None
    size_bytes: int | None
    free_bytes: int | None
    chain: tuple[str, ...]

    @classmethod
    def parse(cls, value: Any) -> DiskPlace:
        """From one item of Get-BoxDisk. Raises ModelError."""
        data = mapping(value, "Get-BoxDisk")
        raw = None if data.get("BusType") is None else str(data["BusType"])
        bus = _NUMBERS.get(raw, raw) if raw else None
        error = None if data.get("Error") is None else str(data["Error"])
        kind, reason = disk_kind(bus, optional_text(data, "DriveType"), error)
        return cls(
            path=text(data, "Path"),
            existing_path=optional_text(data, "ExistingPath"),
            root=optional_text(data, "Root"),
            kind=kind,
            reason=reason,
            bus=bus,
            model=optional_text(data, "Model"),
            file_system=optional_text(data, "FileSystem"),
            size_bytes=optional_integer(data, "SizeBytes"),
            free_bytes=optional_integer(data, "FreeBytes"),
            chain=tuple(str(item) for item in items(data.get("Chain"), "Chain")),
        )


def disk_kind(bus: str | None, drive_type: str | None, error: str | None) -> tuple[Kind, str]:
    """The answer and its reason, from the bus of the disk and the type of its drive."""
    if drive_type is not None and drive_type.lower() in {"network", "cdrom", "ram", "removable"}:
        return "not nvme", f"the drive is of type {drive_type}"
    if bus is None:
        return "unknown", error or "Windows names no bus for this disk"
    plain = bus.lower().replace(" ", "").replace("-", "")
    if plain == "nvme":
        return "nvme", "the bus is NVMe"
    if plain in _PLAIN_BUSES:
        return "not nvme", f"the bus is {_PLAIN_BUSES[plain]}"
    return "unknown", f"the bus is {bus}, which may hide an NVMe device or none"
