"""Declared settings that Windows would refuse or that contradict each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from winfleet.task.duration import iso, seconds
from winfleet.task.model import Settings, Task
from winfleet.task.schema import SETTINGS

_DAY_S = 86400
# Field, least and greatest duration in seconds (MS-TSCH 2.5.4).
_RANGES = (
    ("restart_interval", 60, 31 * _DAY_S),
    ("idle_duration", 60, None),
    ("idle_wait_timeout", 60, None),
    ("maintenance_period", _DAY_S, None),
    ("maintenance_deadline", _DAY_S, None),
)
_FIELDS = frozenset(name for name, _, _, _ in SETTINGS)


def setting_faults(task: Task) -> Iterator[str]:
    """Why these settings are refused."""
    settings = task.settings
    yield from _absent_faults(settings)
    if settings.priority is not None and not 0 <= settings.priority <= 10:
        yield f"priority {settings.priority}; the scheduler takes 0 to 10, 4 is normal"
    if (settings.restart_interval is None) != (settings.restart_count is None):
        yield "restart_interval and restart_count go together"
    for name, least, greatest in _RANGES:
        value = getattr(settings, name)
        if value is None or (least <= value and (greatest is None or value <= greatest)):
            continue
        span = f"{iso(least)} or more" if greatest is None else f"{iso(least)} to {iso(greatest)}"
        yield f"{name} {iso(value)}; the scheduler takes {span}"
    if settings.restart_count is not None and not 1 <= settings.restart_count <= 999:
        yield f"restart_count {settings.restart_count}; the scheduler takes 1 to 999"
    if settings.delete_expired_task_after is not None and not any(
        trigger.end_boundary for trigger in task.triggers or ()
    ):
        yield "delete_expired_task_after needs a trigger with an end_boundary"
    if settings.multiple_instances not in (None, "Parallel", "Queue", "IgnoreNew", "StopExisting"):
        yield f"multiple_instances {settings.multiple_instances!r} is none of the scheduler's four"
    yield from _maintenance_faults(settings)
    if settings.run_only_if_network_available is False and (settings.network_name or settings.network_id):
        yield "a network is named, but run_only_if_network_available is False, so it is not looked at"


def _absent_faults(settings: Settings) -> Iterator[str]:
    unknown = sorted(settings.absent - _FIELDS)
    if unknown:
        yield f"settings.absent: there is no setting {', '.join(unknown)}"
    both = sorted(
        one.name
        for one in dataclasses.fields(settings)
        if one.name in settings.absent and getattr(settings, one.name) is not None
    )
    if both:
        yield f"{', '.join(both)}: declared and in settings.absent"
    if len({"restart_interval", "restart_count"} & settings.absent) == 1:
        yield "restart_interval and restart_count go together, in settings.absent too"


def _maintenance_faults(settings: Settings) -> Iterator[str]:
    period, deadline = settings.maintenance_period, settings.maintenance_deadline
    if period is None and (deadline is not None or settings.maintenance_exclusive is not None):
        yield "maintenance settings need a maintenance_period"
    if period is not None and deadline is not None and seconds(deadline) <= seconds(period):
        yield "maintenance_deadline must be longer than maintenance_period (MS-TSCH 2.5.4)"


def setting_warnings(task: Task) -> Iterator[str]:
    """Settings that have gone wrong for others."""
    if (task.settings.restart_count or 0) > 255:
        yield "restart_count above 255 is outside the published schema, though Windows is known to take 999"
    if task.settings.use_unified_scheduling_engine and task.settings.allow_hard_terminate is False:
        yield "allow_hard_terminate=False: Stop and the time limit cannot end it (0x80041327)"
