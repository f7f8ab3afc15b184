"""Errors as Windows and .NET report them; every service of a simulated box raises only this."""

from __future__ import annotations

from typing import Any


class WindowsError(Exception):
    """A failed Windows call.

    Args:
        type: full .NET name of the exception, such as System.IO.FileNotFoundException.
        message: its English text.
        hresult: signed or unsigned 32 bit code, or None.
        category: PowerShell's ErrorCategory name.
        id: FullyQualifiedErrorId without the command's name.
    """

    def __init__(
        self,
        type: str,
        message: str,
        hresult: int | None = None,
        category: str = "NotSpecified",
        id: str = "",
    ) -> None:
        super().__init__(message)
        self.type = type
        self.message = message
        self.hresult = None if hresult is None else hresult & 0xFFFFFFFF
        self.category = category
        self.id = id or type.rpartition(".")[2]

    def wire(self) -> dict[str, Any]:
        """The error object of docs/box-commands.md section 1, without the command."""
        return {
            "type": self.type,
            "id": self.id,
            "category": self.category,
            "message": self.message,
            "hresult": None if self.hresult is None else f"0x{self.hresult:08X}",
        }


def com_error(hresult: int, message: str) -> WindowsError:
    """What PowerShell shows when a COM call fails with that HRESULT."""
    return WindowsError(
        "System.Runtime.InteropServices.COMException", message, hresult, "NotSpecified", "COMException"
    )


def not_found(path: str) -> WindowsError:
    """The system cannot find the file specified."""
    return WindowsError(
        "System.IO.FileNotFoundException",
        f"Could not find file '{path}'.",
        0x80070002,
        "ObjectNotFound",
        "FileNotFoundException",
    )


def access_denied(what: str) -> WindowsError:
    """Access is denied (0x80070005)."""
    return WindowsError(
        "System.UnauthorizedAccessException",
        f"Access is denied: {what}",
        0x80070005,
        "PermissionDenied",
        "UnauthorizedAccessException",
    )


def signed(code: int) -> int:
    """A 32 bit code as COM and .NET give it: 0xC000013A -> -1073741510."""
    code &= 0xFFFFFFFF
    return code - 0x1_0000_0000 if code & 0x8000_0000 else code
