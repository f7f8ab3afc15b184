"""What is odd about a task on a box though its definition is right: told, never changed.

A definition says what should run; whether it does, and with which priority and rights, only the live process
tells (docs/facts/windows.md#task-priority, docs/facts/windows.md#ending-a-task,
docs/facts/windows.md#accounts-and-sessions).
"""

from __future__ import annotations

import ntpath
from collections.abc import Iterator, Sequence

from winfleet.path import normal_path
from winfleet.process.model import Process
from winfleet.process.process_token import ProcessToken
from winfleet.task.action import Exec
from winfleet.task.event import EVENTS, TROUBLE, TaskEvent, TaskHistory
from winfleet.task.model import Task
from winfleet.task.result import harmless, result_words
from winfleet.task.state import TaskState

# Priority class of the process by the task's priority (TaskSettings.Priority).
PRIORITY_CLASSES = (
    "RealTime",
    "High",
    "AboveNormal",
    "AboveNormal",
    "Normal",
    "Normal",
    "Normal",
    "BelowNormal",
    "BelowNormal",
    "Idle",
    "Idle",
)
# What runs a file that is no program itself.
_INTERPRETERS = {".bat": "cmd.exe", ".cmd": "cmd.exe"}


def state_findings(task: Task, state: TaskState) -> Iterator[str]:
    """What the scheduler's own words tell.

    Args: task (as it is on the box), state (of it).
    """
    if not state.enabled:
        yield "is disabled: no trigger starts it"
    if not state.running and not harmless(state.last_result):
        yield f"its last run ended with {result_words(state.last_result)}"
    if state.missed_runs:
        yield f"{state.missed_runs} runs were missed"
    if task.service and not state.running:
        yield "is a service, and no instance of it runs"


def process_findings(
    task: Task, state: TaskState, processes: Sequence[Process], programs: Sequence[str] = ()
) -> Iterator[str]:
    """What the live processes tell.

    Args:
        task: as it is on the box.
        state: of it.
        processes: all processes of the box.
        programs: full paths of the programs that must run under this task.
    """
    by_id = {process.process_id: process for process in processes}
    roots = [one.engine_process_id for one in state.instances if one.engine_process_id is not None]
    for process_id in roots:
        root = by_id.get(process_id)
        if root is None:
            yield f"counts as running, but its process {process_id} is gone"
            continue
        wanted = _root_names(task)
        if wanted and root.name.casefold() not in wanted:
            yield f"its process {process_id} is {_place(root)}, not {' or '.join(sorted(wanted))}"
        yield from priority_findings(task, root)
    for program in programs:
        yield from _program(task, state, by_id, frozenset(roots), program)


def _root_names(task: Task) -> set[str]:
    """File names that the first process of an instance may have; empty: anything."""
    names = set()
    for action in task.actions or ():
        if not isinstance(action, Exec):
            return set()
        name = ntpath.basename(action.command.strip().strip('"').replace("/", "\\")).casefold()
        stem, extension = ntpath.splitext(name)
        names.add(_INTERPRETERS.get(extension, name if extension else f"{stem}.exe"))
    return names


def _place(process: Process) -> str:
    return process.executable_path or process.name


def priority_findings(task: Task, process: Process, child: bool = False) -> Iterator[str]:
    """Whether a live process of the task has the priority class that the task's priority stands for.

    child: another process of the task started it. Windows hands down a lowered class only (CreateProcess).
    """
    declared = task.settings.priority
    if declared is None or not 0 <= declared <= 10 or process.priority_class is None:
        return
    wanted = PRIORITY_CLASSES[declared]
    if (
        child
        and declared < PRIORITY_CLASSES.index("Normal")
        and process.priority_class.casefold() == "normal"
    ):
        return
    if process.priority_class.casefold() != wanted.casefold():
        yield (
            f"its process {process.process_id} ({process.name}) runs with priority class"
            f" {process.priority_class}, not {wanted} (priority {declared})"
        )


def _program(
    task: Task, state: TaskState, by_id: dict[int, Process], roots: frozenset[int], program: str
) -> Iterator[str]:
    name = ntpath.basename(program.replace("/", "\\")).casefold()
    same_name = [process for process in by_id.values() if process.name.casefold() == name]
    ours = [process for process in same_name if process.runs(program)]
    for process in same_name:
        if not process.runs(program):
            yield f"process {process.process_id} is {_place(process)}, not {program}"
    for process in ours:
        if roots and not _descends(process, by_id, roots):
            parent = by_id.get(process.parent_process_id or 0)
            by = f"process {process.parent_process_id} ({_place(parent) if parent else 'gone'})"
            yield f"process {process.process_id} ({program}) is not ours: it was started by {by}"
        elif not roots and not state.running:
            yield f"process {process.process_id} ({program}) runs though the task does not: it was left over"
        else:
            yield from priority_findings(task, process, child=process.process_id not in roots)
    if state.running and not ours:
        yield f"the task runs, but {program} does not"


def _descends(process: Process, by_id: dict[int, Process], roots: frozenset[int]) -> bool:
    """True when one of the roots is the process or above it. A parent's id may have passed to a younger
    process: such a one is no parent."""
    seen = set()
    current: Process | None = process
    while current is not None and current.process_id not in seen:
        if current.process_id in roots:
            return True
        seen.add(current.process_id)
        parent = by_id.get(current.parent_process_id or 0)
        if parent and (parent.creation_time_utc or "") > (current.creation_time_utc or "~"):
            return False
        current = parent
    return False


def token_findings(task: Task, tokens: Sequence[ProcessToken]) -> Iterator[str]:
    """Whether the live process has the rights that the definition promises (trycua/cua#1638: RunLevel Highest
    alone proves nothing).

    Args: task (as it is on the box), tokens (of its processes).
    """
    for token in tokens:
        if token.fault is not None:
            yield f"the rights of process {token.process_id} could not be read: {token.fault}"
        elif task.principal.run_level == "HighestAvailable" and not token.elevated:
            yield f"process {token.process_id} is not elevated though run_level is HighestAvailable"
        elif task.principal.logon_type and task.principal.run_level == "LeastPrivilege" and token.elevated:
            yield f"process {token.process_id} is elevated though run_level is LeastPrivilege"
        user = task.principal.user
        if user and user.upper().startswith("S-1-") and token.user_sid and token.user_sid != user.upper():
            yield f"process {token.process_id} runs as {token.user_sid}, not as {user}"


def event_findings(task: Task, history: TaskHistory) -> Iterator[str]:
    """What the scheduler's log tells of this task; the log holds only so much."""
    if not history.enabled:
        yield (
            "the scheduler's log is switched off, so nothing is known of its past; to keep it:"
            " wevtutil set-log Microsoft-Windows-TaskScheduler/Operational /enabled:true"
        )
        return
    counted: dict[int, list[TaskEvent]] = {}
    for event in history.of(task.path):
        if event.id in TROUBLE:
            counted.setdefault(event.id, []).append(event)
    for number, events in sorted(counted.items()):
        newest = events[0]
        result = f", {result_words(newest.result)}" if newest.result else ""
        expected = (
            " (its repeating trigger does that while it runs)" if number == 322 and _repeats(task) else ""
        )
        times = f"{len(events)} times, last {newest.time_utc}"
        yield f"event {number}: {EVENTS[number]}, {times}{result}{expected}"


def _repeats(task: Task) -> bool:
    return any(trigger.repetition is not None for trigger in task.triggers or ())


def needed_paths(task: Task) -> list[str]:
    """Full paths that must exist on the box for this task to start: its commands and working directories.

    Those that begin with a variable are left out: the box alone knows what it is.
    """
    paths: dict[str, str] = {}
    for action in task.actions or ():
        if isinstance(action, Exec):
            for path in (action.command, action.working_directory):
                plain = (path or "").strip().strip('"').replace("/", "\\")
                if plain and not plain.startswith("%"):
                    paths.setdefault(normal_path(plain), plain)
    return list(paths.values())
