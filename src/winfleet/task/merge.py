"""What must be written so that a task is as declared, and nothing that is not declared changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from winfleet.account.model import AccountSids
from winfleet.task.action import Action, Exec
from winfleet.task.difference import DEFAULTS, REGISTRATION_FIELDS, pair_triggers
from winfleet.task.model import Principal, Settings, Task
from winfleet.task.render import version_number
from winfleet.task.schema import SERVICE_SIDS
from winfleet.task.trigger import LogonTrigger, SessionStateChangeTrigger, Trigger


def merged_task(found: Task | None, wanted: Task, accounts: AccountSids) -> Task:
    """The task to register: what is declared, and whatever else is there already; accounts as SIDs."""
    base = found or Task(wanted.path)
    # An empty text says that there must be none: Windows is not given an empty element.
    changes: dict[str, Any] = {
        name: getattr(wanted, name) or None
        for name in REGISTRATION_FIELDS
        if getattr(wanted, name) is not None
    }
    changes["schema_version"] = _version(base.schema_version, wanted.schema_version)
    if "data" in changes:
        changes["foreign"] = tuple((place, xml) for place, xml in base.foreign if place != "Data")
    changes["principal"] = _principal(base.principal, wanted.principal, accounts)
    changes["settings"] = _settings(base.settings, wanted.settings)
    triggers = base.triggers or ()
    if wanted.triggers is not None:
        triggers = tuple(
            dataclasses.replace(after, foreign=before.foreign) if before is not None else after
            for before, after in pair_triggers(triggers, wanted.triggers)
            if after is not None
        )
    changes["triggers"] = tuple(_with_sid(trigger, accounts) for trigger in triggers)
    changes["actions"] = (
        base.actions if wanted.actions is None else _actions(base.actions or (), wanted.actions)
    )
    return dataclasses.replace(base, path=wanted.path, **changes)


def _version(found: str | None, wanted: str | None) -> str | None:
    known = [version for version in (found, wanted) if version]
    return max(known, key=version_number) if known else None


def _principal(base: Principal, wanted: Principal, accounts: AccountSids) -> Principal:
    values = {
        one.name: (getattr(wanted, one.name) or None)
        if getattr(wanted, one.name) is not None
        else getattr(base, one.name)
        for one in dataclasses.fields(Principal)
    }
    if wanted.user is not None:
        values["group"] = None
    if wanted.group is not None:
        values["user"] = values["logon_type"] = None
    values["user"] = _sid_or_name(values["user"], accounts)
    values["group"] = _sid_or_name(values["group"], accounts)
    if values["user"] in SERVICE_SIDS:
        values["logon_type"] = None
    return Principal(**values)


def _settings(base: Settings, wanted: Settings) -> Settings:
    values = {}
    for name in DEFAULTS:
        value = getattr(wanted, name)
        values[name] = getattr(base, name) if value is None else value
        if name in wanted.absent:
            values[name] = None
    return Settings(**values)


def _actions(found: Sequence[Action], wanted: Sequence[Action]) -> tuple[Action, ...]:
    """The wanted actions; elements that no schema has stay with the action in the same place."""
    result = []
    for index, action in enumerate(wanted):
        before = found[index] if index < len(found) else None
        if isinstance(action, Exec) and isinstance(before, Exec):
            action = dataclasses.replace(action, foreign=before.foreign)
        result.append(action)
    return tuple(result)


def _sid_or_name(name: str | None, accounts: AccountSids) -> str | None:
    return None if name is None else accounts.sid(name) or name


def _with_sid(trigger: Trigger, accounts: AccountSids) -> Trigger:
    if isinstance(trigger, LogonTrigger | SessionStateChangeTrigger) and trigger.user is not None:
        return dataclasses.replace(trigger, user=_sid_or_name(trigger.user, accounts))
    return trigger
