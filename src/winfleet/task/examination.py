"""Looking at tasks that are as declared: whether they also do what they are for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from winfleet.fact import prefetch, read
from winfleet.files.fact import Files
from winfleet.process.fact import Processes, ProcessTokens
from winfleet.process.process_token import ProcessToken
from winfleet.task.change import observed_task, task_states
from winfleet.task.fact import TaskEvents, Tasks
from winfleet.task.finding import (
    event_findings,
    needed_paths,
    process_findings,
    state_findings,
    token_findings,
)
from winfleet.task.model import Task, task_path


def examine(
    tasks: Sequence[Task], programs: Mapping[str, Sequence[str]] | None = None
) -> dict[str, list[str]]:
    """What is odd about each task of the current box, by path; empty lists: nothing.

    Args:
        tasks: as declared.
        programs: full paths of the programs that must run under a task, by the task's path.

    Raises: FactUnreadable.
    """
    paths = [task.path for task in tasks]
    prefetch([Tasks.call(paths), Processes.call(), TaskEvents.call(paths)])
    states = task_states(paths)
    processes = read(Processes)
    history = read(TaskEvents, paths=paths)
    expected = {task_path(path): list(found) for path, found in (programs or {}).items()}
    findings: dict[str, list[str]] = {}
    for task in tasks:
        state = states[task.path.lower()]
        observed = observed_task(state)
        if observed is None:
            findings[task.path] = ["is not registered"]
            continue
        known = dataclasses.replace(observed, service=task.service)
        found = [*state_findings(known, state)]
        found += process_findings(known, state, processes, expected.get(task.path, ()))
        alive = {process.process_id for process in processes}
        roots = [one.engine_process_id for one in state.instances if one.engine_process_id in alive]
        if roots:
            tokens: list[ProcessToken] = read(ProcessTokens, process_ids=roots)
            found += token_findings(known, tokens)
        needed = needed_paths(known)
        if needed:
            files = read(Files, paths=needed)
            found += [f"{path} is not on the box" for path, file in files.items() if file.kind == "absent"]
        found += event_findings(known, history)
        findings[task.path] = found
    return findings
