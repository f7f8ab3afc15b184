from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api.hiddenvalue import HiddenValue
from windows_fleet import Fleet, WindowsBox

from winfleet.task import operations as scheduled_task
from winfleet.task.model import Exec, Principal, Settings, Task
from winfleet.task.parse import parse_task
from winfleet.task.render import render_task
from winfleet.task.trigger import LogonTrigger, OtherTrigger, Repetition, TimeTrigger

PATH = r"\NInferServe"
USER = "Administrator"


@pytest.fixture
def fleet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Fleet:
    caplog.set_level(logging.INFO, logger="pyinfra")
    fleet = Fleet(tmp_path, "gpu01")
    for name in ("serve_task.bat", "other.bat"):
        file = box(fleet).sim.filesystem.host(f"C:\\ninfer\\{name}")
        file.parent.mkdir(exist_ok=True)
        file.write_text("rem\r\n")
    return fleet


def box(fleet: Fleet) -> WindowsBox:
    return fleet.boxes["gpu01"]


def serve_task(**changes: Any) -> Task:
    task = Task(
        PATH,
        actions=(Exec(r"C:\ninfer\serve_task.bat", working_directory=r"C:\ninfer"),),
        triggers=(
            LogonTrigger(id="logon", user=USER),
            TimeTrigger(id="watchdog", start_boundary="2020-01-01T00:00:00", repetition=Repetition("PT1M")),
        ),
        principal=Principal(user=USER, logon_type="InteractiveToken", run_level="HighestAvailable"),
        settings=Settings(
            multiple_instances="IgnoreNew",
            disallow_start_if_on_batteries=False,
            stop_if_going_on_batteries=False,
            execution_time_limit=0,
            priority=4,
            restart_interval="PT1M",
            restart_count=3,
            enabled=True,
        ),
        description="Serves NInfer",
        author="ninfer-fleet",
        service=True,
    )
    return task.replaced(**changes)


def register(fleet: Fleet, task: Task) -> None:
    """By hand, as somebody at the box would."""
    box(fleet).sim.windows.scheduler.register(task.path, render_task(task))


def observed(fleet: Fleet) -> Task:
    return parse_task(PATH, box(fleet).sim.windows.scheduler.get(PATH)["Xml"])


def test_present_registers_once_and_settles(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    assert fleet.plan(scheduled_task.present, tasks=[serve_task()]).changed == {"gpu01"}
    assert "Will create task \\NInferServe" in caplog.text
    assert "+ settings.execution_time_limit: 0 s (PT0S)" in caplog.text
    assert box(fleet).changes() == []
    outcome = fleet.apply(scheduled_task.present, check=True, tasks=[serve_task()])
    assert (outcome.changed, outcome.failed) == ({"gpu01"}, set())
    assert box(fleet).changes() == ["Register-BoxTask"]
    assert fleet.apply(scheduled_task.present, tasks=[serve_task()]).changed == set()
    assert fleet.plan(scheduled_task.present, tasks=[serve_task()]).changed == set()
    assert box(fleet).changes() == ["Register-BoxTask"]


DRIFTS: list[tuple[str, dict[str, Any]]] = [
    ("description", {"description": "edited by hand"}),
    ("author", {"author": "somebody"}),
    ("actions[0].command", {"actions": (Exec(r"C:\old\serve.bat", working_directory=r"C:\ninfer"),)}),
    ("actions[0].arguments", {"actions": (Exec(r"C:\ninfer\serve_task.bat", "x", r"C:\ninfer"),)}),
    ("actions[0].working_directory", {"actions": (Exec(r"C:\ninfer\serve_task.bat"),)}),
    ("actions[1]", {"actions": (*serve_task().actions, Exec(r"C:\x.exe"))}),  # type: ignore[misc]
    ("principal.run_level", {"principal": Principal(USER, None, "InteractiveToken", "LeastPrivilege")}),
    ("principal.logon_type", {"principal": Principal(USER, None, "S4U", "HighestAvailable")}),
    ("principal.user", {"principal": Principal("SYSTEM", None, None, "HighestAvailable")}),
    ("triggers[watchdog]", {"triggers": (LogonTrigger(id="logon", user=USER),)}),
    (
        "triggers[watchdog].repetition.interval",
        {"triggers": (LogonTrigger(id="logon", user=USER), TimeTrigger(
            id="watchdog", start_boundary="2020-01-01T00:00:00", repetition=Repetition(300)))},
    ),
    (
        "triggers[watchdog].repetition.duration",
        {"triggers": (LogonTrigger(id="logon", user=USER), TimeTrigger(
            id="watchdog", start_boundary="2020-01-01T00:00:00", repetition=Repetition(60, 86400)))},
    ),
    (
        "triggers[watchdog].start_boundary",
        {"triggers": (LogonTrigger(id="logon", user=USER), TimeTrigger(
            id="watchdog", start_boundary="2021-01-01T00:00:00", repetition=Repetition(60)))},
    ),
    (
        "triggers[watchdog].enabled",
        {"triggers": (LogonTrigger(id="logon", user=USER), TimeTrigger(
            id="watchdog", enabled=False, start_boundary="2020-01-01T00:00:00", repetition=Repetition(60)))},
    ),
    (
        "triggers[logon].user",
        {"triggers": (LogonTrigger(id="logon", any_user=True), serve_task().triggers[1])},  # type: ignore[index]
    ),
    (
        "triggers[logon].delay",
        {"triggers": (LogonTrigger(id="logon", user=USER, delay=30), serve_task().triggers[1])},  # type: ignore[index]
    ),
]  # fmt: skip
for _name, _value in (
    ("multiple_instances", "Parallel"),
    ("disallow_start_if_on_batteries", True),
    ("stop_if_going_on_batteries", True),
    ("execution_time_limit", "PT72H"),
    ("priority", 7),
    ("restart_interval", 120),
    ("restart_count", 9),
    ("enabled", False),
):
    DRIFTS.append(
        (f"settings.{_name}", {"settings": dataclasses.replace(serve_task().settings, **{_name: _value})})
    )


@pytest.mark.parametrize(("field", "drift"), DRIFTS, ids=[name for name, _ in DRIFTS])
def test_each_declared_field_is_named_and_repaired(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, field: str, drift: dict[str, Any]
) -> None:
    fleet.apply(scheduled_task.present, tasks=[serve_task()])
    register(fleet, serve_task(service=False, **drift))
    caplog.clear()
    assert fleet.plan(scheduled_task.present, tasks=[serve_task()]).changed == {"gpu01"}
    named = {line.split("- ", 1)[-1].split("+ ", 1)[-1].split(": ")[0] for line in caplog.text.splitlines()}
    assert field in named
    assert fleet.apply(scheduled_task.present, tasks=[serve_task()]).failed == set()
    assert fleet.apply(scheduled_task.present, tasks=[serve_task()]).changed == set()


def test_fields_that_are_not_declared_stay(fleet: Fleet) -> None:
    register(
        fleet,
        serve_task(
            settings=Settings(wake_to_run=True, priority=7, hidden=True), source="by hand", service=False
        ),
    )
    fleet.apply(scheduled_task.present, tasks=[serve_task()])
    after = observed(fleet)
    assert (after.settings.wake_to_run, after.settings.hidden, after.source) == (True, True, "by hand")
    assert after.settings.priority == 4


def test_a_trigger_of_an_unknown_kind_is_kept_unless_triggers_are_declared(fleet: Fleet) -> None:
    odd = OtherTrigger(name="IdleTrigger", xml="")
    register(fleet, Task(PATH, actions=(Exec(r"C:\x.exe"),), triggers=(odd,), principal=Principal(USER)))
    fleet.apply(
        scheduled_task.present, tasks=[Task(PATH, actions=(Exec(r"C:\y.exe"),), principal=Principal(USER))]
    )
    assert [trigger.kind for trigger in observed(fleet).triggers or ()] == ["IdleTrigger"]


@pytest.mark.parametrize(
    "spelling", ["Administrator", ".\\Administrator", "GPU01\\Administrator", "administrator"]
)
def test_spellings_of_one_account_are_equal(fleet: Fleet, spelling: str) -> None:
    fleet.apply(scheduled_task.present, tasks=[serve_task()])
    other = serve_task(principal=dataclasses.replace(serve_task().principal, user=spelling))
    assert fleet.plan(scheduled_task.present, tasks=[other]).changed == set()


def test_an_unknown_account_is_refused_before_any_write(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    task = serve_task(principal=Principal(user="nobody-here"), triggers=(), service=False)
    assert fleet.plan(scheduled_task.present, tasks=[task]).failed == {"gpu01"}
    assert fleet.apply(scheduled_task.present, tasks=[task]).failed == {"gpu01"}
    assert "nobody-here" in caplog.text
    assert box(fleet).changes() == []


def test_the_scheduler_of_the_box_is_asked_while_planning(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    group = Principal(group="Users")
    fine = Task("Groups", actions=(Exec(r"C:\ninfer\serve_task.bat"),), principal=group)
    assert fleet.plan(scheduled_task.present, tasks=[fine]).changed == {"gpu01"}
    odd = fine.replaced(schema_version="1.9")
    assert fleet.plan(scheduled_task.present, tasks=[odd]).failed == {"gpu01"}
    assert "the box's Task Scheduler refuses \\Groups" in caplog.text
    assert "0x80041318" in caplog.text


def test_a_write_that_windows_does_not_keep_is_a_failure(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    box(fleet).forget_writes = True
    assert fleet.apply(scheduled_task.present, tasks=[serve_task()]).failed == {"gpu01"}
    assert "Windows did not keep the task \\NInferServe as written" in caplog.text


def test_a_running_instance_goes_on_and_the_restart_is_named(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.apply(scheduled_task.present, tasks=[serve_task()])
    fleet.apply(scheduled_task.running, path=PATH)
    caplog.clear()
    changed = serve_task(actions=(Exec(r"C:\ninfer\other.bat", working_directory=r"C:\ninfer"),))
    fleet.plan(scheduled_task.present, tasks=[changed])
    assert "the running instance keeps its actions[0].command until it is restarted" in caplog.text
    caplog.clear()
    fleet.plan(scheduled_task.present, tasks=[serve_task(description="new words")])
    assert "restarted" not in caplog.text
    fleet.apply(scheduled_task.present, tasks=[changed])
    assert box(fleet).running == {PATH.lower()}
    assert set(box(fleet).changes()) == {"Register-BoxTask", "Start-BoxTask"}


def test_running_stopped_enabled_absent(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    fleet.apply(scheduled_task.present, tasks=[serve_task()])
    assert fleet.apply(scheduled_task.running, path=PATH).changed == {"gpu01"}
    assert fleet.apply(scheduled_task.running, path=PATH).changed == set()
    assert fleet.apply(scheduled_task.stopped, path=PATH, disable=True).changed == {"gpu01"}
    assert box(fleet).changes()[-2:] == ["Disable-BoxTask", "Stop-BoxTask"]
    assert fleet.apply(scheduled_task.stopped, path=PATH, disable=True).changed == set()
    assert fleet.apply(scheduled_task.running, path=PATH).failed == {"gpu01"}
    assert "is disabled" in caplog.text
    assert fleet.apply(scheduled_task.enabled, paths=[PATH]).changed == {"gpu01"}
    assert fleet.apply(scheduled_task.enabled, paths=[PATH]).changed == set()
    assert fleet.apply(scheduled_task.absent, paths=[PATH]).changed == {"gpu01"}
    assert fleet.apply(scheduled_task.absent, paths=[PATH]).changed == set()


def test_starting_a_missing_task_names_it(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    assert fleet.apply(scheduled_task.running, path="NInferServe").failed == {"gpu01"}
    assert "there is no task \\NInferServe to start" in caplog.text


def test_a_task_that_does_not_come_up_is_a_failure(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    fleet.apply(scheduled_task.present, tasks=[serve_task()])
    box(fleet).forget_writes = True
    assert fleet.apply(scheduled_task.running, path=PATH, timeout_s=0.0).failed == {"gpu01"}
    assert "was started but does not run" in caplog.text
    assert "has never run" in caplog.text


def test_a_password_is_sent_with_a_registration_and_never_shown(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    stored = serve_task(principal=Principal(user=USER, logon_type="Password"))
    assert fleet.apply(scheduled_task.present, tasks=[stored]).failed == {"gpu01"}
    assert "give it in passwords, or use S4U" in caplog.text
    secret = {".\\Administrator": HiddenValue("example-only")}  # type: ignore[no-untyped-call]
    declared = serve_task(principal=Principal(user=".\\Administrator", logon_type="Password"))
    outcome = fleet.apply(scheduled_task.present, check=True, diff=True, tasks=[declared], passwords=secret)
    assert (outcome.changed, outcome.failed) == ({"gpu01"}, set())
    assert fleet.apply(scheduled_task.present, tasks=[declared], passwords=secret).changed == set()
    sent = [call for call in box(fleet).calls if call.command in ("Test-BoxTask", "Register-BoxTask")]
    assert {call.request()["parameters"].get("Password") for call in sent} == {"example-only"}
    assert "example-only" not in caplog.text
    assert all("example-only" not in str(call) for call in sent)
    unrelated = Task(PATH, description="new words")
    assert fleet.apply(scheduled_task.present, tasks=[unrelated]).failed == {"gpu01"}
    assert "Windows wants it at each registration" in caplog.text
    assert fleet.apply(scheduled_task.present, tasks=[unrelated], passwords=secret).changed == {"gpu01"}


def test_settings_can_be_taken_back(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    fleet.apply(scheduled_task.present, tasks=[serve_task()])
    lists = frozenset({"restart_interval", "restart_count", "priority"})
    bare = Task(PATH, settings=Settings(absent=lists))
    assert fleet.apply(scheduled_task.present, check=True, diff=True, tasks=[bare]).changed == {"gpu01"}
    assert "- settings.restart_count: 3" in caplog.text
    assert "RestartOnFailure" not in box(fleet).sim.windows.scheduler.get(PATH)["Xml"]
    assert observed(fleet).settings.priority == 7
    assert fleet.apply(scheduled_task.present, tasks=[bare]).changed == set()


def test_findings_change_nothing(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    task = serve_task()
    fleet.apply(scheduled_task.examined, tasks=[task])
    assert "task \\NInferServe: is not registered" in caplog.text
    fleet.apply(scheduled_task.present, tasks=[task])
    sim = box(fleet).sim
    sim.windows.scheduler.log.enable()
    for number, values in ((322, {}), (322, {}), (329, {}), (201, {"ResultCode": 0})):
        sim.windows.scheduler.log.write(number, PATH, **values)
    sim.windows.scheduler.log.write(203, PATH, ResultCode=0x80070002)
    sim.store.set("tasks", PATH.lower(), "LastTaskResult", value=0xC000013A)
    caplog.clear()
    outcome = fleet.apply(scheduled_task.examined, tasks=[task])
    assert (outcome.changed, outcome.failed) == (set(), set())
    for text in (
        "its last run ended with 0xC000013A (its console or session was closed)",
        "is a service, and no instance of it runs",
        "event 322: a start was ignored: an instance ran already, 2 times",
        "(its repeating trigger does that while it runs)",
        "event 329: ended by its time limit, 1 times",
        "event 203: an action could not be started, 1 times",
        "0x80070002 (the file was not found)",
    ):
        assert text in caplog.text
    box(fleet).running.add(PATH.lower())
    caplog.clear()
    fleet.apply(scheduled_task.examined, tasks=[task])
    assert "counts as running, but its process 4711 is gone" in caplog.text
    assert box(fleet).changes() == ["Register-BoxTask"]


def test_what_is_odd_is_noted_beside_a_change(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    fleet.apply(scheduled_task.present, tasks=[serve_task()])
    box(fleet).sim.store.set("tasks", PATH.lower(), "LastTaskResult", value=0x800710E0)
    fleet.plan(scheduled_task.present, tasks=[serve_task(description="new words")])
    assert "note: task \\NInferServe: its last run ended with 0x800710E0 (the operator refused" in caplog.text
