"""When a time or calendar trigger fires next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from simbox.task import schema
from simbox.task.xml import Node

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_LOOK_AHEAD_DAYS = 800


def moment(text: str) -> datetime:
    """A StartBoundary as a UTC time; without a zone it is the wall clock of the box."""
    text = re.sub(r"\.(\d{6})\d+", r".\1", text.strip())
    parsed = datetime.fromisoformat(text)
    return parsed.astimezone(UTC)


def next_fire(trigger: Node, after: datetime) -> datetime | None:
    """The first time later than `after` at which a TimeTrigger or CalendarTrigger fires, or None."""
    if not trigger.flag("Enabled", True) or trigger.name not in ("TimeTrigger", "CalendarTrigger"):
        return None
    end = trigger.value("EndBoundary")
    last = moment(end) if end else None
    for base in _bases(trigger, after):
        found = repeated(trigger, base, after)
        if found is not None:
            return found if last is None or found <= last else None
    return None


def repeated(trigger: Node, base: datetime, after: datetime) -> datetime | None:
    """The first time later than `after` among base and its repetitions, or None when they are over."""
    if base > after:
        return base
    interval_s = schema.seconds(trigger.value("Repetition/Interval"))
    if not interval_s:
        return None
    steps = int((after - base).total_seconds() // interval_s) + 1
    found = base + timedelta(seconds=steps * interval_s)
    duration_s = schema.seconds(trigger.value("Repetition/Duration"))
    if duration_s is not None and found > base + timedelta(seconds=duration_s):
        return None
    return found


def _bases(trigger: Node, after: datetime) -> Iterator[datetime]:
    """Starts of the repetitions that may still reach beyond `after`, oldest first."""
    start = moment(trigger.value("StartBoundary"))
    if trigger.name == "TimeTrigger":
        yield start
        return
    schedule = next(node for node in trigger.children if node.name in schema.SCHEDULES)
    duration_s = schema.seconds(trigger.value("Repetition/Duration")) or schema.DAY_S
    wall = start.astimezone()
    day = max(wall.date(), (after - timedelta(seconds=duration_s)).astimezone().date() - timedelta(days=1))
    for _ in range(_LOOK_AHEAD_DAYS):
        if _matches(schedule, day, wall.date()):
            base = datetime.combine(day, wall.time()).astimezone(UTC)
            if base >= start:
                yield base
        day += timedelta(days=1)


def _matches(schedule: Node, day: date, first: date) -> bool:
    if schedule.name == "ScheduleByDay":
        return (day - first).days % int(schedule.value("DaysInterval", "1")) == 0
    weekday = _DAYS[day.weekday()]
    days = {node.name for node in (schedule.child("DaysOfWeek") or Node("")).children}
    if schedule.name == "ScheduleByWeek":
        monday = first - timedelta(days=first.weekday())
        weeks = (day - monday).days // 7
        return (
            weekday in (days or {_DAYS[first.weekday()]})
            and weeks % int(schedule.value("WeeksInterval", "1")) == 0
        )
    months = {node.name for node in (schedule.child("Months") or Node("")).children} or set(_MONTHS)
    if _MONTHS[day.month - 1] not in months:
        return False
    is_last = (day + timedelta(days=1)).month != day.month
    if schedule.name == "ScheduleByMonth":
        numbers = {node.text.strip() for node in (schedule.child("DaysOfMonth") or Node("")).children}
        return str(day.day) in numbers or ("Last" in numbers and is_last)
    weeks_of_month = {node.text.strip() for node in (schedule.child("Weeks") or Node("")).children} or set(
        "1234"
    )
    last_of_kind = (day + timedelta(days=7)).month != day.month
    return weekday in days and (
        str((day.day - 1) // 7 + 1) in weeks_of_month or ("Last" in weeks_of_month and last_of_kind)
    )
