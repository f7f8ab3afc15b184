"""What the scheduler's own log tells of tasks (Microsoft-Windows-TaskScheduler/Operational)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, ModelError, integer, items, mapping, optional_text, text
from winfleet.task.model import task_path
from winfleet.task.xml_read import parsed

# The events that tell of trouble, or of what somebody did to a task (docs/facts/windows.md#task-events).
EVENTS = {
    100: "started",
    101: "could not be started",
    102: "finished",
    103: "an action could not be started",
    106: "registered",
    110: "started on demand",
    111: "terminated",
    119: "started by a logon",
    129: "its process was created",
    140: "changed",
    141: "deleted",
    200: "an action started",
    201: "an action ended",
    202: "an action failed",
    203: "an action could not be started",
    322: "a start was ignored: an instance ran already",
    325: "a start was queued",
    329: "ended by its time limit",
    330: "stopped by a user",
    332: "not started: its user was not logged on",
}
TROUBLE = frozenset({101, 103, 111, 202, 203, 322, 329, 330, 332})


@dataclass(frozen=True)
class TaskEvent(Model):
    """One event. Attributes: id, time_utc (ISO 8601 text), data (named values of the event)."""

    id: int
    time_utc: str
    data: Mapping[str, str]

    @property
    def result(self) -> int | None:
        """The result code that it carries, or None."""
        code = self.data.get("ResultCode", "")
        return int(code, 0) if code.removeprefix("0x").isalnum() and code[:1].isdigit() else None

    @classmethod
    def parse(cls, value: Any) -> TaskEvent:
        """From one item of Get-BoxTaskEvent. Raises ModelError."""
        data = mapping(value, "Get-BoxTaskEvent")
        return cls(integer(data, "Id"), text(data, "TimeUtc"), _named(text(data, "Xml")))


def _named(xml: str) -> dict[str, str]:
    root = parsed(xml, "a task event")
    return {
        node.get("Name", ""): (node.text or "").strip()
        for node in root.iter()
        if node.tag.rpartition("}")[2] == "Data" and node.get("Name")
    }


@dataclass(frozen=True)
class TaskHistory(Model):
    """Answer of Get-BoxTaskEvent.

    Attributes: enabled (False: Windows does not write this log; that is how it ships), events (by normalised
    path in lower case, the newest first).
    """

    enabled: bool
    events: Mapping[str, tuple[TaskEvent, ...]]

    def of(self, path: str) -> tuple[TaskEvent, ...]:
        """The events of one task, the newest first."""
        return self.events.get(task_path(path).casefold(), ())

    @classmethod
    def parse(cls, value: Any) -> TaskHistory:
        """From the answer. Raises ModelError, also when a task's events could not be read."""
        data = mapping(value, "Get-BoxTaskEvent")
        events = {}
        for entry in items(data.get("Tasks"), "Tasks"):
            one = mapping(entry, "Tasks")
            path = text(one, "TaskPath")
            if (fault := optional_text(one, "Error")) is not None:
                raise ModelError(f"the events of {path}: {fault}")
            found = [TaskEvent.parse(item) for item in items(one.get("Events"), "Events")]
            events[task_path(path).casefold()] = tuple(found)
        return cls(bool(data.get("LogEnabled")), events)
