"""What the Task Scheduler objects to, in terms of what was declared.

COM tells a line and a column of the XML and an element, "(32,4):UserId:"; the XML that was sent tells whose
element that is (community.windows#633).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.parsers import expat

from winfleet.answer import BoxFault
from winfleet.task.action import TEXTS
from winfleet.task.schema import REGISTRATION, SETTINGS

_PLACE = re.compile(r"\((\d+),(\d+)\):(\w*):")
# The usual cause, by element.
_CAUSES = {
    "UserId": (
        "the account is unknown, or may not be used with this logon type or trigger; S4U and Password need"
        " the right to log on as a batch job"
    ),
    "GroupId": "the group is unknown",
    "LogonType": "not allowed for this account; S4U and Password need the right to log on as a batch job",
    "RunLevel": "LeastPrivilege or HighestAvailable",
    "Duration": "a duration that is too long or too short: 'for ever' is written by leaving it out",
    "Interval": "PT1M to P31D",
    "StartBoundary": "a date and time such as 2020-01-01T00:00:00; time and calendar triggers need one",
    "EndBoundary": (
        "a date and time such as 2030-01-01T00:00:00; delete_expired_task_after needs a trigger that has one"
    ),
    "Delay": "seconds or ISO 8601 such as PT30S",
    "RandomDelay": "seconds or ISO 8601 such as PT30S",
    "ExecutionTimeLimit": "seconds or ISO 8601 such as PT72H; PT0S for no limit",
    "Priority": "0 to 10",
    "Count": "1 to 255",
    "Command": "the command is empty",
    "Subscription": "the query XML of the event trigger is wrong, or its log does not exist",
    "DeleteExpiredTaskAfter": "needs a trigger with an end_boundary",
    "Deadline": "must be longer than maintenance_period",
    "Period": "P1D or more",
    "Actions": "the principal that the actions name is not there",
}
_HRESULTS = {
    0x80070005: (
        "access denied: HighestAvailable, S4U, boot triggers and logon triggers of any user need an"
        " administrator's elevated session"
    ),
    0x80070002: "no such task or folder",
    0x80070003: "no such task folder",
    0x80070032: "this Windows does not do that action any more (mail, message)",
    0x80070057: "an argument is wrong; a task that stores a password needs it at each registration",
    0x8007007B: "the task's name or a folder's has a character that is not allowed",
    0x8007052E: "the user name or password is wrong",
    0x80070534: "no account with that name",
    0x80070569: "the account may not log on as a batch job",
    0x8007056B: "the account's password has expired",
    0x800706B5: "the Task Scheduler service does not answer",
    0x80041310: "the account or its password is not known",
    0x80041314: "the name, or a folder's, is in use by another object",
    0x80041316: "an element that is not expected there: this Windows may be too old for it",
    0x80041317: "an element or attribute from an unexpected namespace",
    0x80041318: "a value that is incorrectly formatted or out of range",
    0x80041319: "a required element or attribute is missing",
    0x8004131A: "the XML is malformed",
    0x80041326: "the task is disabled",
    0x8004131D: "the XML has more of something than the scheduler takes",
    0x80041321: "the Task Scheduler service is not running",
}


def explained(fault: BoxFault, xml: str = "") -> str:
    """What the scheduler said, with the field that it means and the usual cause.

    Args: fault (of Test-BoxTask or Register-BoxTask), xml (as it was sent).
    """
    hints = []
    place = _PLACE.search(fault.message)
    if place is not None and place[3]:
        element = place[3]
        field = _field(xml, int(place[1]), element) if xml else None
        cause = _CAUSES.get(element)
        hints += [": ".join(part for part in (field or _anywhere(element), cause) if part)]
    if fault.hresult is not None:
        hints.append(_HRESULTS.get(int(fault.hresult, 16) & 0xFFFFFFFF, ""))
    said = " ".join(fault.message.split())
    code = f" ({fault.hresult})" if fault.hresult and fault.hresult.lower() not in said.lower() else ""
    return "; ".join([said + code, *(hint for hint in hints if hint)])


def _field(xml: str, line: int, element: str) -> str | None:
    """The declared field of that element on that line, or of the only one of that name."""
    named = [(at, field) for at, tag, field in _fields(xml) if tag == element]
    here = [field for at, field in named if at == line]
    return here[0] if here else named[0][1] if len(named) == 1 else None


def _anywhere(element: str) -> str:
    """Field names that an element may stand for when its line does not tell."""
    fields = [f"settings.{name}" for name, place, _, _ in SETTINGS if place.rpartition("/")[2] == element]
    fields += [name for name, tag in REGISTRATION if tag == element]
    fields += [f"actions.{name}" for texts in TEXTS.values() for name, tag in texts if tag == element]
    fields += [f"principal.{name}" for tag, name in _PRINCIPAL.items() if tag == element]
    fields += [f"triggers.{name}" for tag, name in _TRIGGER.items() if tag == element]
    return " or ".join(dict.fromkeys(fields))


_PRINCIPAL = {
    "UserId": "user",
    "GroupId": "group",
    "LogonType": "logon_type",
    "RunLevel": "run_level",
    "DisplayName": "display_name",
    "ProcessTokenSidType": "process_token_sid_type",
    "RequiredPrivileges": "required_privileges",
    "Privilege": "required_privileges",
}
_TRIGGER = {
    "Enabled": "enabled",
    "StartBoundary": "start_boundary",
    "EndBoundary": "end_boundary",
    "ExecutionTimeLimit": "execution_time_limit",
    "Repetition": "repetition",
    "Interval": "repetition.interval",
    "Duration": "repetition.duration",
    "StopAtDurationEnd": "repetition.stop_at_duration_end",
    "UserId": "user",
    "Delay": "delay",
    "RandomDelay": "random_delay",
    "Subscription": "subscription",
    "ValueQueries": "value_queries",
    "StateChange": "state_change",
    "StateName": "state_name",
    "DaysInterval": "schedule.days_interval",
    "WeeksInterval": "schedule.weeks_interval",
    "DaysOfWeek": "schedule.days_of_week",
    "Day": "schedule.days_of_month",
    "Months": "schedule.months",
    "Week": "schedule.weeks",
    "PeriodOfOccurrence": "period_of_occurrence",
    "NumberOfOccurrences": "number_of_occurrences",
    "MatchingElement": "matching_element",
}


def _fields(xml: str) -> Iterator[tuple[int, str, str | None]]:
    """Line, element and declared field of every element of a rendered task."""
    found: list[tuple[int, str, str | None]] = []
    path: list[str] = []
    label = ""
    seen: dict[str, int] = {}
    actions = -1

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal label, actions
        path.append(tag)
        if path[1:2] == ["Triggers"] and len(path) == 3:
            label = attributes.get("id") or tag
            seen[label] = seen.get(label, 0) + 1
            label = label if seen[label] == 1 else f"{label} {seen[label]}"
        if path[1:2] == ["Actions"] and len(path) == 3:
            actions += 1
        found.append((parser.CurrentLineNumber, tag, _name(path, label, actions)))

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: path.pop()
    try:
        parser.Parse(xml, True)
    except expat.ExpatError:
        return
    yield from found


def _name(path: list[str], trigger: str, action: int) -> str | None:
    section, tag, inner = path[1] if len(path) > 1 else "", path[-1], "/".join(path[2:])
    if section == "Settings":
        return next((f"settings.{name}" for name, place, _, _ in SETTINGS if place == inner), None)
    if section == "Principals":
        return f"principal.{_PRINCIPAL[tag]}" if tag in _PRINCIPAL else None
    if section == "RegistrationInfo":
        return next((name for name, known in REGISTRATION if known == tag), None)
    if section == "Triggers" and len(path) > 2:
        return f"triggers[{trigger}]{f'.{_TRIGGER[tag]}' if len(path) > 3 and tag in _TRIGGER else ''}"
    if section == "Actions" and len(path) > 2:
        names = {known: name for texts in TEXTS.values() for name, known in texts}
        return f"actions[{action}]{f'.{names[tag]}' if len(path) > 3 and tag in names else ''}"
    return None
