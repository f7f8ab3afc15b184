from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from windows_fleet import Fleet, WindowsBox

from ninfer_fleet.owner import OWNER
from winfleet import job
from winfleet.job.model import Environment, Run, job_hash

FOLDER = r"C:\ninfer\jobs\build"
STEPS = [Environment("vs", r"C:\VS\vcvars64.bat"), Run("configure", r"C:\cmake.exe", ("-S", "src"))]
HASH = job_hash(STEPS)
RUN: dict[str, Any] = {
    "path": FOLDER,
    "steps": STEPS,
    "owner": OWNER,
    "title": "build",
    "poll_s": 0.0,
    "report_s": 0.0,
}


@pytest.fixture
def fleet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Fleet:
    caplog.set_level(logging.INFO, logger="pyinfra")
    return Fleet(tmp_path, "gpu01")


def box(fleet: Fleet) -> WindowsBox:
    return fleet.boxes["gpu01"]


def running(step: str, log: str = "") -> dict[str, Any]:
    return {"State": "running", "Hash": HASH, "Step": step, "Log": log}


def done(code: int, log: str = "", step: str = "configure") -> dict[str, Any]:
    return {"State": "done", "Hash": HASH, "ExitCode": code, "Step": step, "Log": log}


def test_a_job_is_started_and_followed_to_its_end(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    box(fleet).jobs[FOLDER] = [
        {"State": "absent"},
        running("vs"),
        running("configure", "one\ntwo\n"),
        done(0, "one\ntwo\nend\n"),
    ]
    outcome = fleet.apply(job.run, **RUN)
    assert (outcome.changed, outcome.failed) == ({"gpu01"}, set())
    started = box(fleet).started_jobs[0]
    assert started["Hash"] == HASH
    assert started["TaskPath"] == r"\NInferFleet\Job-build"
    assert started["Steps"] == [step.step() for step in STEPS]
    assert "build [1/2 vs" in caplog.text
    assert "build [2/2 configure, 0 s]: two" in caplog.text
    assert "build: done" in caplog.text
    assert fleet.apply(job.run, **RUN).changed == set()


def test_a_running_job_with_the_same_steps_is_attached_to(fleet: Fleet) -> None:
    box(fleet).jobs[FOLDER] = [running("vs"), running("configure"), done(0)]
    assert fleet.apply(job.run, **RUN).failed == set()
    assert box(fleet).started_jobs == []


def test_a_failed_job_shows_its_log_and_the_remedy_and_starts_anew(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    log = "".join(f"line {number}\n" for number in range(100)) + "error: no CUDA\n"
    box(fleet).jobs[FOLDER] = [{"State": "absent"}, running("configure", log), done(2, log)]
    assert fleet.apply(job.run, **RUN, remedy="install CUDA 13.3").failed == {"gpu01"}
    assert "build: step configure ended with code 2" in caplog.text
    assert "| error: no CUDA" in caplog.text
    assert "| line 50" not in caplog.text
    assert "install CUDA 13.3" in caplog.text
    assert fleet.plan(job.run, **RUN).changed == {"gpu01"}
    assert "- state: done, exit code 2" in caplog.text


def test_a_lost_job_says_so(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    box(fleet).jobs[FOLDER] = [{"State": "absent"}, {"State": "lost", "Hash": HASH, "Step": "vs"}]
    assert fleet.apply(job.run, **RUN).failed == {"gpu01"}
    assert "lost in step vs" in caplog.text


def test_another_job_in_the_folder_is_refused(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    box(fleet).jobs[FOLDER] = [{**running("vs"), "Hash": "other"}]
    assert fleet.plan(job.run, **RUN).failed == {"gpu01"}
    assert "another job runs" in caplog.text
    assert fleet.apply(job.stopped, path=FOLDER).changed == {"gpu01"}
    assert fleet.apply(job.stopped, path=FOLDER).changed == set()


def test_following_ends_at_the_deadline_and_the_job_goes_on(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    box(fleet).jobs[FOLDER] = [{"State": "absent"}, running("vs")]
    assert fleet.apply(job.run, **RUN, timeout_s=0.0).failed == {"gpu01"}
    assert "it goes on on the box" in caplog.text
    assert "Stop-BoxJob" not in box(fleet).changes()


def test_a_job_that_is_not_needed_sends_nothing(fleet: Fleet) -> None:
    assert fleet.apply(job.run, **RUN, needed=False).changed == set()
    assert box(fleet).calls == []


@pytest.mark.parametrize("steps", [[], [Run("a", "cmake.exe")], [STEPS[0], STEPS[0]]])
def test_faulty_steps_are_refused(fleet: Fleet, steps: list[Any]) -> None:
    assert fleet.plan(job.run, path=FOLDER, steps=steps, owner=OWNER).failed == {"gpu01"}
    assert box(fleet).calls == []
