"""Where a task on a box is not as declared, field by field. Only declared fields are compared, by meaning."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from winfleet.account.model import AccountSids
from winfleet.answer import Difference
from winfleet.task.action import Action, Exec, OtherAction, action_kind
from winfleet.task.compare import compare, shown
from winfleet.task.model import Settings, Task
from winfleet.task.render import version_number
from winfleet.task.schema import SETTINGS
from winfleet.task.trigger import (
    ByDay,
    ByMonth,
    ByMonthDayOfWeek,
    ByWeek,
    LogonTrigger,
    OtherTrigger,
    Trigger,
)

REGISTRATION_FIELDS = (
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
DEFAULTS = {name: default for name, _, _, default in SETTINGS}
_PRINCIPAL_FIELDS = (
    "user",
    "group",
    "logon_type",
    "run_level",
    "display_name",
    "process_token_sid_type",
    "required_privileges",
)


def task_differences(found: Task | None, wanted: Task, accounts: AccountSids) -> list[Difference]:
    """Every declared field that differs, by name ("settings.priority",
    "triggers[watchdog].repetition.interval").

    Args: found (observed, defaults filled; None: no such task), wanted (declared), accounts (SIDs of all
    names in both).
    """
    result: list[Difference] = []
    for name in REGISTRATION_FIELDS:
        value = getattr(wanted, name)
        if value is not None:
            compare(result, name, None if found is None else getattr(found, name), value, accounts)
    result += _version_difference(found, wanted)
    for name in _PRINCIPAL_FIELDS:
        value = getattr(wanted.principal, name)
        if value is not None:
            before = None if found is None else getattr(found.principal, name)
            compare(result, f"principal.{name}", before, value, accounts)
    if found is not None and wanted.principal.user is not None and found.principal.group is not None:
        result.append(Difference("principal.group", found.principal.group, None))
    if found is not None and wanted.principal.group is not None and found.principal.user is not None:
        result.append(Difference("principal.user", found.principal.user, None))
    result += _settings_differences(None if found is None else found.settings, wanted.settings, accounts)
    if wanted.triggers is not None:
        result += _trigger_differences((found.triggers if found else None) or (), wanted.triggers, accounts)
    if wanted.actions is not None:
        result += _action_differences((found.actions if found else None) or (), wanted.actions, accounts)
    return result


def needs_restart(differences: Sequence[Difference]) -> list[str]:
    """The changed fields that a running instance does not notice: it goes on as it was started."""
    parts = ("actions", "principal", "settings.priority", "settings.execution_time_limit")
    return [one.field for one in differences if one.field.startswith(parts)]


def _version_difference(found: Task | None, wanted: Task) -> Iterator[Difference]:
    """The schema version may only be too low: Windows raises it by itself."""
    if wanted.schema_version is None:
        return
    before = None if found is None else found.schema_version
    if before is None or version_number(before) < version_number(wanted.schema_version):
        yield Difference("schema_version", before, f"{wanted.schema_version} or later")


def _settings_differences(
    found: Settings | None, wanted: Settings, accounts: AccountSids
) -> list[Difference]:
    result: list[Difference] = []
    for name, default in DEFAULTS.items():
        value = default if name in wanted.absent else getattr(wanted, name)
        if name in wanted.absent:
            before = default if found is None else getattr(found, name)
        elif value is None:
            continue
        else:
            before = None if found is None else getattr(found, name)
        compare(result, f"settings.{name}", before, value, accounts)
    return result


# Triggers: by id, else by kind in order


def pair_triggers(
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


def _kind(trigger: Trigger) -> str:
    return trigger.name if isinstance(trigger, OtherTrigger) else trigger.kind


def _trigger_fields(trigger: Trigger) -> dict[str, Any]:
    fields = {one.name: getattr(trigger, one.name) for one in dataclasses.fields(trigger)}
    for name in ("id", "any_user", "schedule", "repetition", "foreign"):
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


def _trigger_differences(
    found: Sequence[Trigger], wanted: Sequence[Trigger], accounts: AccountSids
) -> list[Difference]:
    result: list[Difference] = []
    used: dict[str, int] = {}
    for before, after in pair_triggers(found, wanted):
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
            compare(result, f"{field}.{name}", old.get(name), new.get(name), accounts)
        if after.id is not None and before.id != after.id:
            result.append(Difference(f"{field}.id", before.id, after.id))
    return result


def _summary(trigger: Trigger, accounts: AccountSids) -> str:
    parts = [_kind(trigger)]
    for name, value in _trigger_fields(trigger).items():
        text = shown(name.rpartition(".")[2], value, accounts)
        if text not in (None, "", "false") and (name, text) != ("enabled", "true") and name != "name":
            parts.append(f"{name}={text}")
    return " ".join(parts)


# Actions: by place, for they run in that order


def _action_differences(
    found: Sequence[Action], wanted: Sequence[Action], accounts: AccountSids
) -> list[Difference]:
    result: list[Difference] = []
    for index in range(max(len(found), len(wanted))):
        before = found[index] if index < len(found) else None
        after = wanted[index] if index < len(wanted) else None
        field = f"actions[{index}]"
        if before is None or after is None or action_kind(before) != action_kind(after):
            result.append(Difference(field, _action_text(before), _action_text(after)))
            continue
        for one in dataclasses.fields(after):
            value = getattr(after, one.name)
            if one.name != "foreign" and (one.name != "id" or value is not None):
                compare(result, f"{field}.{one.name}", getattr(before, one.name), value, accounts)
    return result


def _action_text(action: Action | None) -> str | None:
    if action is None:
        return None
    if isinstance(action, Exec):
        place = f" in {action.working_directory}" if action.working_directory else ""
        return f"{action.command}{' ' + action.arguments if action.arguments else ''}{place}"
    if isinstance(action, OtherAction):
        return f"{action.name} {action.xml}"
    values = [getattr(action, one.name) for one in dataclasses.fields(action)]
    return " ".join([action_kind(action), *(str(value) for value in values if value)])
