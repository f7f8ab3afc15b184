"""Triggers read from task XML, defaults filled in."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

from winfleet.answer import ModelError
from winfleet.task.trigger import (
    BootTrigger,
    ByDay,
    ByMonth,
    ByMonthDayOfWeek,
    ByWeek,
    CalendarTrigger,
    EventTrigger,
    IdleTrigger,
    LogonTrigger,
    OtherTrigger,
    RegistrationTrigger,
    Repetition,
    Schedule,
    SessionStateChangeTrigger,
    TimeTrigger,
    Trigger,
    WnfStateChangeTrigger,
)
from winfleet.task.xml_read import foreign, text_of, value_of

_BASE = frozenset({"Enabled", "StartBoundary", "EndBoundary", "Repetition", "ExecutionTimeLimit"})
_SCHEDULES = frozenset({"ScheduleByDay", "ScheduleByWeek", "ScheduleByMonth", "ScheduleByMonthDayOfWeek"})
# The elements that each kind has beside those of all triggers (MS-TSCH 2.5.3).
_KNOWN: dict[str, frozenset[str]] = {
    kind: _BASE | elements
    for kind, elements in {
        "LogonTrigger": frozenset({"UserId", "Delay"}),
        "BootTrigger": frozenset({"Delay"}),
        "RegistrationTrigger": frozenset({"Delay"}),
        "TimeTrigger": frozenset({"RandomDelay"}),
        "CalendarTrigger": frozenset({"RandomDelay"}) | _SCHEDULES,
        "EventTrigger": frozenset(
            {
                "Subscription",
                "Delay",
                "PeriodOfOccurrence",
                "NumberOfOccurrences",
                "MatchingElement",
                "ValueQueries",
            }
        ),
        "IdleTrigger": frozenset(),
        "SessionStateChangeTrigger": frozenset({"UserId", "Delay", "StateChange"}),
        "WnfStateChangeTrigger": frozenset({"StateName", "Data", "DataOffset", "Delay"}),
    }.items()
}


def parse_trigger(node: ElementTree.Element) -> Trigger:
    """The trigger of one element below Triggers. Raises ModelError."""
    kind = node.tag
    base = _base(node)
    if kind not in _KNOWN:
        return OtherTrigger(**base, name=kind, xml=foreign(node, _BASE))
    base["foreign"] = foreign(node, _KNOWN[kind])
    if kind in {"TimeTrigger", "CalendarTrigger"}:
        base["random_delay"] = value_of(node, "RandomDelay", "duration", None)
    elif kind != "IdleTrigger":
        base["delay"] = value_of(node, "Delay", "duration", None)
    if kind == "LogonTrigger":
        user = text_of(node, "UserId") or None
        return LogonTrigger(**base, user=user, any_user=user is None)
    if kind == "BootTrigger":
        return BootTrigger(**base)
    if kind == "TimeTrigger":
        return TimeTrigger(**base)
    if kind == "CalendarTrigger":
        return CalendarTrigger(**base, schedule=_schedule(node))
    if kind == "EventTrigger":
        return _event(node, base)
    if kind == "IdleTrigger":
        return IdleTrigger(**base)
    if kind == "RegistrationTrigger":
        return RegistrationTrigger(**base)
    if kind == "WnfStateChangeTrigger":
        return WnfStateChangeTrigger(
            **base,
            state_name=text_of(node, "StateName") or "",
            data=text_of(node, "Data") or None,
            data_offset=value_of(node, "DataOffset", "int", None),
        )
    return SessionStateChangeTrigger(
        **base, user=text_of(node, "UserId") or None, state_change=text_of(node, "StateChange") or ""
    )


def _base(node: ElementTree.Element) -> dict[str, Any]:
    repetition = node.find("Repetition")
    repeats = None
    if repetition is not None and text_of(repetition, "Interval"):
        repeats = Repetition(
            value_of(repetition, "Interval", "duration", None),
            value_of(repetition, "Duration", "duration", None),
            value_of(repetition, "StopAtDurationEnd", "bool", False),
        )
    return {
        "id": node.get("id"),
        "enabled": value_of(node, "Enabled", "bool", True),
        "start_boundary": text_of(node, "StartBoundary"),
        "end_boundary": text_of(node, "EndBoundary"),
        "execution_time_limit": value_of(node, "ExecutionTimeLimit", "duration", None),
        "repetition": repeats,
    }


def _event(node: ElementTree.Element, base: dict[str, Any]) -> EventTrigger:
    return EventTrigger(
        **base,
        subscription=text_of(node, "Subscription") or "",
        value_queries={
            one.get("name", ""): (one.text or "").strip() for one in node.findall("ValueQueries/Value")
        },
        period_of_occurrence=value_of(node, "PeriodOfOccurrence", "duration", None),
        number_of_occurrences=value_of(node, "NumberOfOccurrences", "int", 1),
        matching_element=text_of(node, "MatchingElement"),
    )


def _names(node: ElementTree.Element, path: str) -> frozenset[str]:
    found = node.find(path)
    return frozenset() if found is None else frozenset(one.tag for one in found)


def _numbers(node: ElementTree.Element, path: str) -> frozenset[str]:
    return frozenset((one.text or "").strip() for one in node.findall(path))


def _schedule(node: ElementTree.Element) -> Schedule:
    day, week = node.find("ScheduleByDay"), node.find("ScheduleByWeek")
    month, weekday = node.find("ScheduleByMonth"), node.find("ScheduleByMonthDayOfWeek")
    if day is not None:
        return ByDay(value_of(day, "DaysInterval", "int", 1))
    if week is not None:
        return ByWeek(_names(week, "DaysOfWeek"), value_of(week, "WeeksInterval", "int", 1))
    if month is not None:
        return ByMonth(_numbers(month, "DaysOfMonth/Day"), _all_months(_names(month, "Months")))
    if weekday is not None:
        return ByMonthDayOfWeek(
            _names(weekday, "DaysOfWeek"),
            _numbers(weekday, "Weeks/Week"),
            _all_months(_names(weekday, "Months")),
        )
    raise ModelError("a calendar trigger without a schedule")


def _all_months(months: frozenset[str]) -> frozenset[str]:
    # Absent means every month; one spelling for it.
    return frozenset() if len(months) == 12 else months
