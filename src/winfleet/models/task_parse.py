"""Task XML read: both shapes that Windows gives.

Windows keeps a task in a "stored" shape that differs from what was submitted: other order, most defaults
dropped (research: windows.md 1.2). Reading fills the documented defaults, so both shapes of one task give
equal models."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

from winfleet.models.answer import ModelError
from winfleet.models.duration import seconds
from winfleet.models.task import Action, Exec, OtherAction, Principal, Settings, Task
from winfleet.models.task_schema import REGISTRATION, SETTINGS
from winfleet.models.task_trigger import (
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
)

_BASE_ELEMENTS = frozenset({"Enabled", "StartBoundary", "EndBoundary", "Repetition", "ExecutionTimeLimit"})


def parse_task(path: str, xml: str) -> Task:
    """The task of an XML in either shape, defaults filled in. Raises ModelError."""
    body = re.sub(r"^\s*<\?xml[^>]*\?>", "", xml.lstrip("\ufeff"))
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise ModelError(f"task {path}: no XML: {error}") from error
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
    if root.tag != "Task":
        raise ModelError(f"task {path}: the XML is no task but <{root.tag}>")
    registration: dict[str, Any] = {
        name: _text(root, f"RegistrationInfo/{tag}") for name, tag in REGISTRATION
    }
    triggers, actions = root.find("Triggers"), root.find("Actions")
    return Task(
        path=path,
        actions=tuple(_action(node) for node in actions) if actions is not None else (),
        triggers=tuple(_trigger(node) for node in triggers) if triggers is not None else (),
        principal=_principal(root.find("Principals/Principal")),
        settings=Settings(
            **{
                name: _value(root, f"Settings/{place}", kind, default)
                for name, place, kind, default in SETTINGS
            }
        ),
        data=_text(root, "Data"),
        schema_version=root.get("version"),
        **registration,
    )


def _text(node: ElementTree.Element, path: str) -> str | None:
    found = node.findtext(path)
    return None if found is None else found.strip()


def _value(node: ElementTree.Element, path: str, kind: str, default: Any) -> Any:
    found = _text(node, path)
    if not found:
        return default
    return _READERS[kind](found)


def _bool(value: str) -> bool:
    if value.lower() in {"true", "1"}:
        return True
    if value.lower() in {"false", "0"}:
        return False
    raise ModelError(f"neither true nor false: {value!r}")


def _int(value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise ModelError(f"no number: {value!r}") from error


_READERS: dict[str, Callable[[str], Any]] = {"text": str, "bool": _bool, "int": _int, "duration": seconds}


def _principal(node: ElementTree.Element | None) -> Principal:
    if node is None:
        return Principal(run_level="LeastPrivilege")
    privileges = node.find("RequiredPrivileges")
    return Principal(
        user=_text(node, "UserId"),
        group=_text(node, "GroupId"),
        logon_type=_text(node, "LogonType"),  # type: ignore[arg-type]
        run_level=_text(node, "RunLevel") or "LeastPrivilege",  # type: ignore[arg-type]
        id=node.get("id"),
        display_name=_text(node, "DisplayName"),
        process_token_sid_type=_text(node, "ProcessTokenSidType"),
        required_privileges=None
        if privileges is None
        else frozenset((one.text or "").strip() for one in privileges),
    )


def _base(node: ElementTree.Element) -> dict[str, Any]:
    repetition = node.find("Repetition")
    repeats = None
    if repetition is not None and _text(repetition, "Interval"):
        repeats = Repetition(
            _value(repetition, "Interval", "duration", None),
            _value(repetition, "Duration", "duration", None),
            _value(repetition, "StopAtDurationEnd", "bool", False),
        )
    return {
        "id": node.get("id"),
        "enabled": _value(node, "Enabled", "bool", True),
        "start_boundary": _text(node, "StartBoundary"),
        "end_boundary": _text(node, "EndBoundary"),
        "execution_time_limit": _value(node, "ExecutionTimeLimit", "duration", None),
        "repetition": repeats,
    }


def _trigger(node: ElementTree.Element) -> Trigger:
    base, kind = _base(node), node.tag
    delay = {"delay": _value(node, "Delay", "duration", None)}
    random_delay = {"random_delay": _value(node, "RandomDelay", "duration", None)}
    if kind == "LogonTrigger":
        user = _text(node, "UserId") or None
        return LogonTrigger(**base, **delay, user=user, any_user=user is None)
    if kind == "BootTrigger":
        return BootTrigger(**base, **delay)
    if kind == "TimeTrigger":
        return TimeTrigger(**base, **random_delay)
    if kind == "CalendarTrigger":
        return CalendarTrigger(**base, **random_delay, schedule=_schedule(node))
    if kind == "EventTrigger":
        return EventTrigger(
            **base,
            **delay,
            subscription=_text(node, "Subscription") or "",
            value_queries={
                one.get("name", ""): (one.text or "").strip() for one in node.findall("ValueQueries/Value")
            },
            period_of_occurrence=_value(node, "PeriodOfOccurrence", "duration", None),
            number_of_occurrences=_value(node, "NumberOfOccurrences", "int", 1),
            matching_element=_text(node, "MatchingElement"),
        )
    if kind == "IdleTrigger":
        return IdleTrigger(**base)
    if kind == "RegistrationTrigger":
        return RegistrationTrigger(**base, **delay)
    if kind == "SessionStateChangeTrigger":
        return SessionStateChangeTrigger(
            **base, **delay, user=_text(node, "UserId") or None, state_change=_text(node, "StateChange") or ""
        )
    return OtherTrigger(**base, name=kind, xml=_inner(node, _BASE_ELEMENTS))


def _names(node: ElementTree.Element, path: str) -> frozenset[str]:
    found = node.find(path)
    return frozenset() if found is None else frozenset(one.tag for one in found)


def _numbers(node: ElementTree.Element, path: str) -> frozenset[str]:
    return frozenset((one.text or "").strip() for one in node.findall(path))


def _schedule(node: ElementTree.Element) -> Schedule:
    day, week = node.find("ScheduleByDay"), node.find("ScheduleByWeek")
    month, weekday = node.find("ScheduleByMonth"), node.find("ScheduleByMonthDayOfWeek")
    if day is not None:
        return ByDay(_value(day, "DaysInterval", "int", 1))
    if week is not None:
        return ByWeek(_names(week, "DaysOfWeek"), _value(week, "WeeksInterval", "int", 1))
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


def _action(node: ElementTree.Element) -> Action:
    if node.tag == "Exec":
        return Exec(
            _text(node, "Command") or "",
            _text(node, "Arguments") or None,
            _text(node, "WorkingDirectory") or None,
            node.get("id"),
        )
    return OtherAction(node.tag, _inner(node, frozenset()), node.get("id"))


def _inner(node: ElementTree.Element, without: frozenset[str]) -> str:
    """The XML of the children, layout removed."""
    parts = []
    for child in node:
        if child.tag in without:
            continue
        for one in child.iter():
            one.tail = None
            if len(one) and one.text is not None and not one.text.strip():
                one.text = None
        parts.append(ElementTree.tostring(child, encoding="unicode"))
    return "".join(parts)
