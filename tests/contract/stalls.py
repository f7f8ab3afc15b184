"""What the programs of wine boxes are doing: the only witness when one of them stalls on a far machine."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def activity() -> str:
    """A line a Windows program: its threads, by state and what they wait for in the kernel, with their CPU
    seconds."""
    lines = [f"load {Path('/proc/loadavg').read_text().strip()}"]
    for entry in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        command = _text(f"/proc/{entry}/cmdline").replace("\0", " ")
        if ".exe" in command.lower() or "wineserver" in command:
            lines.append(f"{entry} {command[-60:].strip()}: {'; '.join(_threads(entry))}")
    return "\n  ".join(lines)


def _threads(pid: str) -> list[str]:
    try:
        threads = sorted(os.listdir(f"/proc/{pid}/task"), key=int)
    except OSError:
        return []
    return [told for thread in threads if (told := _thread(f"/proc/{pid}/task/{thread}"))]


def _thread(folder: str) -> str | None:
    fields = _text(f"{folder}/stat").rpartition(")")[2].split()
    if len(fields) < 13:
        return None
    seconds = (int(fields[11]) + int(fields[12])) / _TICKS
    return f"{_text(f'{folder}/comm').strip()} {fields[0]} {_text(f'{folder}/wchan')} {seconds:.1f}s"


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
