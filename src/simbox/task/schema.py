"""The task schema as data: which element may hold what, defaults, and the order and omissions of the
stored shape.

Sources: MS-TSCH 2.5 and the TaskSchd pages (schema, defaults); docs/facts/windows.md#stored-shape-of-a-task.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"
VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")

Check = Callable[[str], bool]

_DURATION = re.compile(
    r"P(?:(?P<y>\d+)Y)?(?:(?P<mo>\d+)M)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
DAY_S = 86400


def seconds(text: str) -> float | None:
    """Length of an xs:duration in seconds (a month counts 30 days, a year 365), or None when it is none."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()) or text.strip().endswith("T"):
        return None
    part = {name: float(value or 0) for name, value in match.groupdict().items()}
    days = part["y"] * 365 + part["mo"] * 30 + part["d"]
    return days * DAY_S + part["h"] * 3600 + part["m"] * 60 + part["s"]


def _duration(low_s: float = 0, high_s: float = 99999 * DAY_S) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        length = seconds(text)
        return length is not None and low_s <= length <= high_s

    return check


def _number(low: int, high: int) -> Callable[[str], bool]:
    return lambda text: bool(re.fullmatch(r"\d+", text.strip())) and low <= int(text) <= high


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda text: text.strip() in words


def is_bool(text: str) -> bool:
    """True for the spellings that the service takes; it stores true and false."""
    return text.strip().lower() in ("true", "false", "1", "0")


def is_empty(text: str) -> bool:
    """No text: the element's name says it all."""
    return not text.strip()


def is_filled(text: str) -> bool:
    """Any text but none."""
    return bool(text.strip())


def _matches(pattern: str) -> Check:
    return lambda text: bool(re.fullmatch(pattern, text.strip()))


@dataclass(frozen=True)
class Many:
    """Content of one element, several times: its name, what it holds, and how often it may be there."""

    name: str
    content: object
    most: int


def is_text(text: str) -> bool:
    """Any text."""
    return True


def is_date(text: str) -> bool:
    """An xs:dateTime."""
    return bool(_DATE.fullmatch(text.strip()))


RESTART_RANGE = _duration(60, 31 * DAY_S)

_REPETITION: dict[str, Check] = {
    "Interval": _duration(60, 31 * DAY_S),
    "Duration": _duration(60, 9999 * DAY_S),
    "StopAtDurationEnd": is_bool,
}
_BASE: dict[str, object] = {
    "Repetition": _REPETITION,
    "StartBoundary": is_date,
    "EndBoundary": is_date,
    "ExecutionTimeLimit": _duration(),
    "Enabled": is_bool,
}
_NAMES_OF_DAYS = dict.fromkeys(
    ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"), is_empty
)
_NAMES_OF_MONTHS = dict.fromkeys(
    (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
        "November", "December",
    ),
    is_empty,
)  # fmt: skip
_HEX = _matches(r"([0-9A-Fa-f]{2})+")
_GUID = _matches(r"\{[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}")
_DAY_NUMBER = _matches(r"[1-9]|[12]\d|3[01]|Last")
# "any": content that this page does not look into.
TRIGGERS: dict[str, dict[str, object]] = {
    "BootTrigger": {**_BASE, "Delay": _duration()},
    "LogonTrigger": {**_BASE, "UserId": is_text, "Delay": _duration()},
    "TimeTrigger": {**_BASE, "RandomDelay": _duration()},
    "CalendarTrigger": {
        **_BASE,
        "RandomDelay": _duration(),
        "ScheduleByDay": {"DaysInterval": _number(1, 365)},
        "ScheduleByWeek": {"WeeksInterval": _number(1, 52), "DaysOfWeek": _NAMES_OF_DAYS},
        "ScheduleByMonth": {"DaysOfMonth": Many("Day", _DAY_NUMBER, 32), "Months": _NAMES_OF_MONTHS},
        "ScheduleByMonthDayOfWeek": {
            "Weeks": Many("Week", _one_of("1", "2", "3", "4", "Last"), 5),
            "DaysOfWeek": _NAMES_OF_DAYS,
            "Months": _NAMES_OF_MONTHS,
        },
    },
    "EventTrigger": {
        **_BASE,
        "Subscription": is_filled,
        "Delay": _duration(),
        "PeriodOfOccurrence": _duration(),
        "NumberOfOccurrences": _number(1, 32),
        "MatchingElement": is_filled,
        "ValueQueries": Many("Value", is_filled, 32),
    },
    "IdleTrigger": {**_BASE},
    "RegistrationTrigger": {**_BASE, "Delay": _duration()},
    "SessionStateChangeTrigger": {
        **_BASE,
        "StateChange": _one_of(
            "ConsoleConnect", "ConsoleDisconnect", "RemoteConnect", "RemoteDisconnect", "SessionLock",
            "SessionUnlock"
        ),
        "UserId": is_text,
        "Delay": _duration(),
    },
    "WnfStateChangeTrigger": {**_BASE, "StateName": _HEX, "Data": _HEX, "DataOffset": _number(0, 0xFFFFFFFF),
                              "Delay": _duration()},
}  # fmt: skip
SCHEDULES = ("ScheduleByDay", "ScheduleByWeek", "ScheduleByMonth", "ScheduleByMonthDayOfWeek")

REGISTRATION: dict[str, object] = {
    "Date": is_date,
    "Author": is_text,
    "Version": is_text,
    "Description": is_text,
    "Documentation": is_text,
    "SecurityDescriptor": is_text,
    "Source": is_text,
    "URI": is_text,
}
PRINCIPAL: dict[str, object] = {
    "UserId": is_text,
    "LogonType": _one_of(
        "S4U", "Password", "InteractiveToken", "InteractiveTokenOrPassword", "Group", "None"
    ),
    "GroupId": is_text,
    "DisplayName": is_text,
    "RunLevel": _one_of("LeastPrivilege", "HighestAvailable"),
    "ProcessTokenSidType": _one_of("None", "Unrestricted"),
    "RequiredPrivileges": Many("Privilege", _matches(r"Se[A-Za-z]+Privilege"), 64),
}
_IDLE: dict[str, Check] = {
    "Duration": _duration(60),
    "WaitTimeout": _duration(0),
    "StopOnIdleEnd": is_bool,
    "RestartOnIdle": is_bool,
}
# In the order in which the stored shape lists them.
SETTINGS: dict[str, object] = {
    "AllowStartOnDemand": is_bool,
    "DisallowStartIfOnBatteries": is_bool,
    "StopIfGoingOnBatteries": is_bool,
    "AllowHardTerminate": is_bool,
    "ExecutionTimeLimit": _duration(),
    "Enabled": is_bool,
    "Hidden": is_bool,
    "MultipleInstancesPolicy": _one_of("Parallel", "Queue", "IgnoreNew", "StopExisting"),
    "Priority": _number(0, 10),
    # 255 by schema, but 999 is common and the service takes it
    "RestartOnFailure": {"Count": _number(1, 999), "Interval": RESTART_RANGE},
    "StartWhenAvailable": is_bool,
    "RunOnlyIfNetworkAvailable": is_bool,
    "NetworkProfileName": is_text,
    "NetworkSettings": {"Name": is_filled, "Id": _GUID},
    "RunOnlyIfIdle": is_bool,
    "WakeToRun": is_bool,
    "DeleteExpiredTaskAfter": _duration(),
    "IdleSettings": _IDLE,
    "DisallowStartOnRemoteAppSession": is_bool,
    "UseUnifiedSchedulingEngine": is_bool,
    "MaintenanceSettings": {
        "Period": _duration(DAY_S),
        "Deadline": _duration(DAY_S),
        "Exclusive": is_bool,
    },
    "Volatile": is_bool,
}
# Equal to these, a field is left out of the stored shape. Not here, so always kept:
# MultipleInstancesPolicy and
# the two deprecated idle durations.
SETTING_DEFAULTS = {
    "AllowStartOnDemand": "true",
    "DisallowStartIfOnBatteries": "true",
    "StopIfGoingOnBatteries": "true",
    "AllowHardTerminate": "true",
    "ExecutionTimeLimit": "PT72H",
    "Enabled": "true",
    "Hidden": "false",
    "Priority": "7",
    "StartWhenAvailable": "false",
    "RunOnlyIfNetworkAvailable": "false",
    "RunOnlyIfIdle": "false",
    "WakeToRun": "false",
    "DisallowStartOnRemoteAppSession": "false",
    "UseUnifiedSchedulingEngine": "false",
    "Volatile": "false",
    "StopOnIdleEnd": "true",
    "RestartOnIdle": "false",
}
BOOLEANS = frozenset({name for name, spec in SETTINGS.items() if spec is is_bool}
                     | {"StopOnIdleEnd", "RestartOnIdle", "StopAtDurationEnd", "Exclusive"})  # fmt: skip
TRIGGER_DEFAULTS = {"Enabled": "true", "StopAtDurationEnd": "false"}
ALWAYS_STORED = {"MultipleInstancesPolicy": "IgnoreNew"}
IDLE_ALWAYS_STORED = {"Duration": "PT10M", "WaitTimeout": "PT1H"}
ACTIONS: dict[str, dict[str, object]] = {
    "Exec": {"Command": is_text, "Arguments": is_text, "WorkingDirectory": is_text},
    "ComHandler": {"ClassId": _GUID, "Data": "any"},
    "SendEmail": {
        **dict.fromkeys(("Subject", "To", "Cc", "Bcc", "ReplyTo", "From", "Body"), is_text),
        "Server": is_filled,
        "HeaderFields": Many("HeaderField", {"Name": is_filled, "Value": is_text}, 32),
        "Attachments": Many("File", is_filled, 8),
    },
    "ShowMessage": {"Title": is_text, "Body": is_filled},
}
REQUIRED = {
    "TimeTrigger": ("StartBoundary",),
    "CalendarTrigger": ("StartBoundary",),
    "EventTrigger": ("Subscription",),
    "SessionStateChangeTrigger": ("StateChange",),
    "WnfStateChangeTrigger": ("StateName",),
    "Repetition": ("Interval",),
    "ScheduleByMonthDayOfWeek": ("DaysOfWeek",),
    "RestartOnFailure": ("Interval", "Count"),
    "MaintenanceSettings": ("Period",),
    "Exec": ("Command",),
    "ComHandler": ("ClassId",),
    "SendEmail": ("Server",),
    "HeaderField": ("Name", "Value"),
    "ShowMessage": ("Body",),
}
ID = _matches(r"[A-Za-z_][\w.\-]*")
MAXIMUM_ACTIONS = 32
MAXIMUM_TRIGGERS = 48
