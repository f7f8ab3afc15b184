"""A plan is only a plan: a box is the same afterwards, byte for byte, but for its event log."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import Fleet

BOX = "gpu01"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    number = 210 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), f"127.0.{number}", ["rtx4090d"])
    yield fleet
    fleet.down()


def everything(fleet: Fleet) -> dict[str, tuple[object, ...]]:
    """Disk, registry, store and whatever else is in the folder of the box: kind, mode, times, content."""
    events = Path(fleet.box(BOX)["events"])
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(events.parent.rglob("*")):
        if path == events:
            continue
        about = path.lstat()
        content = ""
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        name = str(path.relative_to(events.parent))
        found[name] = (about.st_mode, about.st_uid, about.st_mtime_ns, about.st_ino, content)
    return found


def plan(fleet: Fleet, deploy: str) -> None:
    """Two plans, in both ways to ask for one; the box is compared around them."""
    before = everything(fleet)
    assert "state.json" in before, "tasks, rules, access lists and the registry of a python box"
    for arguments in (("--dry", "--diff"), ("--dry", "--debug-facts")):
        done = fleet.pyinfra(*arguments, deploy=deploy)
        assert done.code == 0, done.text
        assert everything(fleet) == before, arguments


@pytest.mark.parametrize("deploy", ["deploy.py", "deploys/teardown.py"])
def test_on_a_fresh_box(fleet: Fleet, deploy: str) -> None:
    plan(fleet, deploy)


def test_on_a_box_that_serves_and_on_one_that_drifted(fleet: Fleet) -> None:
    assert fleet.pyinfra("-y").code == 0
    plan(fleet, "deploy.py")
    plan(fleet, "deploys/teardown.py")
    assert len(fleet.ask("drift", box=BOX)) == 3
    plan(fleet, "deploy.py")
    assert "Launcher" in fleet.pyinfra("--dry", "--diff").text
