"""Whose session this is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, mapping, optional_text


@dataclass(frozen=True)
class SessionState(Model):
    """Answer of Get-BoxSession, as far as rights go. Attributes: user_name, user_sid, elevated."""

    user_name: str
    user_sid: str | None
    elevated: bool

    @classmethod
    def parse(cls, value: Any) -> SessionState:
        """From the answer. Raises ModelError."""
        data = mapping(value, "Get-BoxSession")
        return cls(
            optional_text(data, "UserName") or "the session's account",
            optional_text(data, "UserSid"),
            bool(data.get("Elevated")),
        )
