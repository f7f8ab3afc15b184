"""A fault of one box ends that box's part and nothing else: plan, -y, interactive; some or all boxes."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from windows_fleet import Fleet

from winfleet.call import Call
from winfleet.current import box
from winfleet.fact import read
from winfleet.files.fact import Files
from winfleet.operation import box_operation
from winfleet.refusal import BoxError, FactUnreadable, Refused

SICK = "gpu02"
FOLDER = r"C:\made"


@box_operation()
def refuses(boxes: list[str], error: type[Exception] = Refused) -> Iterator[Any]:
    """Refused on the named boxes, else makes a folder."""
    if box().name in boxes:
        raise error("found a 4090, wanted a 4090 D; take the box out of the fleet")
    if read(Files, paths=[FOLDER])[FOLDER].exists:
        return
    yield Call("New-BoxDirectory", Path=[FOLDER])


@box_operation()
def breaks_later() -> Iterator[Any]:
    """Finds out after its first change that it did not work."""
    yield Call("New-BoxDirectory", Path=[FOLDER])
    raise BoxError("the folder is not there")


@pytest.fixture
def fleet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Fleet:
    caplog.set_level(logging.INFO, logger="pyinfra")
    return Fleet(tmp_path, "gpu01", SICK, "gpu03")


@pytest.mark.parametrize("error", [Refused, FactUnreadable, BoxError, RuntimeError, KeyError])
def test_the_others_go_on(fleet: Fleet, caplog: pytest.LogCaptureFixture, error: type[Exception]) -> None:
    planned = fleet.plan(refuses, boxes=[SICK], error=error)
    assert (planned.failed, planned.changed) == ({SICK}, {"gpu01", "gpu03"})
    applied = fleet.apply(refuses, boxes=[SICK], error=error)
    assert (applied.failed, applied.changed, applied.aborted) == ({SICK}, {"gpu01", "gpu03"}, None)
    assert "[gpu02]" in caplog.text
    assert "wanted a 4090 D" in caplog.text
    assert "Traceback" not in caplog.text
    interactive = fleet.apply(refuses, check=True, boxes=[SICK], error=error)
    assert (interactive.failed, interactive.aborted) == ({SICK}, None)


def test_all_boxes_may_fail_in_a_plan(fleet: Fleet) -> None:
    everyone = ["gpu01", SICK, "gpu03"]
    assert fleet.plan(refuses, boxes=everyone).failed == set(everyone)
    interactive = fleet.apply(refuses, check=True, boxes=everyone)
    assert (interactive.failed, interactive.aborted) == (set(everyone), None)
    assert fleet.apply(refuses, boxes=everyone).failed == set(everyone)


def test_a_fault_after_the_first_change_fails_the_operation(fleet: Fleet) -> None:
    outcome = fleet.apply(breaks_later)
    assert outcome.failed == {"gpu01", SICK, "gpu03"}
    assert outcome.changed == set()


def test_an_unreadable_fact_is_never_a_default(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    fleet.boxes[SICK].unreachable = True
    outcome = fleet.plan(refuses, boxes=[])
    assert (outcome.failed, outcome.changed) == ({SICK}, {"gpu01", "gpu03"})
    assert "Transport: connection refused" in caplog.text
    outcome = fleet.apply(refuses, boxes=[])
    assert (outcome.failed, outcome.changed) == ({SICK}, {"gpu01", "gpu03"})
    assert fleet.boxes[SICK].changes() == []


INVENTORY = """
answers = {{"Get-BoxFile": {answer!r}}}
boxes = [(f"@fake/{{name}}", {{"fake_responses": answers, "fake_delay": 0.0, "fake_delay_jitter": 0.0}})
         for name in ("gpu01", "gpu02", "gpu03")]
"""
DEPLOY = """
from test_refusal import refuses
refuses(name="first", boxes={boxes!r})
refuses(name="second", boxes=[])
"""
ABSENT = json.dumps({"ok": True, "value": [{"Path": FOLDER, "Kind": "absent", "Attributes": []}]})


def pyinfra(
    tmp_path: Path, boxes: list[str], *options: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command line itself, with input that is no terminal."""
    (tmp_path / "hosts.py").write_text(INVENTORY.format(answer=ABSENT))
    (tmp_path / "deploy.py").write_text(DEPLOY.format(boxes=boxes))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYINFRA_PROGRESS": "off"}
    return subprocess.run(
        [sys.executable, "-m", "pyinfra", "hosts.py", "deploy.py", *options],
        cwd=tmp_path,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("options", [["--dry"], ["-y"], ["--dry", "--json"], []], ids=str)
def test_exit_code_and_healthy_boxes_on_the_command_line(tmp_path: Path, options: list[str]) -> None:
    # One line feed answers the question before execution; nothing answers later ones.
    result = pyinfra(tmp_path, ["@fake/gpu02"], *options, stdin="\n")
    output = result.stdout + result.stderr
    assert result.returncode == 1, output
    assert "refuses: found a 4090, wanted a 4090 D" in output
    assert "Traceback" not in output
    if "--dry" not in options:
        assert "[@fake/gpu01] Success" in output
        assert "[@fake/gpu03] Success" in output
        assert "[@fake/gpu02] Success" not in output


@pytest.mark.parametrize("options", [["--dry"], ["-y"], ["--dry", "--json"], []], ids=str)
def test_exit_code_when_all_boxes_fail(tmp_path: Path, options: list[str]) -> None:
    everyone = ["@fake/gpu01", "@fake/gpu02", "@fake/gpu03"]
    result = pyinfra(tmp_path, everyone, *options, stdin="\n")
    output = result.stdout + result.stderr
    assert result.returncode == 1, output
    assert output.count("refuses: found a 4090, wanted a 4090 D") == 3
    assert "Traceback" not in output


def test_healthy_fleet_exits_with_zero(tmp_path: Path) -> None:
    result = pyinfra(tmp_path, [], "--dry")
    assert result.returncode == 0, result.stdout + result.stderr
