"""When two values of a task's field mean the same, and how they are shown.

Accounts by SID, durations in seconds, sets without order, paths without case and quotes, GUIDs without case,
times as instants when both name a zone (docs/facts/windows.md#stored-shape-of-a-task).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import UTC, datetime
from typing import Any

from winfleet.account.model import AccountSids
from winfleet.answer import Difference
from winfleet.path import normal_path
from winfleet.task.duration import spoken
from winfleet.task.schema import SETTINGS

_PATH_FIELDS = frozenset({"command", "working_directory"})
_CASELESS_FIELDS = frozenset({"class_id", "network_id", "state_name"})
_ACCOUNT_FIELDS = frozenset({"user", "group"})
_MOMENT_FIELDS = frozenset({"start_boundary", "end_boundary", "date"})
_ZERO_IS_ABSENT = frozenset({"delay", "random_delay", "period_of_occurrence", "data_offset"})
_DURATIONS = frozenset(
    {name for name, _, kind, _ in SETTINGS if kind == "duration"}
    | {"delay", "random_delay", "period_of_occurrence", "interval", "duration", "execution_time_limit"}
)


def compare(result: list[Difference], field: str, found: Any, wanted: Any, accounts: AccountSids) -> None:
    """Append a difference of this field when the values do not mean the same."""
    if found == wanted and type(found) is type(wanted):
        return
    name = field.rpartition(".")[2]
    if name in _MOMENT_FIELDS and found and wanted and _same_moment(found, wanted):
        return
    if normal(name, found, accounts) != normal(name, wanted, accounts):
        result.append(Difference(field, shown(name, found, accounts), shown(name, wanted, accounts)))


def normal(name: str, value: Any, accounts: AccountSids) -> Hashable:
    """What is compared for a field of this name."""
    if isinstance(value, bool):
        # True would equal 1, and a number is never meant where a switch is.
        return ("switch", value)
    if isinstance(value, str):
        text = value.replace("\r\n", "\n").strip()
        if name in _PATH_FIELDS:
            return normal_path(text.strip('"'))
        if name in _ACCOUNT_FIELDS:
            return accounts.sid(text) or text.casefold()
        return (text.casefold() if name in _CASELESS_FIELDS else text) or None
    if value == 0 and name in _ZERO_IS_ABSENT:
        return None
    if isinstance(value, Mapping):
        return tuple(sorted(value.items())) or None
    if isinstance(value, frozenset | tuple):
        return value or None
    return value  # type: ignore[no-any-return]


def shown(name: str, value: Any, accounts: AccountSids) -> str | None:
    """The value for people; None for nothing."""
    if value is None or value == "" or value == frozenset():
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and name in _DURATIONS:
        return spoken(value)
    if isinstance(value, frozenset):
        return ", ".join(sorted(value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={item}" for key, item in sorted(value.items()))
    if isinstance(value, tuple):
        return ", ".join(": ".join(item) if isinstance(item, tuple) else str(item) for item in value)
    if name in _ACCOUNT_FIELDS:
        sid = accounts.sid(value)
        return str(value) if sid is None or sid == value else f"{value} ({sid})"
    return str(value)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def _same_moment(one: str, other: str) -> bool:
    """Instants when both name a zone, else the time on the clock: DST or a dropped zone is no drift (W01)."""
    first, second = _moment(one), _moment(other)
    if first is None or second is None:
        return one.strip() == other.strip()
    if first.tzinfo is not None and second.tzinfo is not None:
        return first.astimezone(UTC) == second.astimezone(UTC)
    return first.replace(tzinfo=None) == second.replace(tzinfo=None)
