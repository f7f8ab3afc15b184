"""Task operations on boxes with a scheduler of their own: each declared field changed by hand in turn."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from full_task import FULL, PATH, mutations
from powershell import EngineBox
from windows_fleet import Fleet

from winfleet.account.model import AccountSids
from winfleet.call import Call
from winfleet.task import operations as scheduled_task
from winfleet.task.merge import merged_task
from winfleet.task.model import Exec, Principal, Settings, Task
from winfleet.task.render import render_task
from winfleet.task.trigger import TimeTrigger

MUTATIONS = list(mutations())
CMD = r"C:\Windows\System32\cmd.exe"
JOB = Task(
    r"\Contract operations\Job",
    actions=(Exec(CMD, "/d /c ping -n 120 127.0.0.1"),),
    principal=Principal(user="SYSTEM"),
    settings=Settings(priority=4, execution_time_limit=0),
    description="first words",
)


class Place:
    """Answers an operation's calls by an engine's loop."""

    unreachable = False

    def __init__(self, box: EngineBox) -> None:
        self.box = box
        self.changes: list[str] = []

    def answer(self, call: Call) -> dict[str, Any]:
        if not call.reads:
            self.changes.append(call.command)
        (answer,) = self.box.reply(call.command, call.payload, **call.request()["parameters"]).answers
        return dict(answer)


@pytest.fixture
def place(box: EngineBox, caplog: pytest.LogCaptureFixture) -> Place:
    caplog.set_level(logging.INFO, logger="pyinfra")
    return Place(box)


@pytest.fixture
def fleet(place: Place) -> Fleet:
    return Fleet.of({"gpu01": place})


@pytest.mark.parametrize(("field", "drifted"), MUTATIONS, ids=[name for name, _ in MUTATIONS])
def test_each_declared_field_is_named_and_repaired(
    fleet: Fleet, place: Place, caplog: pytest.LogCaptureFixture, field: str, drifted: Task
) -> None:
    by_hand = render_task(merged_task(None, drifted, AccountSids({}, {})))
    place.box.call("Register-BoxTask", TaskPath=PATH, Xml=by_hand)
    outcome = fleet.apply(scheduled_task.present, diff=True, tasks=[FULL], files_exist=False)
    # Windows' own scheduler has checked the XML, and the task was read and compared again after the change.
    assert (outcome.changed, outcome.failed) == ({"gpu01"}, set())
    assert any(f" {sign} {field}: " in line for line in caplog.text.splitlines() for sign in "-+")
    assert place.changes == ["Register-BoxTask"]


def test_the_second_run_is_clean(fleet: Fleet, place: Place) -> None:
    fleet.apply(scheduled_task.present, tasks=[FULL])
    place.changes.clear()
    assert fleet.apply(scheduled_task.present, check=True, tasks=[FULL]).changed == set()
    assert place.changes == []
    assert fleet.apply(scheduled_task.absent, paths=[PATH]).changed == {"gpu01"}
    assert fleet.apply(scheduled_task.absent, paths=[PATH]).changed == set()


def test_W23_an_instance_survives_a_new_description_and_a_restart_is_another_process(
    fleet: Fleet, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.apply(scheduled_task.present, tasks=[JOB])
    fleet.apply(scheduled_task.running, path=JOB.path)
    (before,) = place.box.call("Get-BoxTask", TaskPath=[JOB.path])
    caplog.clear()
    assert fleet.apply(
        scheduled_task.present, diff=True, tasks=[JOB.replaced(description="other words")]
    ).changed
    assert "until it is restarted" not in caplog.text
    (after,) = place.box.call("Get-BoxTask", TaskPath=[JOB.path])
    assert after["Instances"] == before["Instances"]
    slower = JOB.replaced(settings=Settings(priority=7))
    fleet.apply(scheduled_task.present, check=True, diff=True, tasks=[slower])
    assert "the running instance keeps its settings.priority until it is restarted" in caplog.text
    caplog.clear()
    assert fleet.apply(scheduled_task.restarted, path=JOB.path).failed == set()
    (again,) = place.box.call("Get-BoxTask", TaskPath=[JOB.path])
    old, new = (state["Instances"][0]["EnginePid"] for state in (after, again))
    assert old != new
    assert f"process {old} -> {new}" in caplog.text
    assert fleet.apply(scheduled_task.absent, paths=[JOB.path]).changed == {"gpu01"}
    (gone,) = place.box.call("Get-BoxTask", TaskPath=[JOB.path])
    assert (gone["Exists"], gone["Instances"], gone["Folders"]) == (False, [], [])


def test_what_runs_is_examined(fleet: Fleet, place: Place, caplog: pytest.LogCaptureFixture) -> None:
    watched = JOB.replaced(
        triggers=(TimeTrigger(id="later", start_boundary="2099-01-01T00:00:00"),),
        settings=Settings(priority=7),
    )
    fleet.apply(scheduled_task.present, tasks=[watched])
    fleet.apply(scheduled_task.running, path=JOB.path)
    assert fleet.apply(scheduled_task.examined, tasks=[watched]).changed == set()
    assert "the scheduler's log is switched off" in caplog.text
    assert "priority class" not in caplog.text
    caplog.clear()
    assert (
        fleet.plan(
            scheduled_task.examined, tasks=[watched], programs={JOB.path: [r"C:\no\server.exe"]}
        ).failed
        == set()
    )
    assert r"the task runs, but C:\no\server.exe does not" in caplog.text
    fleet.apply(scheduled_task.stopped, path=JOB.path)
    caplog.clear()
    fleet.apply(scheduled_task.examined, tasks=[watched])
    assert "its last run ended with 0x00041306 (was terminated by a user)" in caplog.text
    fleet.apply(scheduled_task.absent, paths=[JOB.path])


def test_W22_nothing_of_the_program_is_left_after_a_stop(fleet: Fleet, place: Place) -> None:
    ping = next(
        process["ExecutablePath"] or ""
        for process in _with_child(fleet, place)
        if process["Name"].lower() == "ping.exe"
    )
    assert ping.lower().endswith("\\ping.exe")
    assert fleet.apply(scheduled_task.stopped, path=JOB.path, programs=[ping]).failed == set()
    assert place.box.call("Get-BoxProcess", Name=["ping.exe"]) == []
    assert fleet.apply(scheduled_task.stopped, path=JOB.path, programs=[ping]).changed == set()
    fleet.apply(scheduled_task.absent, paths=[JOB.path])


def _with_child(fleet: Fleet, place: Place) -> list[dict[str, Any]]:
    fleet.apply(scheduled_task.present, tasks=[JOB])
    fleet.apply(scheduled_task.running, path=JOB.path)
    for _ in range(100):
        found: list[dict[str, Any]] = place.box.call("Get-BoxProcess", Name=["ping.exe"])
        if found:
            return found
    raise AssertionError("the task's program started nothing")
