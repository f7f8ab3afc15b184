"""The operating system of a simulated box: versions, environment, session."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from simbox.process.state import utc_text

if TYPE_CHECKING:
    from simbox.box import Box


class System:
    """What Get-BoxSystem and Get-BoxSession read."""

    REMOTE = frozenset({"facts", "session", "environment", "set_environment"})

    def __init__(self, box: Box) -> None:
        self._box = box
        if box.store.get("system", "boot_time_utc") is None:
            self.boot()

    def boot(self) -> None:
        """Record the time of this boot."""
        self._box.store.set("system", "boot_time_utc", value=utc_text(datetime.now(UTC)))

    def environment(self) -> dict[str, str]:
        """Machine environment variables, those that Windows itself sets included."""
        machine: dict[str, str] = self._box.store.get("environment", default={})
        return {"SystemDrive": "C:", "SystemRoot": "C:\\Windows", **machine}

    def set_environment(self, name: str, value: str | None) -> None:
        """Set (or with None remove) a machine environment variable; its name in any case."""
        with self._box.store.change() as state:
            kept = {key: text for key, text in state["environment"].items() if key.upper() != name.upper()}
            state["environment"] = kept if value is None else kept | {name: value}

    def facts(self) -> dict[str, Any]:
        """As Get-BoxSystem gives them."""
        system = self._box.store.get("system")
        return {
            "ComputerName": system["computer_name"],
            "Caption": system["caption"],
            "Version": system["version"],
            "BuildNumber": system["version"].rpartition(".")[2],
            "BootTimeUtc": system["boot_time_utc"],
            "TimeUtc": utc_text(datetime.now(UTC)),
            "TotalPhysicalMemoryBytes": system["total_memory_bytes"],
            "FreePhysicalMemoryBytes": system["free_memory_bytes"],
            "LogicalProcessorCount": system["logical_processors"],
            "TimeZoneId": system["time_zone"],
            "Culture": system["culture"],
            "SystemDirectory": "C:\\Windows\\system32",
            "PendingReboot": system["pending_reboot"],
            "ExcludedPortRangeText": self.excluded_port_ranges_text(),
            "MachineEnvironment": self._box.store.get("environment", default={}),
        }

    def session(self) -> dict[str, Any]:
        """As Get-BoxSession gives it, without what only the process itself knows (PSVersion, ProcessId)."""
        system = self._box.store.get("system")
        return {
            "ComputerName": system["computer_name"],
            "LanguageMode": system["language_mode"],
            "OemCodePage": system["oem_code_page"],
            "AnsiCodePage": system["ansi_code_page"],
            "Elevated": system["elevated"],
            "UserName": f"{system['computer_name']}\\{system['user']}",
            "UserSid": self._box.windows.account.sid_of(system["user"]),
            "BootTimeUtc": system["boot_time_utc"],
            "Is64BitProcess": True,
        }

    def excluded_port_ranges_text(self) -> str:
        """What `netsh int ipv4 show excludedportrange protocol=tcp` prints, in the language of the box."""
        chinese = str(self._box.store.get("system", "culture")).startswith("zh")
        title = "协议 tcp 端口排除范围" if chinese else "Protocol tcp Port Exclusion Ranges"
        first, last = ("开始端口", "结束端口") if chinese else ("Start Port", "End Port")
        rows = [
            f"{low:>10}  {high:>10}" for low, high in self._box.store.get("system", "excluded_port_ranges")
        ]
        note = "* - 管理的端口排除。" if chinese else "* - Administered port exclusions."
        lines = ["", title, "", f"{first}    {last}", "----------    --------", *rows, "", note, ""]
        return "\r\n".join(lines)

    def is_excluded_port(self, port: int) -> bool:
        """True when a bind to that port is refused (WSAEACCES 10013)."""
        return any(low <= port <= high for low, high in self._box.store.get("system", "excluded_port_ranges"))
