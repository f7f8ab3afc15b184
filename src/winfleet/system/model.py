"""The machine and its Windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, integer, items, mapping, optional_integer, optional_text, text
from winfleet.network.port_ranges import PortRange, excluded_ranges


@dataclass(frozen=True)
class SystemState(Model):
    """Answer of Get-BoxSystem.

    Attributes: computer_name; caption ("Microsoft Windows 11 Pro"); version ("10.0.22631"); build_number;
    boot_time_utc and time_utc (ISO 8601 text; the latter is now, by the box's own clock); total_memory_bytes
    and free_memory_bytes (physical); logical_processors; time_zone_id; culture; system_directory;
    pending_reboot (names of the reasons); excluded_ports (reserved by Windows); machine_environment (variables
    of the machine, not of the session).
    """

    computer_name: str
    caption: str
    version: str
    build_number: int
    boot_time_utc: str
    time_utc: str
    total_memory_bytes: int
    free_memory_bytes: int
    logical_processors: int
    time_zone_id: str | None
    culture: str | None
    system_directory: str
    pending_reboot: tuple[str, ...]
    excluded_ports: tuple[PortRange, ...]
    machine_environment: Mapping[str, str]

    @classmethod
    def parse(cls, value: Any) -> SystemState:
        """From the JSON value. Raises ModelError."""
        data = mapping(value, "Get-BoxSystem")
        build = data.get("BuildNumber")
        return cls(
            computer_name=text(data, "ComputerName"),
            caption=text(data, "Caption"),
            version=text(data, "Version"),
            build_number=int(build)
            if isinstance(build, str) and build.isdigit()
            else integer(data, "BuildNumber"),
            boot_time_utc=text(data, "BootTimeUtc"),
            time_utc=text(data, "TimeUtc"),
            total_memory_bytes=integer(data, "TotalPhysicalMemoryBytes"),
            free_memory_bytes=optional_integer(data, "FreePhysicalMemoryBytes") or 0,
            logical_processors=integer(data, "LogicalProcessorCount"),
            time_zone_id=optional_text(data, "TimeZoneId"),
            culture=optional_text(data, "Culture"),
            system_directory=text(data, "SystemDirectory"),
            pending_reboot=tuple(str(item) for item in items(data.get("PendingReboot"), "PendingReboot")),
            excluded_ports=excluded_ranges(optional_text(data, "ExcludedPortRangeText") or ""),
            machine_environment={
                str(name): str(content)
                for name, content in mapping(
                    data.get("MachineEnvironment") or {}, "MachineEnvironment"
                ).items()
            },
        )

    def excluded_by(self, port: int) -> PortRange | None:
        """The reserved range that holds port, or None."""
        return next((item for item in self.excluded_ports if port in item), None)
