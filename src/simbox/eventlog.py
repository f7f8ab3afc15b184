"""What happened to a simulated box, counted: requests, handshakes, bytes, process starts, injected faults.

One JSON object a line, only ever appended: the daemon that writes it and the test or command that counts
it may be different processes.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_SUMMED = ("bytes_in", "bytes_out")


class EventLog:
    """The event log of one box.

    Kinds in use: connection, handshake (one per authentication that ended, `ok` says how), http_request (with
    action, status, bytes_in, bytes_out), shell_created, shell_deleted, process_start, fault_injected.

    Example::

        events = EventLog(box.directory / "events.jsonl")
        events.append("http_request", action="Send", status=200, bytes_in=812, bytes_out=640)
        events.counts("http_request"), events.counts("bytes_in")

    Args:
        path: the file; it and its folder are made when missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._changed = threading.Condition()
        self._offset = 0
        self._counts: Counter[str] = Counter()

    def append(self, kind: str, **fields: Any) -> None:
        """Write one event. Fields are JSON values; bytes_in and bytes_out are also summed for `counts`."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        line = json.dumps({"time": now, "kind": kind, **fields}, ensure_ascii=False, default=str)
        # One write of the whole line with O_APPEND: lines of several writers never mix.
        os.write(self._descriptor, line.encode("utf-8", "replace") + b"\n")
        with self._changed:
            self._changed.notify_all()

    def counts(self, kind: str) -> int:
        """How many events of this kind there are, or the sum of the fields bytes_in or bytes_out."""
        return self.totals().get(kind, 0)

    def totals(self) -> dict[str, int]:
        """All counts by kind, with the sums of bytes_in and bytes_out, whichever process wrote them."""
        with self._changed:
            for event in self._new_events():
                self._counts[event["kind"]] += 1
                for name in _SUMMED:
                    self._counts[name] += int(event.get(name) or 0)
            return dict(self._counts)

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """All events, or those of one kind, oldest first."""
        with self.path.open("rb") as file:
            found = [json.loads(line) for line in file if line.endswith(b"\n")]
        return [event for event in found if kind is None or event["kind"] == kind]

    def wait_until(self, condition: Callable[[dict[str, int]], bool], timeout_s: float = 30.0) -> bool:
        """Wait until condition(totals) holds; False on timeout. Woken by the events of this process only."""
        with self._changed:
            return self._changed.wait_for(lambda: condition(self.totals()), timeout_s)

    def close(self) -> None:
        """Release the file. Appending afterwards is an error; counting is not."""
        os.close(self._descriptor)

    def _new_events(self) -> list[dict[str, Any]]:
        """Events since the last call; a half-written line waits for the next call."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        end = data.rfind(b"\n") + 1
        self._offset += end
        return [json.loads(line) for line in data[:end].splitlines()]
