"""Scheduled tasks, compared by meaning and changed in place.

Example::

    task.present(tasks=[Task("NInferServe", actions=(Exec("C:\\ninfer\\serve_task.bat"),), ...)])
    task.running(path="NInferServe")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from winfleet import diff
from winfleet.answer import Difference
from winfleet.call import Call
from winfleet.current import box, run
from winfleet.fact import read
from winfleet.operation import box_operation
from winfleet.process.fact import Processes
from winfleet.process.model import Process
from winfleet.refusal import BoxError, Refused
from winfleet.task.change import (
    Passwords,
    announce,
    changes_of,
    check_files,
    check_written,
    task_states,
    validate,
)
from winfleet.task.check import task_faults
from winfleet.task.examination import examine
from winfleet.task.model import Task, task_path
from winfleet.task.result import result_words
from winfleet.task.state import TaskState, left_empty
from winfleet.waiting import say, step, until

_POLL_S = 0.5


@box_operation()
def present(
    tasks: Sequence[Task], passwords: Passwords | None = None, files_exist: bool = True
) -> Iterator[Any]:
    """Tasks that must be registered, each with at least the declared fields exactly so.

    What is not declared stays as it is. A task is changed in place by one registration, never removed first,
    and a running instance goes on; when it would have to be restarted to notice the change, that is said. The
    box's own scheduler checks the XML while the change is planned. After writing, the task is read and
    compared again.

    Args:
        tasks: the declared tasks.
        passwords: by account, for logon type Password alone. Windows never gives a password back, so it is
            not compared: it is sent when the task is registered for another reason.
        files_exist: refuse to register a task whose program or working directory is not on the box.
    """
    secrets = passwords or {}
    faults = [fault for task in tasks for fault in task_faults(task, list(secrets))]
    paths = [task.path for task in tasks]
    faults += [f"task {path} is declared twice" for path in _twice(paths)]
    if faults:
        raise Refused("\n".join(faults))
    changes = changes_of(tasks, task_states(paths), secrets)
    if not changes:
        box().noop(f"{len(tasks)} tasks are as declared")
        return
    validate(changes)
    notes = check_files(changes) if files_exist else []
    for change in changes:
        announce(change, notes)
    for change in changes:
        yield Call("Register-BoxTask", TaskPath=change.task.path, Xml=change.xml, Password=change.password)
    if run().is_executing:
        check_written([change.task for change in changes], secrets)


def _twice(paths: Sequence[str]) -> list[str]:
    lower = [path.lower() for path in paths]
    return sorted({path for path in lower if lower.count(path) > 1})


@box_operation()
def absent(paths: Sequence[str], folders: bool = True) -> Iterator[Any]:
    """Tasks that must not be registered. A running instance is stopped first: it would go on without its
    task.

    Args: folders: remove the tasks' folders too, when nothing else is in them. Windows makes them for a task
    and leaves them behind; those below ``\\Microsoft`` stay.
    """
    wanted = [task_path(path) for path in paths]
    states = task_states(wanted)
    there = [state for path in wanted if (state := states[path.lower()]).exists]
    empty = left_empty([states[path.lower()] for path in wanted], wanted) if folders else []
    for state in there:
        diff.show(
            f"Will remove task {diff.bold(state.path)}{' (running: stopped first)' if state.running else ''}"
        )
    for folder in empty:
        diff.show(f"Will remove task folder {diff.bold(folder)}, which holds nothing else")
    if not there and not empty:
        box().noop("no such tasks")
        return
    for state in there:
        if state.running:
            # Disabled first, or a repeating trigger starts it again between the stop and the removal.
            yield Call("Disable-BoxTask", TaskPath=state.path)
            yield Call("Stop-BoxTask", TaskPath=state.path)
        yield Call("Unregister-BoxTask", TaskPath=state.path)
    if empty:
        yield Call("Remove-BoxTaskFolder", Path=empty)


@box_operation()
def running(path: str, timeout_s: float = 60.0) -> Iterator[Any]:
    """A task of which an instance must run: started when none does, then waited for.

    That a task runs does not say that its program is ready; ask the program for that.
    """
    wanted = task_path(path)
    state = _state(wanted)
    if state.running:
        box().noop(f"task {wanted} is running")
        return
    _check_startable(state)
    lines = [f"last run: {result_words(state.last_result)}"] if state.exists else []
    diff.show(f"Will start task {diff.bold(wanted)}", lines)
    yield Call("Start-BoxTask", TaskPath=wanted)
    yield step("wait for task", lambda: _await_running(wanted, timeout_s))


def _state(path: str) -> TaskState:
    return task_states([path])[path.lower()]


def _check_startable(state: TaskState) -> None:
    """Raises Refused in execution; while planning, an earlier operation may still create or enable it."""
    if not run().is_executing:
        return
    if not state.exists:
        raise Refused(f"there is no task {state.path} to start; declare it with task.present before")
    if not state.enabled:
        raise Refused(f"task {state.path} is disabled; declare it with task.enabled before")


def _await_running(path: str, timeout_s: float) -> None:
    def look() -> TaskState | None:
        state = _state(path)
        return state if state.running else None

    if until(look, timeout_s, _POLL_S) is None:
        last = _state(path)
        raise BoxError(
            f"task {path} was started but does not run after {timeout_s:.0f} s: state {last.state},"
            f" last run {result_words(last.last_result)}"
        )


@box_operation()
def stopped(
    path: str, disable: bool = False, programs: Sequence[str] = (), timeout_s: float = 60.0
) -> Iterator[Any]:
    """A task of which no instance may run; with disable it is disabled first, or its triggers would revive
    it.

    Args:
        programs: full paths of programs that the task starts. Windows ends the task's first process alone;
            what is left of these is ended too, each by id and creation time.
    """
    wanted = task_path(path)
    state = _state(wanted)
    left = _alive(programs)
    must_disable = disable and state.exists and state.enabled
    if not state.running and not must_disable and not left:
        box().noop(f"task {wanted} is not running")
        return
    what = [*(["disable"] if must_disable else []), *(["stop"] if state.running or left else [])]
    lines = [f"process {one.process_id}: {one.executable_path}" for one in left]
    diff.show(f"Will {' and '.join(what)} task {diff.bold(wanted)}", lines)
    if must_disable:
        yield Call("Disable-BoxTask", TaskPath=wanted)
    if state.running:
        yield Call("Stop-BoxTask", TaskPath=wanted)
        yield step("wait for task", lambda: _await_stopped(wanted, timeout_s))
    for process in _alive(programs):
        yield Call("Stop-BoxProcess", ProcessId=process.process_id, CreationTimeUtc=process.creation_time_utc)
    if programs:
        yield step("wait for programs", lambda: _await_gone(wanted, programs, timeout_s))


def _alive(programs: Sequence[str]) -> list[Process]:
    if not programs:
        return []
    names = sorted({program.replace("/", "\\").rpartition("\\")[2] for program in programs})
    found = read(Processes, names=names)
    return [process for process in found if any(process.runs(program) for program in programs)]


def _await_gone(path: str, programs: Sequence[str], timeout_s: float) -> None:
    left: list[Process] = []

    def look() -> bool | None:
        nonlocal left
        left = _alive(programs)
        return None if left else True

    if until(look, timeout_s, _POLL_S) is None:
        named = ", ".join(f"{one.executable_path} (process {one.process_id})" for one in left)
        raise BoxError(f"task {path} is stopped, but {named} still runs; look what starts it")


def _await_stopped(path: str, timeout_s: float) -> None:
    def look() -> bool | None:
        return None if _state(path).running else True

    if until(look, timeout_s, _POLL_S) is None:
        raise BoxError(
            f"task {path} still runs {timeout_s:.0f} s after it was stopped; end its process by hand"
        )
    say(f"task {path} stopped")


@box_operation()
def restarted(path: str, timeout_s: float = 60.0) -> Iterator[Any]:
    """A task that is stopped and started now; always a change.

    It is done when an instance with another process runs: "Running" alone may be the old one
    (openclaw/openclaw#149921).
    """
    wanted = task_path(path)
    state = _state(wanted)
    _check_startable(state)
    before = _processes(state)
    lines = [f"process {one.process_id}, since {one.creation_time_utc}" for one in before]
    diff.show(f"Will restart task {diff.bold(wanted)}", lines)
    if state.running:
        yield Call("Stop-BoxTask", TaskPath=wanted)
        yield step("wait for task", lambda: _await_stopped(wanted, timeout_s))
    yield Call("Start-BoxTask", TaskPath=wanted)
    yield step("wait for task", lambda: _await_other(wanted, before, timeout_s))


def _processes(state: TaskState) -> list[Process]:
    ids = [one.engine_process_id for one in state.instances if one.engine_process_id is not None]
    return read(Processes, process_ids=ids) if ids else []


def _await_other(path: str, before: Sequence[Process], timeout_s: float) -> None:
    def look() -> Process | None:
        now = _processes(_state(path))
        return next((one for one in now if not any(one.same_as(other) for other in before)), None)

    new = until(look, timeout_s, _POLL_S)
    if new is None:
        last = _state(path)
        raise BoxError(
            f"task {path} has no new process {timeout_s:.0f} s after its restart: state {last.state},"
            f" last run {result_words(last.last_result)}"
        )
    old = ", ".join(str(one.process_id) for one in before) or "none"
    say(f"task {path}: process {old} -> {new.process_id}")


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
    states = task_states(normal)
    missing = [path for path in normal if not states[path.lower()].exists]
    if missing and run().is_executing:
        raise Refused(f"no such task: {', '.join(missing)}; declare it with task.present before")
    other = [path for path in normal if path not in missing and states[path.lower()].enabled != wanted]
    for path in other:
        lines = diff.field_lines([Difference("enabled", str(not wanted).lower(), str(wanted).lower())])
        diff.show(f"Will {'enable' if wanted else 'disable'} task {diff.bold(path)}", lines)
    if not other:
        box().noop(f"{len(normal)} tasks are {'enabled' if wanted else 'disabled'}")
        return
    for path in other:
        yield Call("Enable-BoxTask" if wanted else "Disable-BoxTask", TaskPath=path)


@box_operation()
def examined(tasks: Sequence[Task], programs: Mapping[str, Sequence[str]] | None = None) -> Iterator[Any]:
    """Tasks of which is told what is odd although they are as declared; never a change.

    Told are results of the last run in words, processes that are not the task's, their priority and rights,
    and what the scheduler's log holds of time limits, ignored starts and failures.

    Args: programs: full paths of the programs that must run under a task, by the task's path.
    """
    found = examine(tasks, programs)
    for path, texts in found.items():
        for text in texts:
            say(f"task {path}: {text}")
    count = sum(len(texts) for texts in found.values())
    box().noop(f"{len(found)} tasks examined, {count} findings")
    yield from ()
