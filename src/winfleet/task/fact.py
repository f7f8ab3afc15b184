"""Scheduled tasks and their log."""

from __future__ import annotations

from typing import Any

from pyinfra.api.hiddenvalue import HiddenValue

from winfleet.answer import BoxFault, items, mapping
from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.task.event import TROUBLE, TaskHistory
from winfleet.task.model import task_path
from winfleet.task.state import TaskState


class Tasks(BoxFact[dict[str, TaskState]]):
    """For each task path its state; keys are normalised paths (``\\Folder\\Name``)."""

    @staticmethod
    def call(paths: list[str]) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxTask", volatile=True, TaskPath=[task_path(path) for path in paths])

    @staticmethod
    def parse(value: Any) -> dict[str, TaskState]:
        """States by path. Raises ModelError."""
        states = [TaskState.parse(item) for item in items(value, "Get-BoxTask")]
        return {state.path: state for state in states}


class Validation(BoxFact[BoxFault | None]):
    """What the box's scheduler says of a task XML without registering it; None: it accepts it."""

    @staticmethod
    def call(path: str, xml: str, password: HiddenValue | None = None) -> Call:
        """The box command of this fact."""
        return Call("Test-BoxTask", volatile=True, TaskPath=task_path(path), Xml=xml, Password=password)

    @staticmethod
    def parse(value: Any) -> BoxFault | None:
        """The fault, or None. Raises ModelError."""
        data = mapping(value, "Test-BoxTask")
        if data.get("Valid"):
            return None
        return BoxFault.parse(data.get("Error") or "the task was refused without a reason")


class TaskEvents(BoxFact[TaskHistory]):
    """What the scheduler's own log tells of tasks: by default what went wrong, the newest events first."""

    @staticmethod
    def call(paths: list[str], ids: list[int] | None = None, most: int = 50) -> Call:
        """The box command of this fact. most: of the events of each task."""
        return Call(
            "Get-BoxTaskEvent",
            volatile=True,
            TaskPath=[task_path(path) for path in paths],
            Id=sorted(ids if ids is not None else TROUBLE),
            MaxEvents=most,
        )

    parse = staticmethod(TaskHistory.parse)
