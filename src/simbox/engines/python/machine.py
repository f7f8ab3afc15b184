"""One box as the batch interpreter sees it: files below the box's drives, programs from its table."""

from __future__ import annotations

import ntpath
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from simbox.cmd.machine import Entry, Launch, MachineError, OpenFile
from simbox.engines.python import handles
from simbox.engines.python.hostpaths import attributes, read_only, win32_code
from simbox.engines.python.pipes import HostFile
from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box
    from simbox.engines.python.shell import ShellProcess


def codec(code_page: int) -> str:
    """Python's codec for a Windows code page."""
    return "utf-8" if code_page == 65001 else f"cp{code_page}"


class BoxMachine:
    """Implements simbox.cmd.machine.Machine for one cmd.exe process of a box."""

    def __init__(self, box: Box, shell: ShellProcess, code_page: int | None = None) -> None:
        self._box = box
        self._shell = shell
        self._table = handles.of(box)
        self.encoding = codec(int(code_page or box.store.get("system", "oem_code_page", default=437)))

    @property
    def version(self) -> str:
        version = str(self._box.store.get("system", "version", default="10.0.22631"))
        return version if version.count(".") == 3 else version + ".1"

    def _host(self, path: str) -> Path:
        try:
            return self._box.filesystem.host(path)
        except WindowsError as error:
            raise MachineError(win32_code(error)) from error

    def entry(self, path: str) -> Entry | None:
        try:
            host = self._host(path)
            status = host.stat() if host.exists() else os.lstat(host)
        except (OSError, MachineError, ValueError):
            return None
        return Entry(
            host.name if len(path.rstrip("\\")) > 2 else "",
            host.is_dir(),
            0 if host.is_dir() else status.st_size,
            status.st_mtime,
            frozenset(attributes(self._box, host, path)),
        )

    def names(self, directory: str) -> list[Entry]:
        host = self._host(directory)
        if not host.is_dir():
            raise MachineError(3)
        found = [self.entry(ntpath.join(directory, child.name)) for child in host.iterdir()]
        return sorted(
            (entry for entry in found if entry is not None), key=lambda entry: entry.name.casefold()
        )

    def read(self, path: str) -> bytes:
        host = self._existing(path)
        if host.is_dir():
            raise MachineError(5)
        try:
            self._table.check(host, handles.READ)
            return host.read_bytes()
        except (OSError, WindowsError) as error:
            raise MachineError(win32_code(error)) from error

    def open(self, path: str, mode: str) -> OpenFile:
        host = self._host(path)
        if not host.parent.is_dir():
            raise MachineError(3)
        if mode == "read" and not host.exists():
            raise MachineError(2)
        if host.is_dir() or (mode != "read" and host.exists() and read_only(host)):
            raise MachineError(5)
        if mode != "read" and self._running(path):
            raise MachineError(32)
        try:
            return HostFile(self._table, host, mode)
        except (OSError, WindowsError) as error:
            raise MachineError(win32_code(error)) from error

    def delete(self, path: str) -> None:
        host = self._existing(path)
        if self._running(path):
            raise MachineError(5)
        try:
            self._table.check(host, frozenset({"delete"}))
            host.unlink()
        except (OSError, WindowsError) as error:
            raise MachineError(win32_code(error)) from error

    def move(self, path: str, destination: str, replace: bool) -> None:
        host, target = self._existing(path), self._host(destination)
        if not target.parent.is_dir():
            raise MachineError(3)
        same = host == target or (target.exists() and os.path.samefile(host, target))
        if os.path.lexists(target) and not same:
            if not replace:
                raise MachineError(183)
            if target.is_dir() or read_only(target) or self._running(destination):
                raise MachineError(5)
        try:
            self._table.check(host, frozenset({"delete"}))
            if host.is_dir() and self._table.inside(host):
                raise MachineError(5)
            if target.is_file() and not same:
                self._table.check(target, frozenset({"delete"}))
            final = target.parent / ntpath.basename(destination) if same else target
            os.replace(host, final)
        except (OSError, WindowsError) as error:
            raise MachineError(win32_code(error)) from error

    def make_directory(self, path: str) -> None:
        host = self._host(path)
        if os.path.lexists(host):
            raise MachineError(183)
        if not self._box.filesystem.drive(path[0]).is_dir():
            raise MachineError(3)
        try:
            host.mkdir(parents=True)
        except OSError as error:
            raise MachineError(win32_code(error)) from error

    def remove_directory(self, path: str, recurse: bool) -> None:
        host = self._existing(path)
        try:
            if host.is_symlink():
                host.unlink()
            elif recurse:
                if self._table.inside(host):
                    raise MachineError(32)
                shutil.rmtree(host)
            else:
                host.rmdir()
        except OSError as error:
            raise MachineError(win32_code(error)) from error

    def run(self, launch: Launch) -> int:
        return self._shell.run_child(launch)

    def start(self, launch: Launch) -> None:
        self._shell.start_child(launch)

    def sleep(self, seconds: float) -> None:
        self._shell.sleep(seconds)

    def check(self) -> None:
        self._shell.check()

    def _existing(self, path: str) -> Path:
        host = self._host(path)
        if not os.path.lexists(host):
            raise MachineError(2 if host.parent.is_dir() else 3)
        return host

    def _running(self, path: str) -> bool:
        """True when a process runs this file: it can be renamed, but neither written nor deleted."""
        full = self._box.filesystem.normalise(path).casefold()
        return any(
            (row["ExecutablePath"] or "").casefold() == full for row in self._box.windows.process.list()
        )
