"""What a user gets wrong on the first day is answered in one line, before any box is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import ROOT, Fleet

NETWORK = 190 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), f"127.0.{NETWORK}", ["rtx4090d"])
    yield fleet
    fleet.down()


def test_another_folder_is_refused_for_its_group_data_would_be_missing(fleet: Fleet) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pyinfra", "../inventory/fleet.py", "../deploy.py", "--dry"],
        cwd=ROOT / "docs",
        env=fleet.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"run pyinfra in {ROOT}" in done.stderr
    assert "Traceback" not in done.stderr


def test_addresses_in_use_are_named_with_what_to_do(fleet: Fleet, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pyinfra", "inventory", "deploy.py", "--dry"],
        cwd=ROOT,
        env={
            **fleet.environment(),
            "NINFER_FLEET_SIM_DIR": str(tmp_path / "other"),
            "NINFER_FLEET_SIM_NETWORK": f"127.0.{NETWORK}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"a port of 127.0.{NETWORK}.250 is in use" in done.stderr
    assert "NINFER_FLEET_SIM_NETWORK" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cache_on_a_drive_that_is_not_there_is_refused_in_the_plan(fleet: Fleet) -> None:
    plan = fleet.pyinfra("--dry", "--data", r'serve={"disk_cache_dir": "X:\\cache"}')
    assert plan.code == 1
    assert r"X:\cache is on a drive that this box does not have. Remedy:" in plan.text


def test_a_misspelt_dictionary_is_refused_for_it_would_declare_nothing(fleet: Fleet) -> None:
    done = fleet.pyinfra("--dry", "--data", 'netwrok={"allowed": ["100.64.0.7/32"]}')
    assert done.code == 1
    assert "netwrok: no such settings. Remedy: did you mean 'network'?" in done.text, done.text
