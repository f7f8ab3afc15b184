"""What is told of tasks that are as declared."""

from __future__ import annotations

import dataclasses

import pytest

from winfleet.answer import ModelError
from winfleet.process.model import Process
from winfleet.task.event import TaskHistory
from winfleet.task.finding import event_findings, needed_paths, process_findings, state_findings
from winfleet.task.model import Exec, Principal, Settings, Task
from winfleet.task.result import harmless, result_words
from winfleet.task.state import Instance, TaskState

SERVER = r"C:\ninfer\current\ninfer-serve.exe"
TASK = Task(
    "NInferServe",
    actions=(Exec(r'"C:\ninfer\serve_task.bat"', working_directory=r"C:\ninfer"),),
    principal=Principal(user="S-1-5-18"),
    settings=Settings(priority=4),
)
IDLE = TaskState(r"\NInferServe", True, "", "Ready", True, None, 0, None, (), None)
RUNNING = dataclasses.replace(IDLE, state="Running", instances=(Instance(10, "{1}", "Running"),))


def process(number: int, path: str, parent: int = 4, priority: str = "Normal", second: int = 0) -> Process:
    created = f"2026-09-01T08:00:{second or number:02d}.0000000Z"
    return Process(number, created, parent, path.rpartition("\\")[2], path, priority, 0, 1)


SHELL = process(10, r"C:\Windows\System32\cmd.exe")


def test_a_healthy_service_gives_no_findings() -> None:
    processes = [SHELL, process(11, SERVER, 10)]
    assert list(process_findings(TASK, RUNNING, processes, [SERVER])) == []
    assert list(state_findings(TASK, RUNNING)) == []
    assert list(state_findings(TASK, IDLE)) == []


@pytest.mark.parametrize(
    ("state", "processes", "finding"),
    [
        (RUNNING, [], "counts as running, but its process 10 is gone"),
        (RUNNING, [process(10, r"C:\other\x.exe")], r"its process 10 is C:\other\x.exe, not cmd.exe"),
        (RUNNING, [SHELL], rf"the task runs, but {SERVER} does not"),
        (
            RUNNING,
            [SHELL, process(12, r"D:\old\ninfer-serve.exe", 10)],
            rf"process 12 is D:\old\ninfer-serve.exe, not {SERVER}",
        ),
        (
            RUNNING,
            [SHELL, process(12, SERVER, 3), process(3, r"C:\Windows\explorer.exe", 0)],
            rf"process 12 ({SERVER}) is not ours: it was started by process 3 (C:\Windows\explorer.exe)",
        ),
        (
            RUNNING,
            [process(10, r"C:\Windows\System32\cmd.exe", second=30), process(11, SERVER, 10)],
            rf"process 11 ({SERVER}) is not ours",
        ),
        (IDLE, [process(12, SERVER, 3)], "runs though the task does not: it was left over"),
        (
            RUNNING,
            [SHELL, process(11, SERVER, 10, "BelowNormal")],
            "its process 11 (ninfer-serve.exe) runs with priority class BelowNormal, not Normal (priority 4)",
        ),
        (
            RUNNING,
            [process(10, r"C:\Windows\System32\cmd.exe", 4, "Idle"), process(11, SERVER, 10)],
            "its process 10 (cmd.exe) runs with priority class Idle, not Normal",
        ),
    ],
)
def test_what_live_processes_tell(state: TaskState, processes: list[Process], finding: str) -> None:
    found = list(process_findings(TASK, state, processes, [SERVER]))
    assert any(finding in one for one in found), found


def test_a_raised_priority_is_not_handed_down_to_what_the_task_starts() -> None:
    raised = TASK.replaced(settings=Settings(priority=2))
    shell = process(10, r"C:\Windows\System32\cmd.exe", 4, "AboveNormal")
    assert list(process_findings(raised, RUNNING, [shell, process(11, SERVER, 10)], [SERVER])) == []
    (found,) = process_findings(raised, RUNNING, [shell, process(11, SERVER, 10, "Idle")], [SERVER])
    assert "process 11 (ninfer-serve.exe) runs with priority class Idle" in found
    (found,) = process_findings(raised, RUNNING, [SHELL, process(11, SERVER, 10)], [SERVER])
    assert "process 10 (cmd.exe) runs with priority class Normal, not AboveNormal" in found


def test_what_the_scheduler_tells_of_a_state() -> None:
    odd = dataclasses.replace(IDLE, enabled=False, last_result=-1073741510, missed_runs=3)
    assert list(state_findings(TASK.replaced(service=True), odd)) == [
        "is disabled: no trigger starts it",
        "its last run ended with 0xC000013A (its console or session was closed)",
        "3 runs were missed",
        "is a service, and no instance of it runs",
    ]


@pytest.mark.parametrize(
    ("code", "words", "fine"),
    [
        (0, "succeeded", True),
        (0x41301, "is running", True),
        (0x41303, "has never run", True),
        (0x41306, "was terminated by a user", False),
        (-1073741510, "its console or session was closed", False),
        (0xC000013A, "its console or session was closed", False),
        (0x800710E0, "the operator refused the request", False),
        (0xC0000409, "aborted itself", False),
        (0x8007010B, "working directory does not exist", False),
        (7, "exit code 7", False),
        (None, "no result", True),
    ],
)
def test_result_codes_in_words(code: int | None, words: str, fine: bool) -> None:
    assert words in result_words(code)
    assert harmless(code) == fine


def event(number: int, second: int, **values: str) -> dict[str, object]:
    data = "".join(f'<Data Name="{name}">{value}</Data>' for name, value in values.items())
    return {
        "Id": number,
        "TimeUtc": f"2026-09-01T08:00:{second:02d}.0000000Z",
        "Xml": f'<Event xmlns="http://schemas.microsoft.com/win/2004/08/events/event"><EventData>{data}</EventData></Event>',
    }


def test_what_the_log_tells() -> None:
    events = [
        event(322, 9),
        event(329, 5),
        event(322, 4),
        event(203, 2, ResultCode="2147942402"),
        event(201, 1),
    ]
    tasks = [{"TaskPath": r"\ninferserve", "Events": events, "Error": None}]
    history = TaskHistory.parse({"LogEnabled": True, "Tasks": tasks})
    assert list(event_findings(TASK, history)) == [
        "event 203: an action could not be started, 1 times, last 2026-09-01T08:00:02.0000000Z,"
        " 0x80070002 (the file was not found)",
        "event 322: a start was ignored: an instance ran already, 2 times, last 2026-09-01T08:00:09.0000000Z",
        "event 329: ended by its time limit, 1 times, last 2026-09-01T08:00:05.0000000Z",
    ]
    silent = TaskHistory.parse({"LogEnabled": False, "Tasks": []})
    assert ["switched off" in one for one in event_findings(TASK, silent)] == [True]


def test_events_that_could_not_be_read_are_no_empty_history() -> None:
    with pytest.raises(ModelError, match="Access is denied"):
        TaskHistory.parse(
            {"LogEnabled": True, "Tasks": [{"TaskPath": "\\T", "Events": [], "Error": "Access is denied"}]}
        )


def test_paths_that_a_task_needs() -> None:
    actions = (
        Exec(r'"C:\a b\x.exe"', None, "C:/a b"),
        Exec(r"%SystemRoot%\System32\cmd.exe", None, r"c:\A B"),
    )
    assert needed_paths(TASK.replaced(actions=actions)) == [r"C:\a b\x.exe", r"C:\a b"]
