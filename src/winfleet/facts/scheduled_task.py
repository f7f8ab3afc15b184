"""Scheduled tasks."""

from __future__ import annotations

from typing import Any

from winfleet.calls import Call
from winfleet.facts import BoxFact
from winfleet.models.answer import BoxFault, items, mapping
from winfleet.models.task import TaskState, task_path


class Tasks(BoxFact[dict[str, TaskState]]):
    """For each task path its state; keys are normalised paths (``\\Folder\\Name``)."""

    @staticmethod
    def call(paths: list[str]) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxTask", TaskPath=[task_path(path) for path in paths])

    command = call

    @staticmethod
    def parse(value: Any) -> dict[str, TaskState]:
        """States by path. Raises ModelError."""
        states = [TaskState.parse(item) for item in items(value, "Get-BoxTask")]
        return {state.path: state for state in states}


class Validation(BoxFact[BoxFault | None]):
    """What the box's scheduler says of a task XML without registering it; None: it accepts it."""

    @staticmethod
    def call(path: str, xml: str) -> Call:
        """The box command of this fact."""
        return Call("Test-BoxTask", TaskPath=task_path(path), Xml=xml)

    command = call

    @staticmethod
    def parse(value: Any) -> BoxFault | None:
        """The fault, or None. Raises ModelError."""
        data = mapping(value, "Test-BoxTask")
        if data.get("Valid"):
            return None
        return BoxFault.parse(data.get("Error") or "the task was refused without a reason")
