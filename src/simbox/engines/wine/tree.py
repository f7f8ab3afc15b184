"""All Unix processes of one start in a wine box.

Wine's processes are no children of the one that created them, but each inherits the Unix environment of its
creator: a variable with a number of its own marks every descendant of a start, whatever it does.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

MARK = "SIMBOX_START"
_CONSOLE_S = 5.0
# Wine starts these on demand as if they were children of the first program; they belong to the box.
_OF_THE_BOX = (
    "wineserver",
    "services.exe",
    "winedevice.exe",
    "plugplay.exe",
    "svchost.exe",
    "explorer.exe",
    "rpcss.exe",
)


def members(mark: str) -> list[int]:
    """Process ids of this machine whose start carried the mark, without Wine's own services."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in _processes() if wanted in _variables(pid) and not _belongs_to_box(pid)]


def kill(mark: str) -> None:
    """SIGKILL every member until none is left (they may be starting others meanwhile).

    conhost.exe, the other side of their console, ends by itself when they are gone. Dead before they are, it takes
    the wineserver with it: Wine 8 wakes its main thread when the console ends, sees in the middle of that that the
    process is dead, and frees what it still walks over (seen in four cores: console_destroy, wake_up). So it is
    killed only if it stays.
    """
    began = time.monotonic()
    while (found := [pid for pid in members(mark) if not _is_zombie(pid)]) and time.monotonic() < began + 10:
        consoles = [pid for pid in found if "conhost.exe" in _program(pid)]
        for pid in found:
            if pid in consoles and (len(found) > len(consoles) or time.monotonic() < began + _CONSOLE_S):
                continue
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)


def _processes() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _variables(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _belongs_to_box(pid: int) -> bool:
    program = _program(pid)
    return any(name in program for name in _OF_THE_BOX)


def _program(pid: int) -> str:
    """File name of its program in lower case, empty when it has ended."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace").lower()
    except OSError:
        return ""
    return command.replace("\\", "/").rpartition("/")[2]


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return True
