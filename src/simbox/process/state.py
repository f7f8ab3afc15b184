"""Processes of a simulated box: the table behind Get-BoxProcess on the python engine, and the programs on
any.
"""

from __future__ import annotations

import ntpath
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box

_HOW_LONG_A_KILL_MAY_TAKE_S = 10


def utc_text(moment: datetime) -> str:
    """A time in .NET's `o` format, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "0Z"


@dataclass
class ProcessEntry:
    """One process. `kill(exit_code)` ends it; `gone` is set when it has ended."""

    pid: int
    parent_pid: int
    path: str
    kill: Callable[[int], None]
    created: datetime
    priority_class: str = "Normal"
    session_id: int = 0
    working_set_bytes: int = 24 << 20
    exit_code: int | None = None
    gone: threading.Event = field(default_factory=threading.Event)

    def value(self) -> dict[str, Any]:
        """As Get-BoxProcess gives it."""
        return {
            "ProcessId": self.pid,
            "ParentProcessId": self.parent_pid,
            "Name": ntpath.basename(self.path),
            "ExecutablePath": self.path if "\\" in self.path else None,
            "CreationTimeUtc": utc_text(self.created),
            "PriorityClass": self.priority_class,
            "SessionId": self.session_id,
            "WorkingSetBytes": self.working_set_bytes,
        }


class Processes:
    """The process table of one box; not persisted, processes do not outlive the simulator."""

    REMOTE = frozenset({"list", "stop", "owner"})

    def __init__(self, box: Box) -> None:
        self._box = box
        self._lock = threading.RLock()
        self._entries: dict[int, ProcessEntry] = {}
        self._next_pid = 4100
        if box.engine == "python":
            for name in ("System", "svchost.exe", "lsass.exe", *box.profile.get("processes", default=[])):
                path = name if name == "System" else f"C:\\Windows\\System32\\{name}"
                path = "C:\\Windows\\explorer.exe" if name == "explorer.exe" else path
                self.add(path, _protected, session_id=1 if name in ("explorer.exe", "dwm.exe") else 0)

    def add(
        self,
        path: str,
        kill: Callable[[int], None],
        *,
        pid: int | None = None,
        parent_pid: int = 0,
        priority_class: str | None = None,
        session_id: int | None = None,
    ) -> ProcessEntry:
        """Enter a new process; priority and session are the parent's unless given."""
        with self._lock:
            if pid is None:
                self._next_pid += 4  # Windows ids are multiples of four
                pid = self._next_pid
            parent = self._entries.get(parent_pid)
            entry = ProcessEntry(
                pid,
                parent_pid,
                path,
                kill,
                datetime.now(UTC),
                priority_class or (parent.priority_class if parent else "Normal"),
                session_id if session_id is not None else (parent.session_id if parent else 0),
            )
            self._entries[pid] = entry
            return entry

    def exited(self, pid: int, exit_code: int) -> None:
        """Take an ended process out of the table; wakes whoever waits for it."""
        with self._lock:
            entry = self._entries.pop(pid, None)
        if entry:
            entry.exit_code = exit_code
            entry.gone.set()

    def find(self, pid: int) -> ProcessEntry | None:
        """The live process of that id."""
        with self._lock:
            return self._entries.get(pid)

    def children(self, pid: int) -> list[ProcessEntry]:
        """Live children, not their children."""
        with self._lock:
            return [entry for entry in self._entries.values() if entry.parent_pid == pid]

    def list(
        self, names: Iterable[str] | None = None, pids: Iterable[int] | None = None
    ) -> list[dict[str, Any]]:
        """Live processes as Get-BoxProcess gives them; names in any case, with or without .exe."""
        wanted = None if names is None else {name.lower().removesuffix(".exe") for name in names}
        ids = None if pids is None else set(pids)
        with self._lock:
            entries = sorted(self._entries.values(), key=lambda entry: entry.pid)
        return [
            entry.value()
            for entry in entries
            if (wanted is None or ntpath.basename(entry.path).lower().removesuffix(".exe") in wanted)
            and (ids is None or entry.pid in ids)
        ]

    def stop(self, pid: int, creation_time: str | None = None, exit_code: int = 1) -> dict[str, Any]:
        """Kill one process (not its children) and wait until it is gone.

        Args: creation_time: in `o` format; another one than the process has is refused, for the id was
        reused.
        """
        entry = self.find(pid)
        if entry is None:
            return {"Stopped": False, "ExitCode": None}
        if creation_time is not None and utc_text(entry.created)[:23] != creation_time[:23]:
            raise WindowsError(
                "Refused",
                f"process {pid} was created {utc_text(entry.created)}, not {creation_time}: "
                "the id was reused",
                None,
                "InvalidOperation",
            )
        entry.kill(exit_code)
        entry.gone.wait(_HOW_LONG_A_KILL_MAY_TAKE_S)
        return {"Stopped": entry.gone.is_set(), "ExitCode": entry.exit_code}

    def tokens(self, pids: Iterable[int]) -> Sequence[dict[str, Any]]:
        """As whom and how the processes run, as Get-BoxProcessToken gives it."""
        answers = []
        for pid in pids:
            entry = self.find(pid)
            fault = None
            if entry is None:
                fault = f"there is no process {pid}"
            elif entry.kill is _protected:
                fault = "Access is denied"
            sid, elevated = self._rights(self._chain(pid)) if fault is None else (None, None)
            system = sid == "S-1-5-18"
            answers.append(
                {
                    "ProcessId": pid,
                    "UserSid": sid,
                    "Elevated": elevated,
                    "IntegrityLevel": None if fault else 0x4000 if system else 0x3000 if elevated else 0x2000,
                    "Error": fault,
                }
            )
        return answers

    def owner(self, pids: Iterable[int]) -> str:
        """The SID of a process, given its id and those of its ancestors."""
        return self._rights([*pids])[0]

    def _chain(self, pid: int) -> Sequence[int]:
        found = []
        entry = self.find(pid)
        while entry is not None and entry.pid not in found:
            found.append(entry.pid)
            entry = self.find(entry.parent_pid)
        return found

    def _rights(self, chain: Sequence[int]) -> tuple[str, bool]:
        """Those of the task that started one of the chain, else of the remote session."""
        windows = self._box.windows
        of_task = windows.scheduler.rights_of([*chain])
        if of_task is not None:
            return of_task
        user = str(self._box.store.get("system", "user"))
        return windows.account.sid_of(user), bool(self._box.store.get("system", "elevated"))

    def kill_tree(self, pid: int, exit_code: int = 1) -> None:
        """Kill a process and its descendants, and wait for them.

        The root first, so that it starts no new ones; once it is gone, those that it started in that moment.
        """
        entry = self.find(pid)
        if entry:
            entry.kill(exit_code)
        for child in self.children(pid):
            self.kill_tree(child.pid, exit_code)
        if entry:
            entry.gone.wait(_HOW_LONG_A_KILL_MAY_TAKE_S)
            for child in self.children(pid):
                self.kill_tree(child.pid, exit_code)

    def shut_down(self) -> None:
        """End every process and wait for it."""
        with self._lock:
            entries = [entry for entry in self._entries.values() if entry.kill is not _protected]
        for entry in entries:
            entry.kill(1)
        for entry in entries:
            entry.gone.wait(_HOW_LONG_A_KILL_MAY_TAKE_S)


def _protected(exit_code: int) -> None:
    raise WindowsError(
        "System.ComponentModel.Win32Exception", "Access is denied", 0x80070005, "PermissionDenied"
    )
