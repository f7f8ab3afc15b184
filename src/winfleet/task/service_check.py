"""What a task needs so that its program comes up by itself and stays up.

Facts: docs/facts/windows.md#restart-on-failure.
"""

from __future__ import annotations

from collections.abc import Iterator

from winfleet.task.duration import seconds
from winfleet.task.model import Task
from winfleet.task.trigger import BootTrigger, LogonTrigger


def service_faults(task: Task) -> Iterator[str]:
    """Why this task is no service."""
    settings = task.settings
    triggers = task.triggers or ()
    starts = [
        trigger
        for trigger in triggers
        if trigger.enabled
        and (isinstance(trigger, BootTrigger | LogonTrigger) or trigger.repetition is not None)
    ]
    if not starts:
        yield "a service needs a boot, logon or repeating trigger, or it never starts by itself (ODS PR#3252)"
    if any(trigger.end_boundary for trigger in triggers):
        yield "a trigger of a service with an end_boundary stops starting it one day; leave it out"
    if settings.execution_time_limit != 0 or any(trigger.execution_time_limit for trigger in triggers):
        yield (
            "a service without execution_time_limit=0 is ended after the default of 72 h, or after the"
            " given time"
        )
    if (
        settings.disallow_start_if_on_batteries is not False
        or settings.stop_if_going_on_batteries is not False
    ):
        yield (
            "set disallow_start_if_on_batteries and stop_if_going_on_batteries to False: Windows'"
            " default is True"
        )
    if settings.multiple_instances not in (None, "IgnoreNew"):
        yield f"multiple_instances {settings.multiple_instances} starts a second server; use IgnoreNew"
    if settings.run_only_if_idle:
        yield "run_only_if_idle and a service contradict each other"
    if settings.enabled is False:
        yield "enabled=False and a service contradict each other"
    yield from _readiness_faults(task)


def _readiness_faults(task: Task) -> Iterator[str]:
    """Whoever waits shorter than Windows takes to try again calls a start failed that still comes."""
    if task.ready_within_s is None:
        return
    interval = _retry_s(task)
    needed = (interval or 0) + task.load_s
    if task.ready_within_s < needed:
        yield (
            f"ready_within_s {task.ready_within_s:g} is shorter than the {interval or 0} s that Windows takes"
            f" to start it again plus {task.load_s:g} s to load; wait {needed:g} s or more"
        )


def _retry_s(task: Task) -> int | None:
    """Seconds until Windows starts again what it could not start; None: it never does."""
    if task.settings.restart_interval is not None:
        return seconds(task.settings.restart_interval)
    intervals = [
        seconds(trigger.repetition.interval)
        for trigger in task.triggers or ()
        if trigger.enabled and trigger.repetition is not None
    ]
    return min(intervals, default=None)


def service_warnings(task: Task) -> Iterator[str]:
    """What a service lacks."""
    if task.settings.priority not in (4, 5, 6):
        yield (
            "priority is not 4 to 6: CPU, disk and memory priority are lowered"
            " (docs/facts/windows.md#task-priority)"
        )
    repeats = any(
        trigger.enabled and trigger.repetition is not None and trigger.repetition.duration is None
        for trigger in task.triggers or ()
    )
    if not repeats:
        yield (
            "no trigger repeats for ever: restart_interval covers programs that could not be started, not"
            " those that crashed or were killed (docs/facts/windows.md#restart-on-failure)"
        )
        if task.settings.start_when_available:
            yield "start_when_available catches up a missed start after about 10 minutes only"
