"""Disks of a simulated box: from a path through junctions to the volume and the bus it hangs on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box

# MSFT_Disk.BusType as the Storage cmdlets number it.
BUS_TYPES = {"ATA": 3, "USB": 7, "RAID": 8, "iSCSI": 9, "SAS": 10, "SATA": 11, "File Backed Virtual": 15,
             "Spaces": 16, "NVMe": 17}  # fmt: skip


class Disks:
    """Volumes and disks."""

    REMOTE = frozenset({"of_path", "topology"})

    def __init__(self, box: Box) -> None:
        self._box = box

    def topology(self) -> list[dict[str, Any]]:
        """One row for each volume: what Get-Partition, Get-Disk, Get-PhysicalDisk and Get-Volume say
        together.
        """
        return [
            {
                "DriveLetter": letter,
                "Label": volume.get("label", ""),
                "FileSystem": volume["file_system"],
                "SizeBytes": volume["size_bytes"],
                "FreeBytes": volume["free_bytes"],
                "DiskNumber": disk["number"],
                "PartitionNumber": index + 3,
                "Model": disk["model"],
                "BusType": disk["bus_type"],
                "BusTypeNumber": BUS_TYPES.get(disk["bus_type"], 0),
                # The simulator keeps no disks behind a storage space, and the space itself has no medium.
                "MediaType": None if disk["bus_type"] == "Spaces" else disk["media_type"],
                "DiskSizeBytes": disk["size_bytes"],
            }
            for disk in self._box.store.get("disks")
            for index, (letter, volume) in enumerate(disk["volumes"].items())
        ]

    def of_path(self, path: str) -> dict[str, Any]:
        """As Get-BoxDisk gives it for one path."""
        answer: dict[str, Any] = dict.fromkeys(
            ("Path", "ExistingPath", "Root", "DriveType", "FileSystem", "SizeBytes", "FreeBytes", "BusType",
             "MediaType", "Model", "Chain", "Error")
        )  # fmt: skip
        answer |= {"Path": path, "Chain": []}
        try:
            existing = self._box.filesystem.nearest_existing(path)
        except (WindowsError, ValueError) as error:
            return answer | {"Error": str(error)}
        root = existing[:3]
        answer |= {"ExistingPath": existing, "Root": root}
        row = next((row for row in self.topology() if row["DriveLetter"] == root[0]), None)
        if row is None:
            return answer | {"DriveType": "NoRootDirectory", "Error": f"there is no drive {root}"}
        if existing.casefold() != self._box.filesystem.normalise(path).casefold():
            answer["Chain"].append(f"{path} -> {existing}")
        answer["Chain"] += [
            f"{root} -> partition {row['PartitionNumber']} of disk {row['DiskNumber']}",
            f"disk {row['DiskNumber']} -> {row['Model']}, bus {row['BusType']}",
        ]
        keys = ("FileSystem", "SizeBytes", "FreeBytes", "BusType", "MediaType", "Model")
        return answer | {"DriveType": "Fixed"} | {key: row[key] for key in keys}
