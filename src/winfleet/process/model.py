"""Processes of a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, integer, mapping, optional_integer, optional_text, text
from winfleet.path import normal_path


@dataclass(frozen=True)
class Process(Model):
    """One process. A process id alone names nothing: Windows reuses it, so creation_time_utc belongs to the
    identity.

    Attributes: process_id, creation_time_utc (text exactly as the box gave it, Stop-BoxProcess wants it
    back), parent_process_id, name ("ninfer-serve.exe"), executable_path (None: not readable), priority_class,
    session_id, working_set_bytes.
    """

    process_id: int
    creation_time_utc: str | None
    parent_process_id: int | None
    name: str
    executable_path: str | None
    priority_class: str | None
    session_id: int | None
    working_set_bytes: int | None

    @classmethod
    def parse(cls, value: Any) -> Process:
        """From one item of Get-BoxProcess. Raises ModelError."""
        data = mapping(value, "Get-BoxProcess")
        return cls(
            integer(data, "ProcessId"),
            optional_text(data, "CreationTimeUtc"),
            optional_integer(data, "ParentProcessId"),
            text(data, "Name"),
            optional_text(data, "ExecutablePath"),
            optional_text(data, "PriorityClass"),
            optional_integer(data, "SessionId"),
            optional_integer(data, "WorkingSetBytes"),
        )

    def runs(self, executable: str) -> bool:
        """True when this process is the program at that full path."""
        return self.executable_path is not None and normal_path(self.executable_path) == normal_path(
            executable
        )

    def same_as(self, other: Process) -> bool:
        """True when both are one process, not a later one with the same id."""
        return (self.process_id, self.creation_time_utc) == (other.process_id, other.creation_time_utc)
