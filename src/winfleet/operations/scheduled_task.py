"""Scheduled tasks, compared by meaning and changed in place.

Example::

    scheduled_task.present(tasks=[Task("NInferServe", actions=(Exec("C:\\ninfer\\serve_task.bat"),), ...)])
    scheduled_task.running(path="NInferServe")
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from winfleet import diff
from winfleet.calls import Call
from winfleet.current import box, run
from winfleet.facts import prefetch, read
from winfleet.facts.scheduled_task import Tasks, Validation
from winfleet.facts.system import Accounts
from winfleet.models.account import Accounts as KnownAccounts
from winfleet.models.account import known_sid
from winfleet.models.answer import BoxFault, Difference
from winfleet.models.task import Task, TaskState, result_words, task_path
from winfleet.models.task_check import task_faults, task_warnings
from winfleet.models.task_difference import merged_task, needs_restart, task_differences
from winfleet.models.task_parse import parse_task
from winfleet.models.task_render import render_task
from winfleet.operations.waiting import say, step, until
from winfleet.refusal import BoxError, FactUnreadable, Refused, box_operation

_POLL_S = 0.5


@dataclass(frozen=True)
class _Change:
    """One task to register: the declared task, its state on the box, what differs, the XML to write."""

    task: Task
    state: TaskState
    differences: list[Difference]
    xml: str


@box_operation()
def present(tasks: Sequence[Task]) -> Iterator[Any]:
    """Tasks that must be registered, each with at least the declared fields exactly so.

    What is not declared stays as it is. A task is changed in place by one registration, never removed first,
    and a running instance goes on; when it would have to be restarted to notice the change, that is said. The
    box's own scheduler checks the XML while the change is planned. After writing, the task is read and
    compared again.
    """
    faults = [fault for task in tasks for fault in task_faults(task)]
    paths = [task.path for task in tasks]
    faults += [f"task {path} is declared twice" for path in _twice(paths)]
    if faults:
        raise Refused("\n".join(faults))
    states = _states(paths)
    changes = [change for task in tasks if (change := _change(task, states[task.path.lower()])) is not None]
    if not changes:
        box().noop(f"{len(tasks)} tasks are as declared")
        return
    _validate(changes)
    for change in changes:
        _announce(change)
    for change in changes:
        yield Call("Register-BoxTask", TaskPath=change.task.path, Xml=change.xml)
    if run().is_executing:
        _check_written([change.task for change in changes])


def _twice(paths: Sequence[str]) -> list[str]:
    lower = [path.lower() for path in paths]
    return sorted({path for path in lower if lower.count(path) > 1})


def _states(paths: Sequence[str]) -> dict[str, TaskState]:
    """State by path in lower case. Raises FactUnreadable for one that the box could not read."""
    found = {path.lower(): state for path, state in read(Tasks, paths=list(paths)).items()}
    for path in paths:
        state = found.get(path.lower())
        if state is None:
            raise FactUnreadable(f"the box said nothing about the task {path}")
        if state.fault is not None:
            raise FactUnreadable(f"cannot read the task {path}: {state.fault}")
    return found


def _accounts(task: Task, observed: Task | None) -> KnownAccounts:
    """SIDs of all names in both. Raises Refused when a declared account is unknown on the box."""
    names = {*task.accounts(), *(observed.accounts() if observed is not None else [])}
    asked = sorted(name for name in names if known_sid(name) is None)
    accounts = read(Accounts, names=asked) if asked else KnownAccounts({}, {})
    unknown = [name for name in task.accounts() if accounts.sid(name) is None]
    if unknown:
        why = "; ".join(f"{name}: {accounts.faults.get(name.lower(), 'not known')}" for name in unknown)
        raise Refused(
            f"task {task.path}: the box does not know the account ({why});"
            " name an account that exists, or a SID"
        )
    return accounts


def _change(task: Task, state: TaskState) -> _Change | None:
    observed = parse_task(task.path, state.xml) if state.exists and state.xml else None
    accounts = _accounts(task, observed)
    differences = task_differences(observed, task, accounts)
    if not differences and observed is not None:
        return None
    return _Change(task, state, differences, render_task(merged_task(observed, task, accounts)))


def _validate(changes: Sequence[_Change]) -> None:
    """Ask the box's scheduler for its opinion. Raises Refused with all of its objections."""
    if len(changes) > 1:
        prefetch([Validation.call(change.task.path, change.xml) for change in changes])
    faults = []
    for change in changes:
        fault = read(Validation, path=change.task.path, xml=change.xml)
        if fault is not None:
            faults.append(f"the box's Task Scheduler refuses {change.task.path}: {explained(fault)}")
    if faults:
        raise Refused("\n".join(faults))


# Element names that the scheduler puts into its message, "(32,4):UserId:", with the field and the usual
# cause.
_ELEMENTS = {
    "UserId": "principal.user: the account is unknown, or may not be used with this logon type or trigger",
    "GroupId": "principal.group: the group is unknown",
    "LogonType": "principal.logon_type: not allowed for this account; S4U needs the right to log on as a job",
    "RunLevel": "principal.run_level",
    "Duration": "a duration: 'for ever' is written by leaving it out",
    "Interval": "a repetition or restart interval: PT1M to P31D",
    "StartBoundary": "start_boundary: a date and time such as 2020-01-01T00:00:00",
    "EndBoundary": "end_boundary: a date and time such as 2030-01-01T00:00:00",
    "Priority": "settings.priority: 0 to 10",
    "Count": "settings.restart_count",
    "Command": "actions: the command is empty",
    "DeleteExpiredTaskAfter": "settings.delete_expired_task_after: needs a trigger with an end_boundary",
}
_HRESULTS = {
    "0x80070005": "access denied: HighestAvailable and logon triggers of any user need an administrator",
    "0x8007052e": "the user name or password is wrong",
    "0x80070534": "no account with that name",
    "0x80041318": "a value in the XML is out of range",
    "0x80041316": "an element in the XML is not expected there",
    "0x80041317": "an element is missing in the XML",
    "0x8004131a": "the XML is malformed",
}


def explained(fault: BoxFault) -> str:
    """What the scheduler said, with our field's name and the usual cause (community.windows#633)."""
    element = re.search(r"\(\d+,\d+\):(\w+):", fault.message)
    hints = [
        *([_ELEMENTS[element[1]]] if element and element[1] in _ELEMENTS else []),
        *([_HRESULTS[fault.hresult.lower()]] if fault.hresult and fault.hresult.lower() in _HRESULTS else []),
    ]
    said = f"{fault.message.strip()}{f' ({fault.hresult})' if fault.hresult else ''}"
    return f"{said}; {'; '.join(hints)}" if hints else said


def _announce(change: _Change) -> None:
    verb = "modify" if change.state.exists else "create"
    lines = list(diff.field_lines(change.differences))
    summary = diff.named(change.differences)
    unnoticed = needs_restart(change.differences)
    if change.state.running and unnoticed:
        note = f"the running instance keeps its {', '.join(unnoticed)} until it is restarted"
        lines.append(note)
        summary += f" ({note})"
    lines += [f"note: {text}" for text in task_warnings(change.task)]
    diff.show(f"Will {verb} task {diff.bold(change.task.path)}", lines, summary)


def _check_written(tasks: Sequence[Task]) -> None:
    states = _states([task.path for task in tasks])
    for task in tasks:
        left = _change(task, states[task.path.lower()])
        if left is not None:
            what = "; ".join(f"{one.field}: {one.found} instead of {one.wanted}" for one in left.differences)
            raise BoxError(
                f"Windows did not keep the task {task.path} as written ({what or 'it is not there'})"
            )


@box_operation()
def absent(paths: Sequence[str]) -> Iterator[Any]:
    """Tasks that must not be registered. A running instance is stopped first: it would go on without its
    task."""
    wanted = [task_path(path) for path in paths]
    states = _states(wanted)
    there = [state for path in wanted if (state := states[path.lower()]).exists]
    for state in there:
        diff.show(
            f"Will remove task {diff.bold(state.path)}{' (running: stopped first)' if state.running else ''}"
        )
    if not there:
        box().noop("no such tasks")
        return
    for state in there:
        if state.running:
            # Disabled first, or a repeating trigger starts it again between the stop and the removal.
            yield Call("Disable-BoxTask", TaskPath=state.path)
            yield Call("Stop-BoxTask", TaskPath=state.path)
        yield Call("Unregister-BoxTask", TaskPath=state.path)


@box_operation()
def running(path: str, timeout_s: float = 60.0) -> Iterator[Any]:
    """A task of which an instance must run: started when none does, then waited for.

    That a task runs does not say that its program is ready; ask the program for that.
    """
    wanted = task_path(path)
    state = _states([wanted])[wanted.lower()]
    if state.running:
        box().noop(f"task {wanted} is running")
        return
    if run().is_executing:
        # While planning, an earlier operation may still create or enable it.
        if not state.exists:
            raise Refused(
                f"there is no task {wanted} to start; declare it with scheduled_task.present before"
            )
        if not state.enabled:
            raise Refused(f"task {wanted} is disabled; declare it with scheduled_task.enabled before")
    lines = [f"last run: {result_words(state.last_result)}"] if state.exists else []
    diff.show(f"Will start task {diff.bold(wanted)}", lines)
    yield Call("Start-BoxTask", TaskPath=wanted)
    yield step("wait for task", lambda: _await_running(wanted, timeout_s))


def _await_running(path: str, timeout_s: float) -> None:
    def look() -> TaskState | None:
        state = _states([path])[path.lower()]
        return state if state.running else None

    if until(look, timeout_s, _POLL_S) is None:
        last = _states([path])[path.lower()]
        raise BoxError(
            f"task {path} was started but does not run after {timeout_s:.0f} s: state {last.state},"
            f" last run {result_words(last.last_result)}"
        )


@box_operation()
def stopped(path: str, disable: bool = False, timeout_s: float = 60.0) -> Iterator[Any]:
    """A task of which no instance may run; with disable it is disabled first, or its triggers would revive
    it.

    Windows ends the task's first process only: check afterwards that the programs it started are gone.
    """
    wanted = task_path(path)
    state = _states([wanted])[wanted.lower()]
    must_disable = disable and state.exists and state.enabled
    if not state.running and not must_disable:
        box().noop(f"task {wanted} is not running")
        return
    what = " and ".join([*(["disable"] if must_disable else []), *(["stop"] if state.running else [])])
    diff.show(f"Will {what} task {diff.bold(wanted)}")
    if must_disable:
        yield Call("Disable-BoxTask", TaskPath=wanted)
    if state.running:
        yield Call("Stop-BoxTask", TaskPath=wanted)
        yield step("wait for task", lambda: _await_stopped(wanted, timeout_s))


def _await_stopped(path: str, timeout_s: float) -> None:
    def look() -> bool | None:
        return None if _states([path])[path.lower()].running else True

    if until(look, timeout_s, _POLL_S) is None:
        raise BoxError(
            f"task {path} still runs {timeout_s:.0f} s after it was stopped; end its process by hand"
        )
    say(f"task {path} stopped")


@box_operation()
def enabled(paths: Sequence[str]) -> Iterator[Any]:
    """Tasks that must be enabled."""
    yield from _switched(paths, True)


@box_operation()
def disabled(paths: Sequence[str]) -> Iterator[Any]:
    """Tasks that must be disabled; a running instance goes on."""
    yield from _switched(paths, False)


def _switched(paths: Sequence[str], wanted: bool) -> Iterator[Any]:
    normal = [task_path(path) for path in paths]
    states = _states(normal)
    missing = [path for path in normal if not states[path.lower()].exists]
    if missing and run().is_executing:
        raise Refused(f"no such task: {', '.join(missing)}; declare it with scheduled_task.present before")
    other = [path for path in normal if path not in missing and states[path.lower()].enabled != wanted]
    for path in other:
        lines = diff.field_lines([Difference("enabled", str(not wanted).lower(), str(wanted).lower())])
        diff.show(f"Will {'enable' if wanted else 'disable'} task {diff.bold(path)}", lines)
    if not other:
        box().noop(f"{len(normal)} tasks are {'enabled' if wanted else 'disabled'}")
        return
    for path in other:
        yield Call("Enable-BoxTask" if wanted else "Disable-BoxTask", TaskPath=path)
