"""Triggers written as task XML, in the order that the schema demands (MS-TSCH 2.5.3)."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Sequence

from winfleet.task.schema import DAYS, MONTHS
from winfleet.task.trigger import (
    BootTrigger,
    ByDay,
    ByMonth,
    ByWeek,
    CalendarTrigger,
    EventTrigger,
    LogonTrigger,
    OtherTrigger,
    RegistrationTrigger,
    Schedule,
    SessionStateChangeTrigger,
    TimeTrigger,
    Trigger,
    WnfStateChangeTrigger,
)
from winfleet.task.xml_write import add, add_duration, add_raw


def trigger_element(trigger: Trigger) -> str:
    """The element of a trigger."""
    return trigger.name if isinstance(trigger, OtherTrigger) else trigger.kind


def write_trigger(parent: ElementTree.Element, trigger: Trigger) -> None:
    """Append a trigger."""
    node = ElementTree.SubElement(parent, trigger_element(trigger), {"id": trigger.id} if trigger.id else {})
    # The base elements are a sequence in this order, before those of each kind (MS-TSCH 2.5.3.1).
    add(node, "Enabled", trigger.enabled)
    add(node, "StartBoundary", trigger.start_boundary)
    add(node, "EndBoundary", trigger.end_boundary)
    if trigger.repetition is not None:
        repetition = ElementTree.SubElement(node, "Repetition")
        add_duration(repetition, "Interval", trigger.repetition.interval)
        add_duration(repetition, "Duration", trigger.repetition.duration)
        add(repetition, "StopAtDurationEnd", trigger.repetition.stop_at_duration_end)
    add_duration(node, "ExecutionTimeLimit", trigger.execution_time_limit)
    if isinstance(trigger, TimeTrigger | CalendarTrigger):
        add_duration(node, "RandomDelay", trigger.random_delay)
    if isinstance(trigger, CalendarTrigger):
        _write_schedule(node, trigger.schedule)
    if isinstance(trigger, LogonTrigger | SessionStateChangeTrigger):
        add(node, "UserId", trigger.user)
    if isinstance(trigger, EventTrigger):
        add(node, "Subscription", trigger.subscription)
    if isinstance(trigger, WnfStateChangeTrigger):
        add(node, "StateName", trigger.state_name)
        add(node, "Data", trigger.data)
        add(node, "DataOffset", trigger.data_offset)
    if isinstance(
        trigger,
        LogonTrigger
        | BootTrigger
        | EventTrigger
        | RegistrationTrigger
        | SessionStateChangeTrigger
        | WnfStateChangeTrigger,
    ):
        add_duration(node, "Delay", trigger.delay)
    if isinstance(trigger, SessionStateChangeTrigger):
        add(node, "StateChange", trigger.state_change)
    if isinstance(trigger, EventTrigger):
        _write_event(node, trigger)
    add_raw(node, trigger.xml if isinstance(trigger, OtherTrigger) else trigger.foreign)


def _write_event(node: ElementTree.Element, trigger: EventTrigger) -> None:
    add_duration(node, "PeriodOfOccurrence", trigger.period_of_occurrence)
    if trigger.number_of_occurrences != 1:
        add(node, "NumberOfOccurrences", trigger.number_of_occurrences)
    add(node, "MatchingElement", trigger.matching_element)
    if trigger.value_queries:
        queries = ElementTree.SubElement(node, "ValueQueries")
        for name, query in sorted(trigger.value_queries.items()):
            ElementTree.SubElement(queries, "Value", {"name": name}).text = query


def _write_names(parent: ElementTree.Element, tag: str, names: Collection[str], order: Sequence[str]) -> None:
    node = ElementTree.SubElement(parent, tag)
    for name in order:
        if name in names:
            ElementTree.SubElement(node, name)


def _write_schedule(node: ElementTree.Element, schedule: Schedule) -> None:
    if isinstance(schedule, ByDay):
        add(ElementTree.SubElement(node, "ScheduleByDay"), "DaysInterval", schedule.days_interval)
    elif isinstance(schedule, ByWeek):
        week = ElementTree.SubElement(node, "ScheduleByWeek")
        add(week, "WeeksInterval", schedule.weeks_interval)
        _write_names(week, "DaysOfWeek", schedule.days_of_week, DAYS)
    elif isinstance(schedule, ByMonth):
        month = ElementTree.SubElement(node, "ScheduleByMonth")
        days = ElementTree.SubElement(month, "DaysOfMonth")
        for day in sorted(
            map(str, schedule.days_of_month), key=lambda one: int(one) if one.isdigit() else 99
        ):
            add(days, "Day", day)
        _write_names(month, "Months", schedule.months or MONTHS, MONTHS)
    else:
        weekday = ElementTree.SubElement(node, "ScheduleByMonthDayOfWeek")
        if schedule.weeks:
            weeks = ElementTree.SubElement(weekday, "Weeks")
            for week_number in sorted(map(str, schedule.weeks)):
                add(weeks, "Week", week_number)
        _write_names(weekday, "DaysOfWeek", schedule.days_of_week, DAYS)
        _write_names(weekday, "Months", schedule.months or MONTHS, MONTHS)
