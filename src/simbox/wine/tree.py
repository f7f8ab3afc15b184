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
    """SIGKILL every member until none is left (they may be starting others meanwhile)."""
    deadline = time.monotonic() + 10
    while (found := [pid for pid in members(mark) if not _is_zombie(pid)]) and time.monotonic() < deadline:
        for pid in found:
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
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace").lower()
    except OSError:
        return False
    return any(name in command.replace("\\", "/").rpartition("/")[2] for name in _OF_THE_BOX)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return True
