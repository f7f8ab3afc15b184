"""Stopping and starting the server on a python box: what hinders it, and what is left when it fails."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from powershell import EngineBox, engine_box
from test_task_operations import Place
from windows_fleet import Fleet

from ninfer_fleet.server import launcher, stopping
from ninfer_fleet.server import operations as serve
from ninfer_fleet.settings import Settings
from simbox.mirror import artifact_bytes
from simbox.programs import image
from simbox.programs.ninja import DLLS
from winfleet.call import Call
from winfleet.operation import box_operation
from winfleet.task import operations as scheduled_task
from winfleet.task.model import Settings as TaskSettings

TEMPLATE = Path(__file__).parents[2] / "templates" / "serve_task.bat.j2"
BY_HAND = b"do not start: the card is being tested\r\n"


def settings(**task: Any) -> Settings:
    return Settings.model_validate(
        {
            "serve": {"api_key": "env:NINFER_API_KEY", "port": 18090},
            "task": {"account": "Administrator", "shortest_backoff_s": 1, "longest_backoff_s": 1, **task},
        }
    )


DECLARED = settings()
FLAG = DECLARED.layout.stop_flag


class Hindered(Place):
    """A place on which a command may be given to somebody else than the box."""

    def __init__(self, box: EngineBox) -> None:
        super().__init__(box)
        self.instead: dict[str, Callable[[Call], dict[str, Any] | None]] = {}

    def answer(self, call: Call) -> dict[str, Any]:
        other = self.instead[call.command](call) if call.command in self.instead else None
        return super().answer(call) if other is None else other


@pytest.fixture(scope="module")
def box() -> Iterator[EngineBox]:
    with engine_box("python") as box:
        files, layout = box.box.filesystem, DECLARED.layout
        for folder in (*layout.folders(), layout.current):
            files.make_directory(folder)
        for name in DLLS:
            files.write(f"{layout.current}\\{name}", b"MZ")
        files.write(layout.executable, image(box.box))
        files.write(DECLARED.model_path, artifact_bytes())
        files.write(layout.key_file, b"test-key-that-opens-nothing-7d1f\r\n")
        files.write(layout.draft_file, b"7\r\n")
        files.write(layout.launcher, launcher.render(DECLARED, TEMPLATE))
        yield box


@pytest.fixture
def place(box: EngineBox, caplog: pytest.LogCaptureFixture) -> Hindered:
    """The server runs as declared."""
    caplog.set_level(logging.INFO, logger="pyinfra")
    place = Hindered(box)
    fleet = Fleet.of({"gpu01": place})
    for name in (FLAG, DECLARED.layout.draft_file, DECLARED.layout.key_file):
        if box.host(name).exists():
            os.utime(box.host(name))
    assert fleet.apply(scheduled_task.present, tasks=[serve.task(DECLARED)]).failed == set()
    assert fleet.apply(serve.ready, box=DECLARED).failed == set(), caplog.text
    assert not box.host(FLAG).exists()
    place.changes.clear()
    caplog.clear()
    return place


@pytest.fixture
def fleet(place: Hindered) -> Fleet:
    return Fleet.of({"gpu01": place})


def server(place: Place) -> int | None:
    found = place.box.call("Get-BoxProcess", Name=["ninfer-serve.exe"])
    return int(found[0]["ProcessId"]) if found else None


def refuse(call: Call) -> dict[str, Any]:
    return {"ok": False, "error": {"type": "Refused", "message": f"{call.command} is hindered"}}


def set_clock(place: Place, path: str, ahead_s: float) -> None:
    when = time.time() + ahead_s
    os.utime(place.box.host(path), (when, when))


def test_a_server_that_answers_is_asked_for_nothing(fleet: Fleet, place: Hindered) -> None:
    assert fleet.apply(serve.ready, box=DECLARED).changed == set()
    assert place.changes == []


def test_a_server_with_another_priority_than_declared_is_told(
    fleet: Fleet, place: Hindered, caplog: pytest.LogCaptureFixture
) -> None:
    slow = serve.task(DECLARED).replaced(settings=TaskSettings(priority=7))
    assert fleet.apply(scheduled_task.present, tasks=[slow.replaced(service=False)]).changed == {"gpu01"}
    set_clock(place, DECLARED.layout.draft_file, 0)
    assert fleet.apply(serve.ready, box=DECLARED).changed == {"gpu01"}
    assert fleet.apply(scheduled_task.present, tasks=[serve.task(DECLARED)]).changed == {"gpu01"}
    caplog.clear()
    assert fleet.apply(serve.ready, box=DECLARED).changed == set()
    assert "(ninfer-serve.exe) runs with priority class BelowNormal, not Normal (priority 4)" in caplog.text
    set_clock(place, DECLARED.layout.draft_file, 0)
    assert fleet.apply(serve.ready, box=DECLARED).changed == {"gpu01"}
    caplog.clear()
    assert fleet.apply(serve.ready, box=DECLARED).changed == set()
    assert "priority class" not in caplog.text


def test_a_file_from_the_future_restarts_nothing_and_one_from_now_does(fleet: Fleet, place: Hindered) -> None:
    first = server(place)
    set_clock(place, DECLARED.layout.key_file, 3600)
    assert fleet.plan(serve.ready, box=DECLARED).changed == set()
    assert fleet.apply(serve.ready, box=DECLARED).changed == set()
    assert server(place) == first
    set_clock(place, DECLARED.layout.draft_file, 0)
    outcome = fleet.apply(serve.ready, box=DECLARED)
    assert (outcome.changed, outcome.failed) == ({"gpu01"}, set())
    assert server(place) not in (None, first)
    assert fleet.apply(serve.ready, box=DECLARED).changed == set()


def test_a_clock_set_back_during_the_restart_does_not_fail_it(
    fleet: Fleet, place: Hindered, caplog: pytest.LogCaptureFixture
) -> None:
    """The file lies in the box's past again before the new server has answered."""
    set_clock(place, DECLARED.layout.draft_file, 0)
    place.instead["Start-BoxTask"] = lambda call: set_clock(place, DECLARED.layout.key_file, 0.5)
    assert fleet.apply(serve.ready, box=DECLARED).failed == set(), caplog.text


def test_one_token_is_asked_for_after_a_start_only(fleet: Fleet, place: Hindered) -> None:
    set_clock(place, DECLARED.layout.draft_file, 0)
    assert fleet.apply(serve.ready, box=DECLARED).failed == set()
    assert place.changes.count("Invoke-BoxHttp") == 1
    place.changes.clear()
    set_clock(place, DECLARED.layout.draft_file, 0)
    assert fleet.apply(serve.ready, box=settings(prove_generation=False)).changed == {"gpu01"}
    assert "Invoke-BoxHttp" not in place.changes


def test_a_server_that_does_not_generate_fails_the_box(
    fleet: Fleet, place: Hindered, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"StatusCode": 500, "Headers": {}, "Body": "", "ErrorKind": None, "ErrorMessage": None}
    place.instead["Invoke-BoxHttp"] = lambda call: {"ok": True, "value": body}
    set_clock(place, DECLARED.layout.draft_file, 0)
    assert fleet.apply(serve.ready, box=DECLARED).failed == {"gpu01"}
    assert "is not ready: /v1/chat/completions: HTTP 500 instead of 200" in caplog.text
    assert "the task \\NInferServe: the scheduler's log is switched off" in caplog.text


@pytest.mark.parametrize("timeout_s", [0.0, 0.1])
def test_what_stopped_during_a_look_that_took_too_long_counts_as_stopped(
    fleet: Fleet,
    place: Hindered,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    timeout_s: float,
) -> None:
    monkeypatch.setattr(stopping, "STOP_TIMEOUT_S", timeout_s)

    def late(call: Call) -> None:
        time.sleep(0.3)

    place.instead["Stop-BoxProcess"] = late
    assert fleet.apply(serve.stopped, box=DECLARED).failed == set(), caplog.text
    assert server(place) is None
    assert place.box.host(FLAG).read_bytes() == stopping.STOP_TEXT


@pytest.mark.parametrize("command", ["Set-BoxFile", "Stop-BoxTask", "Stop-BoxProcess", "Get-BoxProcess"])
@pytest.mark.parametrize("op", [serve.stopped, serve.ready], ids=["stopped", "ready"])
def test_no_stop_that_fails_leaves_the_flag(
    fleet: Fleet, place: Hindered, caplog: pytest.LogCaptureFixture, command: str, op: Any
) -> None:
    set_clock(place, DECLARED.layout.draft_file, 0)
    reads = command.startswith("Get-")

    def hinder(call: Call) -> dict[str, Any] | None:
        return refuse(call) if not reads or place.box.host(FLAG).exists() else None

    place.instead[command] = hinder
    assert fleet.apply(op, box=DECLARED).failed == {"gpu01"}
    assert f"{command} is hindered" in caplog.text
    assert not place.box.host(FLAG).exists()
    if command != "Set-BoxFile":
        assert "the task starts ninfer-serve within 1 min" in caplog.text


def test_a_server_that_cannot_be_stopped_leaves_no_flag(
    fleet: Fleet, place: Hindered, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stopping, "STOP_TIMEOUT_S", 0.0)
    alive = {"ok": True, "value": {"Stopped": False, "ExitCode": None}}
    place.instead["Stop-BoxProcess"] = lambda call: alive
    assert fleet.apply(serve.stopped, box=DECLARED).failed == {"gpu01"}
    assert "still runs 0 s after it was stopped" in caplog.text
    assert not place.box.host(FLAG).exists()


def test_a_flag_that_cannot_be_taken_away_is_told(
    fleet: Fleet, place: Hindered, caplog: pytest.LogCaptureFixture
) -> None:
    place.instead |= {"Stop-BoxTask": refuse, "Remove-BoxItem": refuse}
    assert fleet.apply(serve.stopped, box=DECLARED).failed == {"gpu01"}
    assert f"{FLAG} may be left: while it is there ninfer-serve stays down" in caplog.text
    assert place.box.host(FLAG).exists()


def test_a_flag_of_somebody_else_stays_when_the_stop_fails(fleet: Fleet, place: Hindered) -> None:
    place.box.box.filesystem.write(FLAG, BY_HAND)
    place.instead["Stop-BoxTask"] = refuse
    assert fleet.apply(serve.stopped, box=DECLARED).failed == {"gpu01"}
    assert place.box.host(FLAG).read_bytes() == BY_HAND


def test_a_launcher_that_cannot_be_replaced_leaves_no_flag(
    fleet: Fleet, place: Hindered, caplog: pytest.LogCaptureFixture
) -> None:
    def hinder(call: Call) -> dict[str, Any] | None:
        return refuse(call) if call.parameters["Path"] == DECLARED.layout.launcher else None

    place.instead["Set-BoxFile"] = hinder
    other = settings(calm_minutes=77)
    assert fleet.apply(serve.launcher, box=other, template=str(TEMPLATE)).failed == {"gpu01"}
    assert "Stop-BoxTask" in place.changes
    assert "Set-BoxFile is hindered" in caplog.text
    assert not place.box.host(FLAG).exists()


@box_operation()
def replaced_and_more(box: Settings) -> Iterator[Any]:
    """As a later operation of deploy.py that fails."""
    yield from serve.launcher._inner(box=box, template=str(TEMPLATE))
    yield Call("Stop-BoxTask", TaskPath="\\None")


@box_operation()
def stopped_and_more(box: Settings) -> Iterator[Any]:
    """As a later operation of teardown.py that fails."""
    yield from serve.stopped._inner(box=box)
    yield Call("Stop-BoxTask", TaskPath="\\None")


def test_what_fails_between_launcher_and_start_leaves_no_flag(
    fleet: Fleet, place: Hindered, caplog: pytest.LogCaptureFixture
) -> None:
    assert fleet.apply(replaced_and_more, box=settings(calm_minutes=78)).failed == {"gpu01"}
    assert b'"CALM=78"' in place.box.host(DECLARED.layout.launcher).read_bytes()
    assert not place.box.host(FLAG).exists()
    assert f"{FLAG} is gone again: the task starts ninfer-serve within 1 min" in caplog.text


def test_a_server_that_was_to_be_stopped_stays_down_whatever_fails_later(
    fleet: Fleet, place: Hindered
) -> None:
    assert fleet.apply(stopped_and_more, box=DECLARED).failed == {"gpu01"}
    assert place.box.host(FLAG).read_bytes() == stopping.STOP_TEXT
    assert server(place) is None


def test_a_plan_leaves_everything_as_it_is(fleet: Fleet, place: Hindered) -> None:
    set_clock(place, DECLARED.layout.draft_file, 0)
    assert fleet.plan(serve.ready, box=DECLARED).changed == {"gpu01"}
    assert fleet.plan(serve.stopped, box=DECLARED).changed == {"gpu01"}
    assert place.changes == []
