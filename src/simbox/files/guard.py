"""What no command removes, moves away or gives another access list: the folders of Windows and of its programs."""

from __future__ import annotations

import ntpath
import re

from simbox.engines.python.answers import refused
from simbox.errors import WindowsError
from simbox.files.boxfiles import BoxFiles

_WHOLE = ("c:\\windows", "c:\\program files", "c:\\program files (x86)")
_ALONE = ("c:\\programdata", "c:\\users")
_SHORT = {"progra~1": "program files", "progra~2": "program files (x86)", "progra~3": "programdata"}


def require_changeable(files: BoxFiles, path: str, done: str, followed: bool = False) -> None:
    """Raise Refused for a path that leads to a folder of Windows, however it is written.

    Args:
        done: what is not done with it ("removed").
        followed: what a link itself leads to counts, too.
    """
    refusal = refused(f"{path} belongs to Windows; it is not {done}")
    if re.match(r"[\\/]{2}", path):
        message = f"{path} is the path of a device or of the network; it is not {done}"
        raise refused(f"{message}. Write it as C:\\folder\\name.")
    if not re.match(r"[A-Za-z]:[\\/]", path):
        files.full(path)  # says what is wrong with it
    plain = _plain(path)
    if _protected(plain):
        raise refusal
    above, name = ntpath.split(plain)
    filesystem = files.box.filesystem
    real = plain
    try:
        if followed and filesystem.host(plain).exists():
            real = filesystem.resolve(plain)
        elif filesystem.host(above).is_dir():
            real = ntpath.join(filesystem.resolve(above), name)
    except (OSError, WindowsError):
        return  # no such path can be
    if _protected(real):
        raise refusal


def _plain(path: str) -> str:
    """A full path as Windows reads it in the end: no dots or streams, nothing that it cuts off the end of a name, no
    short names."""
    names: list[str] = []
    for part in re.split(r"[\\/]", path[2:]):
        name = part.split(":")[0].rstrip(". ")
        if part == "..":
            names = names[:-1]
        elif name:
            names.append(name)
    if names:
        names[0] = _SHORT.get(names[0].casefold(), names[0])
    return path[:2] + "\\" + "\\".join(names)


def _protected(full: str) -> bool:
    path = full.casefold().rstrip("\\") + "\\"
    if len(path) <= 3 or ntpath.dirname(path.rstrip("\\")) == "c:\\users":
        return True
    return any(f"{folder}\\".startswith(path) for folder in _WHOLE + _ALONE) or any(
        path.startswith(f"{folder}\\") for folder in _WHOLE
    )
