"""How long it takes to compare scheduled tasks: 100 of them, read in the stored shape.

    .venv/bin/python benchmarks/bench_tasks.py

Wanted: under 0.1 s of processor time. Compared are tasks as this tool declares them (a service with three triggers),
and tasks in which every field of the schema is declared.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "unit"))

from full_task import FULL
from random_tasks import ACCOUNTS, ME, read_back, sid_of

from simbox.task import stored as task_stored
from simbox.task import xml as task_xml
from winfleet.task.difference import task_differences
from winfleet.task.merge import merged_task
from winfleet.task.model import Exec, Principal, Settings, Task
from winfleet.task.parse import parse_task
from winfleet.task.render import render_task
from winfleet.task.trigger import BootTrigger, LogonTrigger, Repetition, TimeTrigger

TASKS = 100
RUNS = 15
SERVICE = Task(
    r"\NInferServe",
    actions=(Exec(r"C:\ninfer\serve_task.bat", working_directory=r"C:\ninfer"),),
    triggers=(
        BootTrigger(id="boot", delay=30),
        LogonTrigger(id="logon", user=ME),
        TimeTrigger(id="watchdog", start_boundary="2020-01-01T00:00:00", repetition=Repetition(60)),
    ),
    principal=Principal(user=ME, logon_type="S4U", run_level="LeastPrivilege"),
    settings=Settings(
        multiple_instances="IgnoreNew",
        disallow_start_if_on_batteries=False,
        stop_if_going_on_batteries=False,
        execution_time_limit=0,
        priority=4,
        restart_interval=60,
        restart_count=3,
    ),
    description="Keeps ninfer-serve running.",
    service=True,
)


def stored_xml(task: Task) -> str:
    """The XML that the simulated scheduler keeps of a task."""
    root = task_xml.read(render_task(merged_task(None, task, ACCOUNTS)))
    return task_xml.write(task_stored.stored(root, sid_of))


def median_s(work: Callable[[], object]) -> float:
    """The median processor time of some runs, in seconds: a busy machine does not change it."""
    times = []
    for _ in range(RUNS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def measure(name: str, task: Task) -> None:
    """Measure one kind of task and print."""
    xml = stored_xml(task)
    assert task_differences(read_back(merged_task(None, task, ACCOUNTS)), task, ACCOUNTS) == []
    parsed = [parse_task(task.path, xml) for _ in range(TASKS)]
    parse_s = median_s(lambda: [parse_task(task.path, xml) for _ in range(TASKS)])
    compare_s = median_s(lambda: [task_differences(found, task, ACCOUNTS) for found in parsed])
    print(
        f"{TASKS} tasks, {name} ({len(xml)} characters of XML each):"
        f" parsed in {parse_s:.4f} s, compared in {compare_s:.4f} s, together {parse_s + compare_s:.4f} s"
    )


if __name__ == "__main__":
    measure("service", SERVICE)
    measure("every field", FULL)
