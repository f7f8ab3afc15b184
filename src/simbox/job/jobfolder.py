"""The folder of a detached job: job.json, started, pid, stdout.log, step, rc. What each file says, and the
state they make together (docs/facts/windows.md#detached-jobs)."""

from __future__ import annotations

import json
import ntpath
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box


@dataclass(frozen=True)
class JobFolder:
    """One job folder of a box; path is a Windows path."""

    box: Box
    path: str

    def host(self, name: str) -> Path:
        """Host path of one of its files."""
        return self.box.filesystem.host(ntpath.join(self.path, name))

    def read(self, name: str) -> str | None:
        """Text of one of its files, stripped; None when it is not there."""
        try:
            return self.host(name).read_text("utf-8-sig").strip()
        except (OSError, WindowsError):
            return None

    def write(self, name: str, text: str) -> None:
        """Write a file so that a reader sees all of it or nothing."""
        target = self.host(name)
        temporary = target.with_name(target.name + ".new")
        temporary.write_text(text, "utf-8")
        os.replace(temporary, target)

    def remove(self, *names: str) -> None:
        """Remove files that may be there."""
        for name in names:
            self.host(name).unlink(missing_ok=True)

    def job(self) -> dict[str, Any] | None:
        """job.json: Hash, Steps, TaskPath."""
        text = self.read("job.json")
        try:
            data = json.loads(text) if text else None
        except ValueError:
            return None
        return data if isinstance(data, dict) else None

    def process(self) -> tuple[int, str] | None:
        """Process id and creation time from the pid file."""
        parts = (self.read("pid") or "").split()
        return (int(parts[0]), parts[1]) if len(parts) == 2 and parts[0].isdigit() else None

    def is_alive(self) -> bool:
        """True when the process of the pid file still is the one that wrote it."""
        process = self.process()
        if process is None:
            return False
        rows = self.box.windows.process.list(None, [process[0]])
        return bool(rows) and rows[0]["CreationTimeUtc"] == process[1]

    def exit_code(self) -> int | None:
        """The code in rc, None while there is none."""
        text = self.read("rc")
        return int(text) if text is not None and text.lstrip("-").isdigit() else None

    def state(self) -> str:
        """absent, running, done or lost."""
        job = self.job()
        if job is None:
            return "absent"
        if self.exit_code() is not None:
            return "done"
        if self.is_alive():
            return "running"
        task = self.box.windows.scheduler.get(str(job.get("TaskPath", "\\")))
        if self.process() is None and task["State"] in ("Running", "Queued"):
            return "running"
        # It may have ended between the first look and the second.
        return "lost" if self.exit_code() is None else "done"
