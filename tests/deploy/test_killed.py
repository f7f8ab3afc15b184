"""A deploy that is killed at any moment is completed by the next one, and leaves no shell behind."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from fleet import ROOT, Fleet

BOX = "gpu01"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    number = 160 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), f"127.0.{number}", ["rtx4090d"])
    yield fleet
    fleet.down()


def test_five_killed_runs_and_one_more_converge(fleet: Fleet) -> None:
    seed = int(os.environ.get("NINFER_FLEET_TEST_SEED", "20260901"))
    moments = random.Random(seed)
    kills = []
    for _ in range(5):
        lines = moments.randint(12, 60)
        kills.append(lines)
        _kill_after(fleet, lines)
    done = fleet.pyinfra("-y", json_results=True)
    assert done.code == 0, f"killed after {kills} lines of output:\n{done.text}"
    again = fleet.pyinfra("-y", json_results=True)
    assert again.results["results"]["totals"]["success"] == 0, again.text
    status = next(row for row in fleet.ask("status") if row["name"] == BOX)
    assert status["shells"] == 0


def _kill_after(fleet: Fleet, lines: int) -> None:
    """Kill a deploy once it has printed that many lines (or let it end before)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pyinfra", "inventory", "deploy.py", "-y"],
        cwd=ROOT,
        env=fleet.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    with process.stderr:
        for _ in range(lines):
            if not process.stderr.readline():
                break
        process.kill()
    process.wait()
