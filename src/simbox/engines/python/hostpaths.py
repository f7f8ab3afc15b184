"""From what the host's operating system refuses to what Windows would have said."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box

_CODES = {
    errno.ENOENT: 2,
    errno.ENOTDIR: 3,
    errno.EACCES: 5,
    errno.EPERM: 5,
    errno.EISDIR: 5,
    errno.EEXIST: 183,
    errno.ENOTEMPTY: 145,
    errno.ENAMETOOLONG: 206,
    errno.ENOSPC: 112,
}


def win32_code(error: OSError | WindowsError) -> int:
    """The Win32 error code of a failure; 1 (ERROR_INVALID_FUNCTION) when there is no better one."""
    if isinstance(error, WindowsError):
        hresult = error.hresult or 0
        return hresult & 0xFFFF if hresult >> 16 == 0x8007 else 1
    return _CODES.get(error.errno or 0, 1)


def attributes(box: Box, host: Path, windows_path: str) -> list[str]:
    """File attributes as .NET names them. ReadOnly is the host's missing write permission, as Wine has it;
    hidden and system live in the store."""
    status = os.lstat(host)
    names = []
    directory = host.is_dir()
    if stat.S_ISLNK(status.st_mode):
        names = (
            ["Directory", "ReparsePoint"] if directory or not host.exists() else ["Archive", "ReparsePoint"]
        )
    elif directory:
        names = ["Directory"]
    else:
        names = ["Archive"]
        if not status.st_mode & 0o222:
            names.insert(0, "ReadOnly")
    extra = box.store.get("attributes", windows_path.casefold(), default=[])
    order = ["ReadOnly", "Hidden", "System", "Directory", "Archive", "ReparsePoint"]
    return sorted({*names, *extra}, key=order.index)


def read_only(host: Path) -> bool:
    """True for a file whose ReadOnly attribute is set."""
    status = os.lstat(host)
    return stat.S_ISREG(status.st_mode) and not status.st_mode & 0o222


def set_read_only(host: Path, wanted: bool) -> None:
    """Set or clear the ReadOnly attribute of a file."""
    mode = stat.S_IMODE(host.stat().st_mode)
    host.chmod(mode & ~0o222 if wanted else mode | 0o200)
