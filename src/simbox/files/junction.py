"""Junctions of a simulated box: made, read, renamed and removed without touching what they lead to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from simbox.errors import WindowsError, not_found

if TYPE_CHECKING:
    from simbox.box import Box


class Junctions:
    """Unix symlinks inside the box, seen as junctions."""

    REMOTE = frozenset({"create", "target", "move", "remove"})

    def __init__(self, box: Box) -> None:
        self._box = box

    def create(self, path: str, target: str) -> None:
        """Make a junction. Raises WindowsError when the name is taken."""
        if self._box.filesystem.exists(path):
            raise WindowsError(
                "System.IO.IOException",
                f"An item with the specified name {path} already exists.",
                0x800700B7,
                "ResourceExists",
                "DirectoryExist",
            )
        self._box.filesystem.make_junction(path, target)

    def target(self, path: str) -> str | None:
        """Where the junction of that name leads (a Windows path), or None when there is no such junction."""
        try:
            if not self._box.filesystem.is_junction(path):
                return None
        except WindowsError:  # no path of a drive: a share, a device
            return None
        host = self._box.filesystem.host(path)
        return self._box.filesystem.windows(Path(os.path.normpath(host.parent / os.readlink(host))))

    def move(self, path: str, destination: str) -> None:
        """Rename the junction itself. Raises WindowsError when it is none or the new name is taken."""
        source = self._junction(path)
        if self._box.filesystem.exists(destination):
            raise WindowsError(
                "System.IO.IOException",
                "Cannot create a file when that file already exists.",
                0x800700B7,
                "WriteError",
                "IOException",
            )
        source.rename(self._box.filesystem.host(destination))

    def remove(self, path: str) -> None:
        """Delete the junction itself. Raises WindowsError when it is none."""
        self._junction(path).unlink()

    def _junction(self, path: str) -> Path:
        if not self._box.filesystem.is_junction(path):
            raise not_found(path)
        return self._box.filesystem.host(path)
