"""What the scheduler says of a task beside its definition: whether it is there, runs, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from winfleet.answer import BoxFault, Model, items, mapping, optional_integer, optional_text, text
from winfleet.task.model import task_path


@dataclass(frozen=True)
class Instance(Model):
    """A running instance. Attributes: engine_process_id, guid, state."""

    engine_process_id: int | None
    guid: str | None
    state: str | None


@dataclass(frozen=True)
class Folder(Model):
    """A task folder. Attributes: path, tasks and folders (names of what is in it, hidden ones included)."""

    path: str
    tasks: tuple[str, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True)
class TaskState(Model):
    """Answer of Get-BoxTask for one path.

    Attributes: path, exists, xml (as stored; None when absent), state ("Ready", "Running", "Disabled", ...),
    enabled, last_run_time_utc, last_result (code of the last run), next_run_time_utc, missed_runs, instances,
    folders (those on the way to it that exist, the innermost first; not the root), fault (why it could not
    be read).
    """

    path: str
    exists: bool
    xml: str | None
    state: str | None
    enabled: bool
    last_run_time_utc: str | None
    last_result: int | None
    next_run_time_utc: str | None
    instances: tuple[Instance, ...]
    fault: BoxFault | None
    missed_runs: int | None = None
    folders: tuple[Folder, ...] = ()

    @property
    def running(self) -> bool:
        """True when an instance runs."""
        return self.state == "Running" or bool(self.instances)

    @classmethod
    def parse(cls, value: Any) -> TaskState:
        """From one item of Get-BoxTask. Raises ModelError."""
        data = mapping(value, "Get-BoxTask")
        entries = [mapping(entry, "Instances") for entry in items(data.get("Instances"), "Instances")]
        folders = [mapping(entry, "Folders") for entry in items(data.get("Folders"), "Folders")]
        return cls(
            task_path(text(data, "TaskPath")),
            bool(data.get("Exists")),
            optional_text(data, "Xml"),
            optional_text(data, "State"),
            bool(data.get("Enabled")),
            optional_text(data, "LastRunTimeUtc"),
            optional_integer(data, "LastTaskResult"),
            optional_text(data, "NextRunTimeUtc"),
            tuple(
                Instance(
                    optional_integer(one, "EnginePid"),
                    optional_text(one, "InstanceGuid"),
                    optional_text(one, "State"),
                )
                for one in entries
            ),
            None if data.get("Error") is None else BoxFault.parse(data["Error"]),
            optional_integer(data, "MissedRuns"),
            tuple(
                Folder(
                    task_path(text(one, "Path")),
                    tuple(str(name) for name in items(one.get("Tasks"), "Tasks")),
                    tuple(str(name) for name in items(one.get("Folders"), "Folders")),
                )
                for one in folders
            ),
        )


def left_empty(states: Iterable[TaskState], removed: Sequence[str]) -> list[str]:
    """Folders that hold nothing more once the removed tasks are gone, the innermost first.

    Windows makes the folders of a task and leaves them behind (traycerai/traycer PR#793). Those of Windows
    itself, below ``\\Microsoft``, are never among them.
    """
    folders = {folder.path.casefold(): folder for state in states for folder in state.folders}
    gone = {path.casefold() for path in removed}
    found = []
    for key, folder in sorted(folders.items(), key=lambda one: -one[0].count("\\")):
        if key == "\\microsoft" or key.startswith("\\microsoft\\"):
            continue
        inside = [f"{key}\\{name.casefold()}" for name in (*folder.tasks, *folder.folders)]
        if all(path in gone for path in inside):
            gone.add(key)
            found.append(folder.path)
    return found
