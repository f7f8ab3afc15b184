"""The scheduler's own log of a simulated box: Microsoft-Windows-TaskScheduler/Operational.

Switched off until somebody enables it, as Windows ships it. Ids and what they tell: docs/facts/windows.md#task-events;
the names of the values: the events' manifest as public exports show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from simbox.process.state import utc_text

if TYPE_CHECKING:
    from simbox.box import Box

LOG = "Microsoft-Windows-TaskScheduler/Operational"
_NAMESPACE = "http://schemas.microsoft.com/win/2004/08/events/event"
_KEPT = 400
STARTED = 100
START_FAILED = 101
FINISHED = 102
REGISTERED = 106
ON_DEMAND = 110
TERMINATED = 111
PROCESS_CREATED = 129
UPDATED = 140
DELETED = 141
ACTION_ENDED = 201
ACTION_FAILED = 203
IGNORED = 322
QUEUED = 325
TIME_LIMIT = 329
STOPPED = 330
NOT_LOGGED_ON = 332


class TaskEvents:
    """The newest events of all tasks; they outlive the simulator as the log outlives a boot."""

    def __init__(self, box: Box) -> None:
        self._box = box

    @property
    def enabled(self) -> bool:
        """Whether the log is written."""
        return bool(self._box.store.get("task_log", "enabled", default=False))

    def enable(self, enabled: bool = True) -> None:
        """Switch the log on or off; what is in it stays."""
        self._box.store.set("task_log", "enabled", value=enabled)

    def write(self, number: int, path: str, **values: Any) -> None:
        """Add an event of the task at that path, when the log is on."""
        if not self.enabled:
            return
        event = {
            "Id": number,
            "TimeUtc": utc_text(datetime.now(UTC)),
            "Data": {"TaskName": path, **{name: str(value) for name, value in values.items()}},
        }
        with self._box.store.change() as state:
            known = state.setdefault("task_log", {}).setdefault("events", [])
            known.append(event)
            del known[:-_KEPT]

    def read(self, path: str, numbers: Iterable[int] = (), most: int = 50) -> list[dict[str, Any]]:
        """Events of one task as Get-BoxTaskEvent gives them, the newest first; numbers empty: all."""
        wanted = set(numbers)
        found = [
            event
            for event in reversed(self._box.store.get("task_log", "events", default=[]))
            if event["Data"]["TaskName"].casefold() == path.casefold()
            and (not wanted or event["Id"] in wanted)
        ]
        return [
            {"Id": event["Id"], "TimeUtc": event["TimeUtc"], "Xml": self._xml(event)}
            for event in found[:most]
        ]

    def _xml(self, event: dict[str, Any]) -> str:
        computer = escape(str(self._box.store.get("system", "computer_name")))
        data = "".join(
            f"<Data Name={quoteattr(name)}>{escape(value)}</Data>" for name, value in event["Data"].items()
        )
        return (
            f'<Event xmlns="{_NAMESPACE}"><System><Provider Name="Microsoft-Windows-TaskScheduler"/>'
            f"<EventID>{event['Id']}</EventID><TimeCreated SystemTime={quoteattr(event['TimeUtc'])}/>"
            f"<Channel>{LOG}</Channel><Computer>{computer}</Computer></System>"
            f"<EventData>{data}</EventData></Event>"
        )
