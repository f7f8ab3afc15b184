"""Access to the folders of a box: drift anywhere below the root that would let others run code is named."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from windows_fleet import Fleet, WindowsBox

from ninfer_fleet import reads
from ninfer_fleet.server import operations as serve
from ninfer_fleet.settings import Settings
from winfleet.call import Call

USER = "Administrator"
STRANGER = "S-1-5-21-7-8-9-1001"
BOX = Settings.model_validate({"serve": {"api_key": "env:X"}, "task": {"account": USER}})
FOLDERS, FILES = reads.inheriting(BOX)


@pytest.fixture
def fleet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Fleet:
    """A box on which everything stands, with the access that the deploy gives."""
    caplog.set_level(logging.INFO, logger="pyinfra")
    fleet = Fleet(tmp_path, "gpu01")
    disk = box(fleet).sim.filesystem
    for folder in [*reads.folders(BOX), *FOLDERS]:
        disk.host(folder).mkdir(parents=True, exist_ok=True)
    for file in FILES:
        disk.host(file).write_text("x")
    assert fleet.apply(serve.guarded, box=BOX).changed == {"gpu01"}
    assert fleet.apply(serve.guarded, box=BOX).changed == set()
    box(fleet).calls.clear()
    return fleet


def box(fleet: Fleet) -> WindowsBox:
    return fleet.boxes["gpu01"]


def sddl_of(fleet: Fleet, path: str) -> str:
    return str(box(fleet).sim.windows.acl.get([path])[0]["Sddl"])


@pytest.mark.parametrize("path", [*FOLDERS, *FILES], ids=lambda path: path.rpartition("\\")[2])
def test_an_entry_of_its_own_that_lets_users_write_is_named_and_taken_away(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    before = sddl_of(fleet, path)
    box(fleet).sim.windows.acl.set(path, "D:AI(A;;0x1301bf;;;BU)")
    caplog.clear()
    assert fleet.plan(serve.guarded, box=BOX).changed == {"gpu01"}
    assert f"Will modify access to {path}" in caplog.text
    assert "- access: allow S-1-5-32-545 modify" in caplog.text
    assert fleet.apply(serve.guarded, box=BOX).changed == {"gpu01"}
    assert box(fleet).changes() == ["Set-BoxAcl"]
    assert sddl_of(fleet, path) == before
    assert fleet.apply(serve.guarded, box=BOX).changed == set()


@pytest.mark.parametrize(
    "path", [BOX.layout.root, BOX.layout.state, BOX.layout.releases, BOX.layout.launcher]
)
def test_a_foreign_owner_is_named_and_replaced(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    before = sddl_of(fleet, path)
    box(fleet).sim.windows.acl.set(path, f"O:{STRANGER}{before[before.index('D:') :]}")
    caplog.clear()
    assert fleet.plan(serve.guarded, box=BOX).changed == {"gpu01"}
    assert f"- owner: {STRANGER}" in caplog.text
    assert "+ owner: S-1-5-32-544" in caplog.text
    assert fleet.apply(serve.guarded, box=BOX).changed == {"gpu01"}
    assert sddl_of(fleet, path) == before
    assert fleet.apply(serve.guarded, box=BOX).changed == set()


def test_what_the_connected_administrator_owns_is_his_anyhow(fleet: Fleet) -> None:
    # With the policy that gives to the creator, and not to the group, what an administrator makes.
    session = box(fleet).answer(Call("Get-BoxSession"))["value"]
    before = sddl_of(fleet, BOX.layout.releases)
    owned = f"O:{session['UserSid']}{before[before.index('D:') :]}"
    box(fleet).sim.windows.acl.set(BOX.layout.releases, owned)
    assert session["Elevated"]
    assert fleet.plan(serve.guarded, box=BOX).changed == set()


def test_a_root_that_was_opened_does_not_have_all_below_it_named(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    box(fleet).sim.windows.acl.set(BOX.layout.root, "D:AI(A;OICI;0x1301bf;;;BU)")
    caplog.clear()
    assert fleet.apply(serve.guarded, box=BOX, check=True).changed == {"gpu01"}
    assert [call.request()["parameters"]["Path"] for call in box(fleet).calls if not call.reads] == [
        BOX.layout.root
    ]
    assert fleet.apply(serve.guarded, box=BOX).changed == set()


def test_a_run_that_changes_nothing_asks_only_what_is_fetched_beforehand(fleet: Fleet) -> None:
    assert fleet.apply(serve.guarded, box=BOX).changed == set()
    listed = [repr(call.request()) for call in reads.calls(BOX, USER)]
    assert [one for one in box(fleet).calls if repr(one.request()) not in listed] == []
