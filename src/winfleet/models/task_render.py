"""Task XML written: the explicit shape, in the order of the schema (MS-TSCH 2.5)."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

from winfleet.models.duration import iso, seconds
from winfleet.models.task import Exec, Principal, Settings, Task
from winfleet.models.task_schema import (
    DEFAULT_PRINCIPAL_ID,
    NAMESPACE,
    NEEDS_VERSION,
    REGISTRATION,
    SERVICE_SIDS,
    SETTINGS,
)
from winfleet.models.task_trigger import (
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
)


def required_version(task: Task) -> str:
    """The lowest schema version that knows what this task says; a higher one that was observed is kept."""
    versions = [task.schema_version or "1.2", "1.2"]
    defaults = {name: default for name, _, _, default in SETTINGS}
    for name, version in NEEDS_VERSION.items():
        if getattr(task.settings, name) not in (None, defaults[name]):
            versions.append(version)
    if task.principal.process_token_sid_type or task.principal.required_privileges:
        versions.append("1.3")
    return max(versions, key=lambda one: tuple(int(part) for part in one.split(".")))


def render_task(task: Task) -> str:
    """Task XML without a declaration: as a string it has no encoding that could contradict it (W20)."""
    root = ElementTree.Element("Task", {"version": required_version(task), "xmlns": NAMESPACE})
    registration = ElementTree.SubElement(root, "RegistrationInfo")
    for name, tag in REGISTRATION:
        _add(registration, tag, getattr(task, name))
    triggers = ElementTree.SubElement(root, "Triggers")
    for trigger in task.triggers or ():
        _write_trigger(triggers, trigger)
    context = task.principal.id or DEFAULT_PRINCIPAL_ID
    _write_principal(ElementTree.SubElement(root, "Principals"), task.principal, context)
    _write_settings(ElementTree.SubElement(root, "Settings"), task.settings)
    _add(root, "Data", task.data)
    actions = ElementTree.SubElement(root, "Actions", {"Context": context})
    for action in task.actions or ():
        attributes = {"id": action.id} if action.id else {}
        if isinstance(action, Exec):
            node = ElementTree.SubElement(actions, "Exec", attributes)
            _add(node, "Command", action.command)
            _add(node, "Arguments", action.arguments)
            _add(node, "WorkingDirectory", action.working_directory)
        else:
            node = ElementTree.SubElement(actions, action.name, attributes)
            _add_raw(node, action.xml)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode")


def _add(parent: ElementTree.Element, tag: str, value: Any) -> None:
    if value is None:
        return
    shown = ("true" if value else "false") if isinstance(value, bool) else str(value)
    ElementTree.SubElement(parent, tag).text = shown.strip()


def _add_duration(parent: ElementTree.Element, tag: str, value: Any) -> None:
    if value is not None:
        _add(parent, tag, iso(seconds(value)))


def _add_raw(parent: ElementTree.Element, xml: str) -> None:
    parent.extend(ElementTree.fromstring(f"<raw>{xml}</raw>"))


def _write_principal(parent: ElementTree.Element, principal: Principal, context: str) -> None:
    node = ElementTree.SubElement(parent, "Principal", {"id": context})
    _add(node, "UserId", principal.user)
    _add(node, "GroupId", principal.group)
    if (principal.user or "").upper() not in SERVICE_SIDS and principal.group is None:
        _add(node, "LogonType", principal.logon_type)
    _add(node, "DisplayName", principal.display_name)
    _add(node, "RunLevel", principal.run_level)
    _add(node, "ProcessTokenSidType", principal.process_token_sid_type)
    if principal.required_privileges:
        privileges = ElementTree.SubElement(node, "RequiredPrivileges")
        for name in sorted(principal.required_privileges):
            _add(privileges, "Privilege", name)


def _write_settings(parent: ElementTree.Element, settings: Settings) -> None:
    for name, place, kind, default in SETTINGS:
        value = getattr(settings, name)
        if value is None or (name in NEEDS_VERSION and value == default):
            continue
        outer, _, inner = place.rpartition("/")
        node = parent
        if outer:
            found = parent.find(outer)
            node = found if found is not None else ElementTree.SubElement(parent, outer)
        (_add_duration if kind == "duration" else _add)(node, inner, value)


def _write_trigger(parent: ElementTree.Element, trigger: Trigger) -> None:
    tag = trigger.name if isinstance(trigger, OtherTrigger) else trigger.kind
    node = ElementTree.SubElement(parent, tag, {"id": trigger.id} if trigger.id else {})
    # The base elements are a sequence in this order, before those of each kind (MS-TSCH 2.5.3.1).
    _add(node, "Enabled", trigger.enabled)
    _add(node, "StartBoundary", trigger.start_boundary)
    _add(node, "EndBoundary", trigger.end_boundary)
    if trigger.repetition is not None:
        repetition = ElementTree.SubElement(node, "Repetition")
        _add_duration(repetition, "Interval", trigger.repetition.interval)
        _add_duration(repetition, "Duration", trigger.repetition.duration)
        _add(repetition, "StopAtDurationEnd", trigger.repetition.stop_at_duration_end)
    _add_duration(node, "ExecutionTimeLimit", trigger.execution_time_limit)
    if isinstance(trigger, TimeTrigger | CalendarTrigger):
        _add_duration(node, "RandomDelay", trigger.random_delay)
    if isinstance(trigger, CalendarTrigger):
        _write_schedule(node, trigger.schedule)
    if isinstance(trigger, LogonTrigger | SessionStateChangeTrigger):
        _add(node, "UserId", trigger.user)
    if isinstance(trigger, EventTrigger):
        _add(node, "Subscription", trigger.subscription)
    if isinstance(
        trigger, LogonTrigger | BootTrigger | EventTrigger | RegistrationTrigger | SessionStateChangeTrigger
    ):
        _add_duration(node, "Delay", trigger.delay)
    if isinstance(trigger, SessionStateChangeTrigger):
        _add(node, "StateChange", trigger.state_change)
    if isinstance(trigger, EventTrigger):
        _write_event(node, trigger)
    if isinstance(trigger, OtherTrigger):
        _add_raw(node, trigger.xml)


def _write_event(node: ElementTree.Element, trigger: EventTrigger) -> None:
    _add_duration(node, "PeriodOfOccurrence", trigger.period_of_occurrence)
    if trigger.number_of_occurrences != 1:
        _add(node, "NumberOfOccurrences", trigger.number_of_occurrences)
    _add(node, "MatchingElement", trigger.matching_element)
    if trigger.value_queries:
        queries = ElementTree.SubElement(node, "ValueQueries")
        for name, query in sorted(trigger.value_queries.items()):
            ElementTree.SubElement(queries, "Value", {"name": name}).text = query


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip


def _write_names(
    parent: ElementTree.Element, tag: str, names: frozenset[str], order: tuple[str, ...]
) -> None:
    node = ElementTree.SubElement(parent, tag)
    for name in order:
        if name in names:
            ElementTree.SubElement(node, name)


def _write_schedule(node: ElementTree.Element, schedule: Schedule) -> None:
    if isinstance(schedule, ByDay):
        _add(ElementTree.SubElement(node, "ScheduleByDay"), "DaysInterval", schedule.days_interval)
    elif isinstance(schedule, ByWeek):
        week = ElementTree.SubElement(node, "ScheduleByWeek")
        _add(week, "WeeksInterval", schedule.weeks_interval)
        _write_names(week, "DaysOfWeek", schedule.days_of_week, _DAYS)
    elif isinstance(schedule, ByMonth):
        month = ElementTree.SubElement(node, "ScheduleByMonth")
        days = ElementTree.SubElement(month, "DaysOfMonth")
        for day in sorted(schedule.days_of_month, key=lambda one: int(one) if one.isdigit() else 99):
            _add(days, "Day", day)
        _write_names(month, "Months", schedule.months or frozenset(_MONTHS), _MONTHS)
    else:
        weekday = ElementTree.SubElement(node, "ScheduleByMonthDayOfWeek")
        if schedule.weeks:
            weeks = ElementTree.SubElement(weekday, "Weeks")
            for week_number in sorted(schedule.weeks):
                _add(weeks, "Week", week_number)
        _write_names(weekday, "DaysOfWeek", schedule.days_of_week, _DAYS)
        _write_names(weekday, "Months", schedule.months or frozenset(_MONTHS), _MONTHS)
