"""From a declared task to what must be registered, with everything that can be wrong found beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyinfra.api.hiddenvalue import HiddenValue

from winfleet import diff
from winfleet.account.fact import Accounts
from winfleet.account.model import AccountSids, known_sid
from winfleet.answer import Difference
from winfleet.current import run
from winfleet.fact import prefetch, read
from winfleet.files.fact import Files
from winfleet.refusal import BoxError, FactUnreadable, Refused
from winfleet.session.fact import Session
from winfleet.task.check import elevation_reasons, password_faults, task_warnings
from winfleet.task.difference import needs_restart, task_differences
from winfleet.task.error import explained
from winfleet.task.fact import Tasks, Validation
from winfleet.task.finding import needed_paths, state_findings
from winfleet.task.merge import merged_task
from winfleet.task.model import Task
from winfleet.task.parse import parse_task
from winfleet.task.render import render_task
from winfleet.task.state import TaskState

Passwords = Mapping[str, HiddenValue]


@dataclass(frozen=True)
class Change:
    """One task to register.

    Attributes: task (as declared), written (as it will be), state (as it is), differences, xml, password,
    notes (what an administrator should know).
    """

    task: Task
    written: Task
    state: TaskState
    differences: list[Difference]
    xml: str
    password: HiddenValue | None


def task_states(paths: Sequence[str]) -> dict[str, TaskState]:
    """State by path in lower case. Raises FactUnreadable for one that the box could not read."""
    found = {path.lower(): state for path, state in read(Tasks, paths=list(paths)).items()}
    for path in paths:
        state = found.get(path.lower())
        if state is None:
            raise FactUnreadable(f"the box said nothing about the task {path}")
        if state.fault is not None:
            raise FactUnreadable(f"cannot read the task {path}: {state.fault}")
    return found


def observed_task(state: TaskState) -> Task | None:
    """The task as it is on the box; None: there is none. Raises ModelError."""
    return parse_task(state.path, state.xml) if state.exists and state.xml else None


def changes_of(tasks: Sequence[Task], states: Mapping[str, TaskState], passwords: Passwords) -> list[Change]:
    """What must be registered. Raises Refused when an account is unknown or a password is missing."""
    observed = {task.path: observed_task(states[task.path.lower()]) for task in tasks}
    accounts = _accounts(tasks, [task for task in observed.values() if task is not None], passwords)
    changes = []
    for task in tasks:
        found = observed[task.path]
        differences = task_differences(found, task, accounts)
        if differences or found is None:
            written = merged_task(found, task, accounts)
            password = _password(task, written, passwords, accounts)
            state = states[task.path.lower()]
            changes.append(Change(task, written, state, differences, render_task(written), password))
    return changes


def _accounts(tasks: Sequence[Task], observed: Sequence[Task], passwords: Passwords) -> AccountSids:
    """SIDs of all names, asked for in one call. Raises Refused when a declared one is unknown on the box."""
    names = {name for task in (*tasks, *observed) for name in task.accounts()} | set(passwords)
    asked = sorted(name for name in names if known_sid(name) is None)
    accounts = read(Accounts, names=asked) if asked else AccountSids({}, {})
    faults = []
    for task in tasks:
        unknown = [name for name in task.accounts() if accounts.sid(name) is None]
        if unknown:
            why = "; ".join(f"{name}: {accounts.faults.get(name.lower(), 'not known')}" for name in unknown)
            faults.append(
                f"task {task.path}: the box does not know the account ({why});"
                " name an account that exists, or a SID"
            )
    if faults:
        raise Refused("\n".join(faults))
    return accounts


def _password(task: Task, written: Task, passwords: Passwords, accounts: AccountSids) -> HiddenValue | None:
    """The password that Windows wants with this registration. Raises Refused when it is not there."""
    by_sid = {accounts.sid(name) or name.casefold(): secret for name, secret in passwords.items()}
    by_name = {name.casefold(): secret for name, secret in passwords.items()}
    names = [name for name in (task.principal.user, written.principal.user) if name]
    secret = next(
        (found for name in names if (found := by_sid.get(name) or by_name.get(name.casefold()))), None
    )
    known = [written.principal.user] if secret is not None and written.principal.user else []
    faults = list(password_faults(written.principal, known))
    if faults:
        raise Refused(f"task {task.path}: {'; '.join(faults)}")
    return secret if list(password_faults(written.principal, ())) else None


def validate(changes: Sequence[Change]) -> None:
    """Whether this session may register them, and what the box's scheduler says. Raises Refused with all."""
    calls = [Validation.call(change.task.path, change.xml, change.password) for change in changes]
    prefetch([Session.call(), *calls])
    rights = read(Session)
    faults = []
    for change in changes:
        reasons = [] if rights.elevated else elevation_reasons(change.written, rights.user_sid)
        if reasons:
            faults.append(
                f"task {change.task.path}: only an administrator's elevated session may register"
                f" {', '.join(reasons)}, and that of {rights.user_name} is not elevated; connect with an"
                " administrator, or declare less"
            )
            continue
        arguments = {"path": change.task.path, "xml": change.xml}
        if change.password is None:
            fault = read(Validation, **arguments)
        else:
            fault = read(Validation, **arguments, password=change.password)
        if fault is not None:
            said = explained(fault, change.xml)
            faults.append(f"the box's Task Scheduler refuses {change.task.path}: {said}")
    if faults:
        raise Refused("\n".join(faults))


def check_files(changes: Sequence[Change]) -> list[str]:
    """Notes on commands and folders that are not on the box.

    While planning an earlier operation may still bring them; in execution a task that points nowhere is an
    error (monster-echo/CortexTerminal2#1). Raises BoxError.
    """
    wanted = {change.task.path: needed_paths(change.written) for change in changes}
    paths = sorted({path for found in wanted.values() for path in found})
    if not paths:
        return []
    files = {path.casefold(): state for path, state in read(Files, paths=paths).items()}
    missing = []
    for task, found in wanted.items():
        for path in found:
            state = files.get(path.casefold())
            if state is not None and state.fault is None and state.kind == "absent":
                missing.append(f"task {task}: {path} is not on the box")
    if missing and run().is_executing:
        raise BoxError("\n".join([*missing, "put it there before the task is declared"]))
    return [f"{text} yet: an earlier operation has to put it there" for text in missing]


def announce(change: Change, notes: Sequence[str]) -> None:
    """Print the difference, what a running instance will not notice, and the notes."""
    verb = "modify" if change.state.exists else "create"
    lines = list(diff.field_lines(change.differences))
    summary = diff.named(change.differences)
    unnoticed = needs_restart(change.differences)
    if change.state.running and unnoticed:
        note = f"the running instance keeps its {', '.join(unnoticed)} until it is restarted"
        lines.append(note)
        summary += f" ({note})"
    prefix = f"task {change.task.path}: "
    notes = [*task_warnings(change.task), *(text for text in notes if text.startswith(prefix))]
    if change.state.exists:
        notes += [f"{prefix}{text}" for text in state_findings(change.written, change.state)]
    lines += [f"note: {text}" for text in notes]
    diff.show(f"Will {verb} task {diff.bold(change.task.path)}", lines, summary)


def check_written(tasks: Sequence[Task], passwords: Passwords) -> None:
    """Read the tasks again and compare. Raises BoxError when Windows kept something else."""
    states = task_states([task.path for task in tasks])
    for left in changes_of(tasks, states, passwords):
        what = "; ".join(f"{one.field}: {one.found} instead of {one.wanted}" for one in left.differences)
        raise BoxError(
            f"Windows did not keep the task {left.task.path} as written ({what or 'it is not there'})"
        )
