"""ninfer-serve's request log: JSON lines, appended; the first write that fails ends it silently."""

from __future__ import annotations

import json
import threading
import time
import uuid
from pathlib import Path
from typing import Any

_SECRET_FLAGS = ("--api-key",)


def redacted(argv: list[str]) -> list[str]:
    """argv with the values of secret flags masked, as server_start records it."""
    return ["***" if index and argv[index - 1] in _SECRET_FLAGS else text for index, text in enumerate(argv)]


class RequestLog:
    """Appends records; does nothing without a path. Raises OSError when the file cannot be opened."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("ab", buffering=0) if path else None
        self._instance = str(uuid.uuid4())
        self._lock = threading.Lock()

    def write(self, event: str, **fields: Any) -> None:
        """One record."""
        if self._file is None:
            return
        record = {
            "artifact_type": "ninfer_request_log",
            "schema_version": 1,
            "event": event,
            "timestamp_unix_ms": int(time.time() * 1000),
            "server_instance_id": self._instance,
            **fields,
        }
        with self._lock:
            try:
                self._file.write(json.dumps(record).encode() + b"\n")
            except OSError:
                self._file = None

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()
