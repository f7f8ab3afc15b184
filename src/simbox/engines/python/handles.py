"""Open files of a box: who has them open, and what others may do meanwhile (CreateFile's share modes)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box

Access = Literal["read", "write", "delete"]
EVERYTHING: frozenset[Access] = frozenset({"read", "write", "delete"})
READ_WRITE: frozenset[Access] = frozenset({"read", "write"})
READ: frozenset[Access] = frozenset({"read"})
NOTHING: frozenset[Access] = frozenset()


@dataclass(eq=False)
class Handle:
    """One open file: what its owner does with it (access) and lets others do (share)."""

    key: str
    access: frozenset[Access]
    share: frozenset[Access]


class Handles:
    """The open files of one box."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, list[Handle]] = {}

    def open(self, host: Path, access: Iterable[Access], share: Iterable[Access]) -> Handle:
        """Enter a handle. Raises WindowsError 0x80070020 when another one forbids it or is forbidden by
        it."""
        handle = Handle(_key(host), frozenset(access), frozenset(share))
        with self._lock:
            for other in self._open.get(handle.key, []):
                if not (handle.access <= other.share and other.access <= handle.share):
                    raise sharing_violation(host.name)
            self._open.setdefault(handle.key, []).append(handle)
        return handle

    def close(self, handle: Handle) -> None:
        """Take a handle out; harmless when it is out already."""
        with self._lock:
            held = self._open.get(handle.key, [])
            if handle in held:
                held.remove(handle)
            if not held:
                self._open.pop(handle.key, None)

    def check(self, host: Path, access: Iterable[Access], share: Iterable[Access] = EVERYTHING) -> None:
        """Raise WindowsError 0x80070020 unless the file could be opened so just now."""
        self.close(self.open(host, access, share))

    def inside(self, folder: Path) -> bool:
        """True when a file anywhere below the folder is open: such a folder cannot be renamed."""
        prefix = _key(folder) + os.sep
        with self._lock:
            return any(key.startswith(prefix) for key in self._open)


def _key(host: Path) -> str:
    return os.path.realpath(host)


def sharing_violation(path: str) -> WindowsError:
    """ERROR_SHARING_VIOLATION as .NET reports it."""
    return WindowsError(
        "System.IO.IOException",
        f"The process cannot access the file '{path}' because it is being used by another process.",
        0x80070020,
        "NotSpecified",
        "IOException",
    )


_HANDLES: WeakKeyDictionary[Box, Handles] = WeakKeyDictionary()
_GUARD = threading.Lock()


def of(box: Box) -> Handles:
    """The open files of that box."""
    with _GUARD:
        return _HANDLES.setdefault(box, Handles())
