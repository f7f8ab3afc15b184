"""Windows paths of a simulated box on the Unix file system below its folder.

Drive C: is BOX/drive_c, any other drive X: is BOX/drive_x. Names are found whatever their case, as NTFS does.
Junctions are Unix symlinks to the host path of their target.
"""

from __future__ import annotations

import ntpath
import os
from pathlib import Path

from simbox.errors import WindowsError

_FORBIDDEN = frozenset('<>"|?*') | {chr(code) for code in range(32)}


def _invalid(path: str) -> WindowsError:
    return WindowsError(
        "System.IO.IOException",
        f"The filename, directory name, or volume label syntax is incorrect: '{path}'",
        0x8007007B,
        "InvalidArgument",
        "IOException",
    )


class Filesystem:
    """Translation between Windows and host paths.

    Args:
        directory: BOX, the folder with drive_c in it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._real = Path(os.path.realpath(self.directory))

    def normalise(self, path: str, cwd: str = "C:\\") -> str:
        r"""An absolute Windows path with backslashes, drive letter in upper case, no dots and no trailing
        backslash except for a root. `\\?\` is dropped. Raises WindowsError for a path no drive can hold."""
        text = path.replace("/", "\\")
        for prefix in ("\\\\?\\", "\\??\\"):
            text = text.removeprefix(prefix)
        text = ntpath.normpath(ntpath.join(cwd, text))
        drive, tail = ntpath.splitdrive(text)
        if len(drive) != 2 or not drive[0].isalpha() or not drive.isascii():
            raise _invalid(path)
        if _FORBIDDEN & set(tail) or ":" in tail:
            raise _invalid(path)
        return drive.upper() + (tail if tail.startswith("\\") else "\\" + tail)

    def drive(self, letter: str) -> Path:
        """Host folder of a drive letter. It need not exist."""
        return self.directory / f"drive_{letter.lower()}"

    def host(self, path: str, cwd: str = "C:\\") -> Path:
        """Host path of a Windows path, existing or not; junctions on the way are kept, not resolved.

        Args:
            path: absolute, or relative to cwd.
        """
        full = self.normalise(path, cwd)
        here = self.drive(full[0])
        for name in full[3:].split("\\"):
            if name:
                here = self._child(here, name.rstrip(" .") or name)
        return here

    def windows(self, host: Path) -> str:
        """Windows path of a host path below the box's drives."""
        absolute = Path(os.path.abspath(host))
        base = self.directory if absolute.is_relative_to(self.directory) else self._real
        relative = absolute.relative_to(base)
        first, *rest = relative.parts
        if not first.startswith("drive_") or len(first) != 7:
            raise ValueError(f"{host} is on no drive of the box")
        return first[-1].upper() + ":\\" + "\\".join(rest)

    def resolve(self, path: str) -> str:
        """The Windows path with every junction followed and the case of the names that exist."""
        host = self.drive(self.normalise(path)[0])
        for name in self.normalise(path)[3:].split("\\"):
            host = self._child(host, name) if name else host
            if self._is_junction(host):
                host = Path(os.path.realpath(host))
        return self.windows(host)

    def nearest_existing(self, path: str) -> str:
        """The path itself or its nearest ancestor that exists, junctions resolved. A root always counts."""
        full = self.normalise(path)
        while True:
            if self.host(full).exists():
                return self.resolve(full)
            parent = ntpath.dirname(full)
            if parent == full:
                return full
            full = parent

    def exists(self, path: str) -> bool:
        """True for a file, a folder or a junction (even one whose target is gone)."""
        return os.path.lexists(self.host(path))

    def is_junction(self, path: str) -> bool:
        """True when the last name of the path is a junction."""
        return self._is_junction(self.host(path))

    def make_directory(self, path: str) -> Path:
        """Create the folder and those above it; returns its host path."""
        host = self.host(path)
        host.mkdir(parents=True, exist_ok=True)
        return host

    def write(self, path: str, content: bytes) -> Path:
        """Write a whole file, making the folders above it; returns its host path."""
        host = self.host(path)
        host.parent.mkdir(parents=True, exist_ok=True)
        host.write_bytes(content)
        return host

    def make_junction(self, path: str, target: str) -> None:
        """Create a junction; its target need not exist."""
        host = self.host(path)
        host.parent.mkdir(parents=True, exist_ok=True)
        host.symlink_to(self.host(target), target_is_directory=True)

    def _is_junction(self, host: Path) -> bool:
        """A symlink to somewhere else in the box; a wine box links the files of C:\\windows to its
        template.
        """
        return host.is_symlink() and Path(os.path.realpath(host)).is_relative_to(self._real)

    @staticmethod
    def _child(parent: Path, name: str) -> Path:
        exact = parent / name
        if os.path.lexists(exact):
            return exact
        folded = name.casefold()
        try:
            with os.scandir(parent) as entries:
                for entry in entries:
                    if entry.name.casefold() == folded:
                        return parent / entry.name
        except OSError:
            pass
        return exact
