"""As whom and with which rights a process runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, integer, items, mapping, optional_integer, optional_text

HIGH_INTEGRITY = 0x3000


@dataclass(frozen=True)
class ProcessToken(Model):
    """One item of Get-BoxProcessToken.

    Attributes: process_id, user_sid, elevated, integrity (the last number of its label: 0x2000 medium, 0x3000
    high, 0x4000 system), fault (why it could not be read).
    """

    process_id: int
    user_sid: str | None
    elevated: bool
    integrity: int | None
    fault: str | None

    @classmethod
    def parse_all(cls, value: Any) -> list[ProcessToken]:
        """From the answer. Raises ModelError."""
        tokens = []
        for item in items(value, "Get-BoxProcessToken"):
            data = mapping(item, "Get-BoxProcessToken")
            sid = optional_text(data, "UserSid")
            tokens.append(
                cls(
                    integer(data, "ProcessId"),
                    None if sid is None else sid.upper(),
                    bool(data.get("Elevated")),
                    optional_integer(data, "IntegrityLevel"),
                    optional_text(data, "Error"),
                )
            )
        return tokens
