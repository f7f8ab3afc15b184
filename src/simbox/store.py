"""The state of one simulated box that has no file of its own: tasks, firewall rules, ACLs, devices, accounts.

One JSON file, replaced atomically, guarded by one lock, so that a simulator killed at any point finds a
whole state.
"""

from __future__ import annotations

import copy
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Store:
    """JSON state with sections (top-level keys).

    Args:
        path: the file; created from `initial` when it is absent.
        initial: the first state, from the box's profile.

    Example::

        with store.change() as state:
            state["tasks"]["\\\\NInferServe"] = {...}
        xml = store.get("tasks", "\\\\NInferServe", "Xml")
    """

    def __init__(self, path: Path, initial: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self.lock = threading.RLock()
        if path.exists():
            self._state: dict[str, Any] = json.loads(path.read_text("utf-8"))
        else:
            self._state = copy.deepcopy(dict(initial or {}))
            self._save()

    def get(self, *keys: str, default: Any = None) -> Any:
        """A copy of the value under the nested keys, or default when one of them is absent."""
        with self.lock:
            value: Any = self._state
            for key in keys:
                if not isinstance(value, dict) or key not in value:
                    return default
                value = value[key]
            return copy.deepcopy(value)

    @contextmanager
    def change(self) -> Iterator[dict[str, Any]]:
        """The state itself, under the lock; saved when the block ends, put back when it raises."""
        with self.lock:
            before = copy.deepcopy(self._state)
            try:
                yield self._state
            except BaseException:
                self._state = before
                raise
            if self._state != before:
                self._save()

    def set(self, *keys: str, value: Any) -> None:
        """Set one nested value; missing sections are made."""
        with self.change() as state:
            for key in keys[:-1]:
                state = state.setdefault(key, {})
            state[keys[-1]] = value

    def remove(self, *keys: str) -> bool:
        """Remove one nested value; False when it was absent."""
        with self.change() as state:
            for key in keys[:-1]:
                state = state.get(key, {})
            return state.pop(keys[-1], None) is not None

    def _save(self) -> None:
        temporary = self.path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(self._state, ensure_ascii=False, indent=1), "utf-8", "surrogatepass")
        os.replace(temporary, self.path)
