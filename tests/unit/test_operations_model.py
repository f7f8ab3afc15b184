"""The model artifact, whatever an earlier try left in its place or beside it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from windows_fleet import Fleet, WindowsBox

from ninfer_fleet.model import operations as model
from ninfer_fleet.settings import Settings
from simbox.filesystem import Filesystem
from winfleet.job.model import job_hash

GOOD = b"NINFER\0\x02and more"
BOX = Settings.model_validate({"serve": {"api_key": "env:X"}})
BOX = BOX.model_copy(update={"model": BOX.model.model_copy(update={"size_bytes": len(GOOD)})})
PART = f"{BOX.model_path}.part"
FOLDER = rf"{BOX.layout.jobs}\model"
CURL = r"C:\Windows\System32\curl.exe"


@pytest.fixture
def fleet(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    caplog.set_level(logging.INFO, logger="pyinfra")
    monkeypatch.setattr(model, "_curl", lambda box: CURL)
    fleet = Fleet(tmp_path, "gpu01")
    files(fleet).host(BOX.layout.models).mkdir(parents=True)
    return fleet


def box(fleet: Fleet) -> WindowsBox:
    return fleet.boxes["gpu01"]


def files(fleet: Fleet) -> Filesystem:
    return box(fleet).sim.filesystem


@pytest.mark.parametrize(
    ("left", "headline", "words"),
    [
        (None, "Will fetch model", None),
        (GOOD[:4], "Will fetch model", "4 bytes from an earlier try, the rest is fetched"),
        (GOOD, "Will verify model", f"{len(GOOD)} bytes from an earlier try"),
        (GOOD + b"x", "Will fetch model", "more than there should be: deleted and fetched anew"),
    ],
)
def test_the_plan_says_what_becomes_of_the_part(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, left: bytes | None, headline: str, words: str | None
) -> None:
    if left is not None:
        files(fleet).host(PART).write_bytes(left)
    assert fleet.plan(model.present, box=BOX).changed == {"gpu01"}
    assert headline in caplog.text
    assert words is None or words in caplog.text


def test_a_file_at_the_place_takes_the_place_of_a_part(fleet: Fleet) -> None:
    files(fleet).host(BOX.model_path).write_bytes(GOOD)
    files(fleet).host(PART).write_bytes(b"of an earlier try")
    steps = model.steps(BOX, None)
    box(fleet).jobs[FOLDER] = [
        {"State": "absent"},
        {"State": "absent"},
        {"State": "done", "Hash": job_hash(steps), "ExitCode": 0},
    ]
    assert fleet.apply(model.present, box=BOX).failed == set()
    assert box(fleet).changes() == ["Remove-BoxItem", "Move-BoxItem", "Start-BoxJob"]
    assert files(fleet).host(PART).read_bytes() == GOOD
    assert box(fleet).started_jobs[0]["Steps"] == [step.step() for step in steps]


def test_a_verification_that_was_cut_off_is_followed_not_refused(fleet: Fleet) -> None:
    # The artifact has been moved to its part by the run that started this job.
    files(fleet).host(PART).write_bytes(GOOD)
    running = {"State": "running", "Hash": job_hash(model.steps(BOX, None)), "Step": "verify"}
    box(fleet).jobs[FOLDER] = [running] * 4 + [{**running, "State": "done", "ExitCode": 0}]
    assert fleet.apply(model.present, box=BOX).failed == set()
    assert box(fleet).started_jobs == []
