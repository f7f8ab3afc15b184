"""The type of a built-in command."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simbox.cmd.machine import Streams

if TYPE_CHECKING:
    from simbox.cmd.interpreter import Interpreter

Builtin = Callable[["Interpreter", str, Streams], int | None]


def switches(text: str) -> tuple[set[str], list[str]]:
    """Cut a command's arguments into switches (lower case, without the slash) and names (without quotes)."""
    found: set[str] = set()
    names: list[str] = []
    current, quoted = "", False
    pieces: list[str] = []
    for character in text:
        if character == '"':
            quoted = not quoted
        elif not quoted and (character in " \t,;=" or (character == "/" and not _is_path(current))):
            pieces.append(current)
            current = "/" if character == "/" else ""
            continue
        current += character
    pieces.append(current)
    for piece in pieces:
        if piece.startswith("/") and len(piece) > 1:
            found.add(piece[1:].lower())
        elif piece:
            names.append(piece.replace('"', ""))
    return found, names


def _is_path(text: str) -> bool:
    """Whether a slash after this text belongs to a path (C:/x) rather than begins a switch."""
    return len(text) > 1 and not text.startswith("/") and ":" in text
