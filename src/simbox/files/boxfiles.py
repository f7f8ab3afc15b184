"""Files and folders of a box as Windows lets programs see and change them.

Names are case-blind, ReadOnly is honoured, open files and running programs are protected, junctions are
entries of their own. Failures are WindowsError with .NET's exception, as the wine engine gives them for the
same call.
"""

from __future__ import annotations

import contextlib
import hashlib
import ntpath
import os
import re
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simbox.engines.python import handles
from simbox.engines.python.answers import bad_request
from simbox.engines.python.errors import file_error, from_host, rename_error
from simbox.engines.python.hostpaths import attributes, read_only, set_read_only
from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box

_FULL_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\[^\\?.]")
_NOWHERE = (0x8007007B, 0x80070035)
"""HRESULTs of a name that cannot exist and of a server that no box knows."""
LONGEST_NAME = 255
"""UTF-16 units in one part of a path on NTFS."""


def o_time(nanoseconds: int) -> str:
    """A time in .NET's `o` format, UTC, 100 ns steps."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest // 100:07d}Z"


class BoxFiles:
    """The files of one box, by full Windows path."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.table = handles.of(box)

    # paths

    def full(self, path: str) -> str:
        """The absolute path. Raises WindowsError for a relative one, and for one that no Windows can have."""
        if not _FULL_PATH.match(path):
            raise bad_request(f"'{path}' is no full path such as C:\\folder\\name")
        if path.startswith("\\\\"):
            raise file_error(53, path)
        try:
            full = self.box.filesystem.normalise(path)
        except WindowsError:
            raise file_error(123, path) from None
        if any(
            len(part.encode("utf-16-le", "surrogatepass")) // 2 > LONGEST_NAME for part in full.split("\\")
        ):
            raise file_error(123, path)
        return full

    def host(self, path: str) -> Path:
        """The host path of a path, its last name not resolved when it is a junction."""
        return self.box.filesystem.host(self.full(path))

    def kind(self, path: str) -> str:
        """absent, file, directory, junction or symboliclink. What cannot be there is absent."""
        try:
            host = self.host(path)
        except WindowsError as error:
            if error.hresult in _NOWHERE:
                return "absent"
            raise
        try:
            mode = os.lstat(host).st_mode
        except OSError:
            return "absent"
        if stat.S_ISLNK(mode):
            return "junction" if self.box.filesystem.is_junction(self.full(path)) else "file"
        return "directory" if stat.S_ISDIR(mode) else "file"

    def target(self, path: str) -> str:
        """Windows path a junction leads to."""
        host = self.host(path)
        link = os.readlink(host)
        return self.box.filesystem.windows(Path(os.path.join(host.parent, link)))

    # reading

    def status(self, path: str) -> os.stat_result:
        """Size and times; of a junction its own. Raises WindowsError."""
        try:
            return os.lstat(self.host(path))
        except OSError as error:
            raise self._missing(path) if error.errno == 2 else from_host(error, path) from error

    def attributes(self, path: str) -> list[str]:
        """Attribute names of what is there."""
        return attributes(self.box, self.host(path), self.full(path))

    @contextlib.contextmanager
    def reading(self, path: str) -> Iterator[Any]:
        """Open for reading, letting others read and write, as our PowerShell does. Raises WindowsError."""
        host = self.host(path)
        if self.kind(path) in ("directory", "junction"):
            raise file_error(5, self.full(path))
        if not host.exists():
            raise self._missing(path)
        try:
            handle = self.table.open(host, handles.READ, handles.EVERYTHING)
        except WindowsError:
            raise file_error(32, self.full(path)) from None
        try:
            with host.open("rb") as file:
                yield file
        except OSError as error:
            raise from_host(error, path) from error
        finally:
            self.table.close(handle)

    def sha256(self, path: str) -> str:
        """Hash of a file, lower case hex. Raises WindowsError."""
        with self.reading(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def children(self, path: str) -> list[str]:
        """Names in a folder, sorted without case."""
        return sorted((child.name for child in self.host(path).iterdir()), key=str.casefold)

    # changing

    def require_folder(self, path: str) -> None:
        """Raise WindowsError unless the folder that path is in exists."""
        if not self.host(ntpath.dirname(self.full(path))).is_dir():
            raise file_error(3, self.full(path))

    def check_writable(self, path: str) -> None:
        """Raise WindowsError unless the file could be opened for writing (or created)."""
        self.require_folder(path)
        kind, host = self.kind(path), self.host(path)
        if kind in ("directory", "junction") or (kind == "file" and read_only(host)):
            raise file_error(5, self.full(path))
        if kind == "file":
            if self.running(path):
                raise file_error(32, self.full(path))
            self._check(host, frozenset({"write"}), handles.READ, path)

    def write(self, path: str, offset: int, data: bytes) -> int:
        """Write at an offset (0 truncates); returns the new size. Raises WindowsError."""
        self.check_writable(path)
        host = self.host(path)
        try:
            with host.open("wb" if offset == 0 else "r+b") as file:
                file.seek(offset)
                file.write(data)
                return file.tell()
        except OSError as error:
            raise from_host(error, self.full(path)) from error

    def check_deletable(self, path: str) -> None:
        """Raise WindowsError unless the file could be deleted or renamed over."""
        host = self.host(path)
        if read_only(host) or self.running(path):
            raise file_error(5, self.full(path))
        self._check(host, frozenset({"delete"}), handles.EVERYTHING, path)

    def delete_file(self, path: str) -> None:
        """Delete one file. Raises WindowsError."""
        self.check_deletable(path)
        try:
            self.host(path).unlink()
        except OSError as error:
            raise from_host(error, self.full(path)) from error
        self._forget(path)

    def delete_directory(self, path: str) -> None:
        """Delete one empty folder or one junction. Raises WindowsError."""
        host = self.host(path)
        try:
            if host.is_symlink():
                host.unlink()
            else:
                host.rmdir()
        except OSError as error:
            raise from_host(error, self.full(path)) from error
        self._forget(path)

    def replace(self, source: str, destination: str) -> bool:
        """Put source in the place of destination in one step; the replaced file's ACL stays. True when one
        was there.

        As File.Replace, or File.Move when destination is new. Raises WindowsError.
        """
        target = self.host(destination)
        present = self.kind(destination)
        if present in ("directory", "junction"):
            raise rename_error(5)
        if present == "file":
            if read_only(target):
                raise rename_error(5)
            self._check(target, frozenset({"delete"}), handles.EVERYTHING, None)
        self._check(self.host(source), frozenset({"delete"}), handles.EVERYTHING, None)
        try:
            os.replace(self.host(source), target)
            # The name is the one that was asked for, its case included.
            target.rename(target.with_name(ntpath.basename(self.full(destination))))
        except OSError as error:
            raise from_host(error, self.full(destination)) from error
        return present == "file"

    def move(self, path: str, destination: str) -> None:
        """Rename a file, folder or junction to a new path that is free. Raises WindowsError."""
        here, there = self.host(path), self.host(destination)
        if not there.parent.is_dir():
            raise rename_error(3)
        same = self.full(path).casefold() == self.full(destination).casefold()
        folder = self.kind(path) in ("directory", "junction")
        if self.kind(destination) != "absent" and not same:
            raise file_error(183, self.full(destination)) if folder else rename_error(183)
        if not folder:
            self._check(here, frozenset({"delete"}), handles.EVERYTHING, None)
        elif not here.is_symlink() and (self.table.inside(here) or self._running_inside(path)):
            # .NET makes an IOException of it, for folders alone.
            message = f"Access to the path '{self.full(path)}' is denied."
            raise WindowsError("System.IO.IOException", message, 0x80070005)
        elif self.full(path)[0] != self.full(destination)[0]:
            message = (
                "Source and destination path must have identical roots. Move will not work across volumes."
            )
            raise WindowsError("System.IO.IOException", message, 0x80131620)
        try:
            shutil.move(here, there.parent / ntpath.basename(self.full(destination)))
        except OSError as error:
            raise from_host(error, self.full(path)) from error
        self.box.windows.acl.moved(self.full(path), self.full(destination))

    def copy(self, path: str, destination: str) -> None:
        """Copy a file over what is there; ReadOnly is copied too. Raises WindowsError."""
        if self.kind(path) == "absent":
            raise self._missing(path)
        self.check_writable(destination)
        with self.reading(path) as source:
            try:
                with self.host(destination).open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
                shutil.copystat(self.host(path), self.host(destination))
            except OSError as error:
                raise from_host(error, self.full(destination)) from error

    def set_read_only(self, path: str, wanted: bool) -> bool:
        """Set or clear ReadOnly of a file; True when that changed it. Raises WindowsError."""
        if self.kind(path) == "absent":
            raise self._missing(path)
        host = self.host(path)
        if read_only(host) == wanted:
            return False
        set_read_only(host, wanted)
        return True

    def running(self, path: str) -> bool:
        """True when a process of the box runs this very file."""
        full = self.full(path).casefold()
        resolved = self.box.filesystem.resolve(self.full(path)).casefold()
        images = {(row["ExecutablePath"] or "").casefold() for row in self.box.windows.process.list()}
        return full in images or resolved in images

    def _running_inside(self, folder: str) -> bool:
        prefix = self.full(folder).casefold() + "\\"
        rows = self.box.windows.process.list()
        return any((row["ExecutablePath"] or "").casefold().startswith(prefix) for row in rows)

    def _check(
        self,
        host: Path,
        access: frozenset[handles.Access],
        share: frozenset[handles.Access],
        path: str | None,
    ) -> None:
        try:
            self.table.check(host, access, share)
        except WindowsError:
            raise (rename_error(32) if path is None else file_error(32, self.full(path))) from None

    def _missing(self, path: str) -> WindowsError:
        full = self.full(path)
        return file_error(2 if self.host(ntpath.dirname(full)).is_dir() else 3, full)

    def _forget(self, path: str) -> None:
        self.box.windows.acl.forget(self.full(path))
