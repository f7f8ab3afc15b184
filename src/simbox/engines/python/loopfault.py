"""Errors as the loop puts them into an answer."""

from __future__ import annotations

from typing import Any

from simbox.errors import WindowsError

OWN_TYPES = frozenset(
    {
        "ReadOnlyRefused",
        "UnknownCommand",
        "AnswerForgotten",
        "NotRun",
        "HashMismatch",
        "Refused",
        "BadRequest",
    }
)


def fault(type_name: str, message: str) -> WindowsError:
    """An error of one of our own types."""
    return WindowsError(type_name, message, None, "InvalidOperation", type_name)


def error_object(error: WindowsError, command: str) -> dict[str, Any]:
    """The error of an answer; errors of our own have no HRESULT."""
    shown = error.hresult is not None and error.type not in OWN_TYPES
    return {
        "type": error.type,
        "id": error.id,
        "category": error.category,
        "message": error.message,
        "hresult": f"0x{error.hresult:08X}" if shown else None,
        "command": command,
    }
