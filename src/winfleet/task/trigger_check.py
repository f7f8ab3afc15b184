"""Declared triggers that Windows would refuse, or that would not do what they are for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from winfleet.task.duration import iso, seconds
from winfleet.task.schema import DAYS, MONTHS, SESSION_CHANGES
from winfleet.task.trigger import (
    ByDay,
    ByMonth,
    ByMonthDayOfWeek,
    ByWeek,
    CalendarTrigger,
    EventTrigger,
    LogonTrigger,
    Repetition,
    Schedule,
    SessionStateChangeTrigger,
    TimeTrigger,
    Trigger,
    WnfStateChangeTrigger,
)

DAY_S = 86400
# Longer durations than this are refused with 0x80041318; TimeSpan.MaxValue is the usual one (W14).
_LONGEST_S = 9999 * DAY_S
_WATCH_S = 3650 * DAY_S


def trigger_faults(trigger: Trigger, service: bool) -> Iterator[str]:
    """Why this trigger is refused. service: its task must come up by itself and stay up."""
    if trigger.repetition is not None:
        yield from _repetition_faults(trigger.repetition, service)
    yield from _boundary_faults(trigger)
    if isinstance(trigger, LogonTrigger):
        if trigger.user is None and not trigger.any_user:
            yield "name the user, or set any_user=True: an unscoped logon trigger starts for everybody (W17)"
        if trigger.user is not None and trigger.any_user:
            yield "user and any_user contradict each other"
    if isinstance(trigger, EventTrigger):
        if not trigger.subscription.strip():
            yield "an event trigger needs a subscription"
        if not 1 <= trigger.number_of_occurrences <= 32:
            yield f"number_of_occurrences {trigger.number_of_occurrences}; the scheduler takes 1 to 32"
        if len(trigger.value_queries) > 32 or not all(
            name and query.strip() for name, query in trigger.value_queries.items()
        ):
            yield "value_queries: at most 32, each with a name and a query"
    if isinstance(trigger, CalendarTrigger):
        yield from _schedule_faults(trigger.schedule)
    if isinstance(trigger, SessionStateChangeTrigger) and trigger.state_change not in SESSION_CHANGES:
        yield f"state_change {trigger.state_change!r}; the scheduler knows {', '.join(SESSION_CHANGES)}"
    if isinstance(trigger, WnfStateChangeTrigger) and not trigger.state_name:
        yield "a WNF trigger needs a state_name"


def _boundary_faults(trigger: Trigger) -> Iterator[str]:
    if isinstance(trigger, TimeTrigger | CalendarTrigger) and not trigger.start_boundary:
        yield "start_boundary is missing; write a fixed time in the past for a watchdog"
    moments = []
    for name in ("start_boundary", "end_boundary"):
        text = getattr(trigger, name)
        if text is None:
            continue
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            yield f"{name} {text!r} is no date and time such as 2020-01-01T00:00:00"
            continue
        if "T" not in text:
            yield f"{name} {text!r} has no time of day; write 2020-01-01T00:00:00"
        moments.append(moment)
    comparable = len(moments) == 2 and len({moment.tzinfo is None for moment in moments}) == 1
    if comparable and moments[1] <= moments[0]:
        yield "end_boundary is not after start_boundary, so the trigger never fires"


def _repetition_faults(repetition: Repetition, service: bool) -> Iterator[str]:
    interval = seconds(repetition.interval)
    if not 60 <= interval <= 31 * DAY_S:
        yield f"it repeats every {iso(interval)}; the scheduler takes PT1M to P31D"
    if repetition.duration is None:
        return
    duration = seconds(repetition.duration)
    if duration < 60:
        yield (
            f"the repetition ends after {iso(duration)}; the scheduler takes PT1M or more, or none: for ever"
        )
    if duration <= interval:
        yield f"the repetition ends after {iso(duration)}, before its interval of {iso(interval)} has passed"
    if duration > _LONGEST_S:
        yield (
            f"the repetition ends after {iso(duration)}, which the scheduler refuses (0x80041318);"
            " leave the duration out: for ever (openclaw/openclaw#81020)"
        )
    if service and duration < _WATCH_S:
        yield (
            f"a watchdog that ends after {iso(duration)} leaves the service dead for good;"
            " leave the duration out: for ever (openclaw/openclaw#81020)"
        )


def _schedule_faults(schedule: Schedule) -> Iterator[str]:
    if isinstance(schedule, ByDay) and not 1 <= schedule.days_interval <= 365:
        yield f"days_interval {schedule.days_interval}; the scheduler takes 1 to 365"
    if isinstance(schedule, ByWeek) and not 1 <= schedule.weeks_interval <= 52:
        yield f"weeks_interval {schedule.weeks_interval}; the scheduler takes 1 to 52"
    if isinstance(schedule, ByWeek | ByMonthDayOfWeek):
        yield from _unknown("days_of_week", schedule.days_of_week, DAYS)
        if not schedule.days_of_week:
            yield "name the days of the week"
    if isinstance(schedule, ByMonth):
        yield from _unknown("days_of_month", schedule.days_of_month, [*map(str, range(1, 32)), "Last"])
        if not schedule.days_of_month:
            yield "name the days of the month"
    if isinstance(schedule, ByMonthDayOfWeek):
        yield from _unknown("weeks", schedule.weeks, ["1", "2", "3", "4", "Last"])
    if isinstance(schedule, ByMonth | ByMonthDayOfWeek):
        yield from _unknown("months", schedule.months, MONTHS)


def _unknown(field: str, names: Collection[str | int], known: Collection[str]) -> Iterator[str]:
    wrong = sorted(str(name) for name in names if str(name) not in known)
    if wrong:
        yield f"{field}: {', '.join(wrong)}; the scheduler knows {', '.join(known)}"
