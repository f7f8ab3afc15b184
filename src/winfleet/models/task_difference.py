"""Where a task on a box is not as declared, field by field, and what must be written to make it so.

Compared is meaning (research: windows.md 1.2): accounts by SID, durations in seconds, days and months as
sets, paths without case and quotes, times as instants when both name a zone. Only declared fields are
compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import Any

from winfleet.models.account import Accounts
from winfleet.models.answer import Difference
from winfleet.models.duration import spoken
from winfleet.models.file import normal_path
from winfleet.models.task import Action, Exec, Principal, Settings, Task
from winfleet.models.task_schema import SERVICE_SIDS, SETTINGS
from winfleet.models.task_trigger import (
    ByDay,
    ByMonth,
    ByMonthDayOfWeek,
    ByWeek,
    LogonTrigger,
    OtherTrigger,
    SessionStateChangeTrigger,
    Trigger,
)

_REGISTRATION = (
    "description",
    "author",
    "source",
    "version",
    "date",
    "uri",
    "documentation",
    "security_descriptor",
    "data",
)
_KINDS = {name: kind for name, _, kind, _ in SETTINGS}
_PATH_FIELDS = frozenset({"command", "working_directory"})
_MOMENT_FIELDS = frozenset({"start_boundary", "end_boundary", "date"})
_ZERO_IS_ABSENT = frozenset({"delay", "random_delay", "period_of_occurrence"})


def task_differences(found: Task | None, wanted: Task, accounts: Accounts) -> list[Difference]:
    """Every declared field that differs, by name ("settings.priority",
    "triggers[watchdog].repetition.interval").

    Args: found (observed, defaults filled; None: no such task), wanted (declared), accounts (SIDs of all
    names in both).
    """
    result: list[Difference] = []
    for name in _REGISTRATION:
        if getattr(wanted, name) is not None:
            _compare(
                result, name, None if found is None else getattr(found, name), getattr(wanted, name), accounts
            )
    for part, before, after in (
        ("principal", None if found is None else found.principal, wanted.principal),
        ("settings", None if found is None else found.settings, wanted.settings),
    ):
        for one in dataclasses.fields(after):
            value = getattr(after, one.name)
            if value is not None and one.name != "id":
                _compare(
                    result,
                    f"{part}.{one.name}",
                    None if before is None else getattr(before, one.name),
                    value,
                    accounts,
                )
    if found is not None and wanted.principal.user is not None and found.principal.group is not None:
        result.append(Difference("principal.group", found.principal.group, None))
    if found is not None and wanted.principal.group is not None and found.principal.user is not None:
        result.append(Difference("principal.user", found.principal.user, None))
    if wanted.triggers is not None:
        result += _trigger_differences((found.triggers if found else None) or (), wanted.triggers, accounts)
    if wanted.actions is not None:
        result += _action_differences((found.actions if found else None) or (), wanted.actions, accounts)
    return result


def merged_task(found: Task | None, wanted: Task, accounts: Accounts) -> Task:
    """The task to register: what is declared, and whatever else is there already; accounts written as
    SIDs."""
    base = found or Task(wanted.path)
    changes: dict[str, Any] = {
        name: getattr(wanted, name) for name in _REGISTRATION if getattr(wanted, name) is not None
    }
    principal = _merged_principal(base.principal, wanted.principal)
    triggers = wanted.triggers if wanted.triggers is not None else base.triggers
    changes["principal"] = dataclasses.replace(
        principal,
        user=_sid_or_name(principal.user, accounts),
        group=_sid_or_name(principal.group, accounts),
    )
    if changes["principal"].user in SERVICE_SIDS:
        changes["principal"] = dataclasses.replace(changes["principal"], logon_type=None)
    changes["settings"] = Settings(
        **{
            one.name: getattr(
                base.settings if getattr(wanted.settings, one.name) is None else wanted.settings, one.name
            )
            for one in dataclasses.fields(Settings)
        }
    )
    changes["triggers"] = tuple(_with_sid(trigger, accounts) for trigger in triggers or ())
    changes["actions"] = wanted.actions if wanted.actions is not None else base.actions
    return dataclasses.replace(base, path=wanted.path, **changes)


def needs_restart(differences: Sequence[Difference]) -> list[str]:
    """The changed fields that a running instance does not notice: it goes on as it was started."""
    parts = ("actions", "principal", "settings.priority", "settings.execution_time_limit")
    return [one.field for one in differences if one.field.startswith(parts)]


def _merged_principal(base: Principal, wanted: Principal) -> Principal:
    values = {
        one.name: getattr(wanted, one.name)
        if getattr(wanted, one.name) is not None
        else getattr(base, one.name)
        for one in dataclasses.fields(Principal)
    }
    if wanted.user is not None:
        values["group"] = None
    if wanted.group is not None:
        values["user"] = values["logon_type"] = None
    return Principal(**values)


def _sid_or_name(name: str | None, accounts: Accounts) -> str | None:
    return None if name is None else accounts.sid(name) or name


def _with_sid(trigger: Trigger, accounts: Accounts) -> Trigger:
    if isinstance(trigger, LogonTrigger | SessionStateChangeTrigger) and trigger.user is not None:
        return dataclasses.replace(trigger, user=_sid_or_name(trigger.user, accounts))
    return trigger


# Values


def _compare(result: list[Difference], field: str, found: Any, wanted: Any, accounts: Accounts) -> None:
    name = field.rpartition(".")[2]
    if name in _MOMENT_FIELDS and found is not None and wanted is not None and _same_moment(found, wanted):
        return
    before, after = _normal(name, found, accounts), _normal(name, wanted, accounts)
    if before != after:
        result.append(Difference(field, _shown(name, found, accounts), _shown(name, wanted, accounts)))


def _normal(name: str, value: Any, accounts: Accounts) -> Hashable:
    """What is compared for a field of this name."""
    if name in _ZERO_IS_ABSENT and value == 0:
        return None
    if isinstance(value, str):
        text = value.replace("\r\n", "\n").strip()
        if name in _PATH_FIELDS:
            return normal_path(text.strip('"'))
        if name in {"user", "group"}:
            return accounts.sid(text) or text.casefold()
        return text or None
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    if isinstance(value, bool):
        # True would equal 1, and a number is never meant where a switch is.
        return ("switch", value)
    return value  # type: ignore[no-any-return]


def _shown(name: str, value: Any, accounts: Accounts) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and (
        _KINDS.get(name) == "duration"
        or name in _ZERO_IS_ABSENT
        or name in {"interval", "duration", "execution_time_limit"}
    ):
        return spoken(value)
    if isinstance(value, frozenset):
        return ", ".join(sorted(value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in sorted(value.items()))
    if name in {"user", "group"}:
        sid = accounts.sid(value)
        return value if sid is None or sid == value else f"{value} ({sid})"
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


# Triggers and actions


def _trigger_fields(trigger: Trigger) -> dict[str, Any]:
    fields = {one.name: getattr(trigger, one.name) for one in dataclasses.fields(trigger)}
    for name in ("id", "any_user", "schedule", "repetition"):
        fields.pop(name, None)
    repetition = trigger.repetition
    fields["repetition.interval"] = repetition.interval if repetition else None
    fields["repetition.duration"] = repetition.duration if repetition else None
    fields["repetition.stop_at_duration_end"] = repetition.stop_at_duration_end if repetition else None
    if isinstance(trigger, LogonTrigger):
        fields["user"] = trigger.user or "any user"
    schedule = getattr(trigger, "schedule", None)
    if isinstance(schedule, ByDay | ByWeek | ByMonth | ByMonthDayOfWeek):
        fields["schedule"] = type(schedule).__name__
        for one in dataclasses.fields(schedule):
            fields[f"schedule.{one.name}"] = getattr(schedule, one.name)
    return fields


def _kind(trigger: Trigger) -> str:
    return trigger.name if isinstance(trigger, OtherTrigger) else trigger.kind


def _paired(
    found: Sequence[Trigger], wanted: Sequence[Trigger]
) -> list[tuple[Trigger | None, Trigger | None]]:
    """Declared with observed triggers: by id, then by kind in order; the rest stands alone."""
    left = list(found)
    pairs: dict[int, Trigger | None] = {}
    for by_id in (True, False):
        for index, trigger in enumerate(wanted):
            if pairs.get(index) is not None:
                continue
            match = next(
                (
                    one
                    for one in left
                    if _kind(one) == _kind(trigger)
                    and ((one.id == trigger.id and one.id is not None) or not by_id)
                ),
                None,
            )
            pairs[index] = match
            if match is not None:
                left = [one for one in left if one is not match]
    return [
        *((pairs[index], trigger) for index, trigger in enumerate(wanted)),
        *((one, None) for one in left),
    ]


def _trigger_differences(
    found: Sequence[Trigger], wanted: Sequence[Trigger], accounts: Accounts
) -> list[Difference]:
    result: list[Difference] = []
    used: dict[str, int] = {}
    for before, after in _paired(found, wanted):
        known = after or before
        assert known is not None
        label = known.id or _kind(known)
        used[label] = used.get(label, 0) + 1
        field = f"triggers[{label if used[label] == 1 else f'{label} {used[label]}'}]"
        if after is None:
            result.append(Difference(field, _summary(known, accounts), None))
            continue
        if before is None:
            result.append(Difference(field, None, _summary(known, accounts)))
            continue
        old, new = _trigger_fields(before), _trigger_fields(after)
        for name in {**new, **old}:
            _compare(result, f"{field}.{name}", old.get(name), new.get(name), accounts)
        if after.id is not None and before.id != after.id:
            result.append(Difference(f"{field}.id", before.id, after.id))
    return result


def _summary(trigger: Trigger, accounts: Accounts) -> str:
    parts = [_kind(trigger)]
    for name, value in _trigger_fields(trigger).items():
        shown = _shown(name.rpartition(".")[2], value, accounts)
        if shown not in (None, "", "false") and (name, shown) != ("enabled", "true") and name != "name":
            parts.append(f"{name}={shown}")
    return " ".join(parts)


def _action_differences(
    found: Sequence[Action], wanted: Sequence[Action], accounts: Accounts
) -> list[Difference]:
    result: list[Difference] = []
    for index in range(max(len(found), len(wanted))):
        before = found[index] if index < len(found) else None
        after = wanted[index] if index < len(wanted) else None
        field = f"actions[{index}]"
        if before is None or after is None or type(before) is not type(after):
            result.append(Difference(field, _action_text(before), _action_text(after)))
            continue
        for one in dataclasses.fields(after):
            if one.name != "id" or after.id is not None:
                _compare(
                    result,
                    f"{field}.{one.name}",
                    getattr(before, one.name),
                    getattr(after, one.name),
                    accounts,
                )
    return result


def _action_text(action: Action | None) -> str | None:
    if action is None:
        return None
    if isinstance(action, Exec):
        place = f" in {action.working_directory}" if action.working_directory else ""
        return f"{action.command}{' ' + action.arguments if action.arguments else ''}{place}"
    return f"{action.name} {action.xml}"
