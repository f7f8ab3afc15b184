"""A deploy that is killed at any moment is completed by the next one, and leaves no shell behind."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from fleet import ROOT, Fleet

BOXES = [f"gpu0{number}" for number in range(1, 6)]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    number = 160 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), f"127.0.{number}", ["rtx4090d"] * len(BOXES))
    yield fleet
    fleet.down()


def test_boxes_killed_at_five_moments_converge_with_the_next_run(fleet: Fleet) -> None:
    """One box a kill, so that each moment is followed by nothing but the run that has to mend it."""
    seed = int(os.environ.get("NINFER_FLEET_TEST_SEED", "20260901"))
    moments = random.Random(seed)
    kills = {box: moments.randint(12, 60) for box in BOXES}
    for box, lines in kills.items():
        _kill_after(fleet, box, lines)
    done = fleet.pyinfra("-y", json_results=True)
    assert done.code == 0, f"killed after so many lines of output: {kills}\n{done.text}"
    again = fleet.pyinfra("-y", json_results=True)
    assert again.results["results"]["totals"]["success"] == 0, again.text
    assert {row["name"]: row["shells"] for row in fleet.ask("status")} == dict.fromkeys(BOXES, 0)


@pytest.mark.wine
@pytest.mark.timeout(580)  # a whole deploy and five more starts of a real PowerShell
def test_a_box_with_a_real_powershell_killed_five_times_converges(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Each run goes on where the one before was killed, so that the moments spread over the whole deploy."""
    from simbox.engines.wine import locate

    try:
        locate.locate()
    except locate.Missing as missing:
        pytest.skip(str(missing))
    moments = random.Random(int(os.environ.get("NINFER_FLEET_TEST_SEED", "20260901")))
    number = 150 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), f"127.0.{number}", ["rtx4090d"], "wine")
    try:
        kills = [moments.randint(12, 40) for _ in range(5)]
        for lines in kills:
            _kill_after(fleet, BOXES[0], lines)
        done = fleet.pyinfra("-y", json_results=True)
        assert done.code == 0, f"killed after so many lines of output: {kills}\n{done.text}"
        again = fleet.pyinfra("-y", json_results=True)
        assert again.results["results"]["totals"]["success"] == 0, again.text
        assert [row["shells"] for row in fleet.ask("status")] == [0]
    finally:
        fleet.down()


def _kill_after(fleet: Fleet, box: str, lines: int) -> None:
    """Kill a deploy of one box once it has printed that many lines (or let it end before)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pyinfra", "inventory", "deploy.py", "-y", "--limit", box],
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
