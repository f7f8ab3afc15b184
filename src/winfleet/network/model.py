"""Listening sockets of a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, integer, mapping, optional_text, text
from winfleet.path import normal_path


@dataclass(frozen=True)
class Listener(Model):
    """One listening TCP socket. Attributes: address, port, process_id, executable_path, creation_time_utc of
    its owner."""

    address: str
    port: int
    process_id: int
    executable_path: str | None
    creation_time_utc: str | None

    @classmethod
    def parse(cls, value: Any) -> Listener:
        """From one item of Get-BoxListener. Raises ModelError."""
        data = mapping(value, "Get-BoxListener")
        return cls(
            text(data, "LocalAddress"),
            integer(data, "LocalPort"),
            integer(data, "OwningProcess"),
            optional_text(data, "ExecutablePath"),
            optional_text(data, "CreationTimeUtc"),
        )

    def owned_by(self, executable: str) -> bool:
        """True when the program at that full path listens."""
        return self.executable_path is not None and normal_path(self.executable_path) == normal_path(
            executable
        )
