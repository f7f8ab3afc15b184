"""Calls at given times on one thread that sleeps until the next is due."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any


class Timers:
    """A queue of calls by time; `key` groups them so that those of one task can be dropped together."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._queue: list[tuple[datetime, int, Any, Callable[[], None]]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def begin(self) -> None:
        """Start the thread."""
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def at(self, when: datetime, key: Any, call: Callable[[], None]) -> None:
        """Call at that time (or at once when it has passed)."""
        with self._changed:
            heapq.heappush(self._queue, (when, next(self._order), key, call))
            self._changed.notify()

    def drop(self, key: Any) -> None:
        """Forget the calls of that key."""
        with self._changed:
            self._queue = [item for item in self._queue if item[2] != key]
            heapq.heapify(self._queue)
            self._changed.notify()

    def next_time(self, key: Any) -> datetime | None:
        """When the first call of that key is due."""
        with self._changed:
            return min((item[0] for item in self._queue if item[2] == key), default=None)

    def stop(self) -> None:
        """End the thread and forget all calls."""
        with self._changed:
            self._stopped = True
            self._queue.clear()
            self._changed.notify()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                if not self._queue:
                    self._changed.wait()
                    continue
                wait_s = (self._queue[0][0] - datetime.now(UTC)).total_seconds()
                if wait_s > 0:
                    self._changed.wait(wait_s)
                    continue
                call = heapq.heappop(self._queue)[3]
            call()
