"""A note on disk for each open shell, so that the shells of a killed run are found and removed by the next
one.

A run that is killed cannot delete its shells; each then counts against the box's MaxShellsPerUser until its
idle timeout. The note names endpoint, shell and process; a note whose process is gone is an orphan.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path


def _folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "winfleet" / "shells"


def _started(pid: int) -> str:
    """When a process started, as the system writes it; empty where it does not say (then the number alone
    counts).
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _alive(pid: int, started: str) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return not started or _started(pid) in ("", started)


def _place(url: str, shell_id: str) -> Path:
    return _folder() / (hashlib.sha256(f"{url} {shell_id}".encode()).hexdigest()[:32] + ".json")


def note(url: str, user: str | None, shell_id: str) -> None:
    """Write down an open shell. A disk that cannot be written only costs the clean-up after a kill."""
    entry = {
        "url": url,
        "user": user,
        "shell_id": shell_id,
        "pid": os.getpid(),
        "started": _started(os.getpid()),
    }
    place = _place(url, shell_id)
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.write_text(json.dumps(entry), "utf-8")


def abandon(url: str, shell_id: str) -> None:
    """Mark a shell that could not be removed: the next one opened to that endpoint removes it."""
    with contextlib.suppress(OSError, ValueError):
        place = _place(url, shell_id)
        place.write_text(json.dumps(json.loads(place.read_text("utf-8")) | {"pid": 0}), "utf-8")


def forget(url: str, shell_id: str) -> None:
    """Strike out a shell that is gone."""
    with contextlib.suppress(OSError):
        _place(url, shell_id).unlink()


def orphans(url: str, user: str | None) -> Iterator[str]:
    """Shells of this user on this endpoint whose process no longer lives."""
    with contextlib.suppress(OSError):
        for place in sorted(_folder().glob("*.json")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                entry = json.loads(place.read_text("utf-8"))
                mine = (entry["url"], entry["user"]) == (url, user)
                if mine and not _alive(int(entry["pid"]), str(entry["started"])):
                    yield str(entry["shell_id"])
