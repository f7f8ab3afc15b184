from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import pytest
from pyinfra.api.hiddenvalue import HiddenValue
from windows_fleet import Fleet, WindowsBox

from winfleet.acl import operations as acl
from winfleet.acl.operations import Access
from winfleet.files import operations as files
from winfleet.files.operations import FileContent

ROOT = r"C:\ninfer"
BAT = ROOT + r"\serve_task.bat"
KEY = ROOT + r"\api_key.txt"
SECRET = "sk-example-not-a-real-key"
ACCESS = (Access("SYSTEM"), Access("Administrators"))


@pytest.fixture
def fleet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Fleet:
    caplog.set_level(logging.DEBUG, logger="pyinfra")
    fleet = Fleet(tmp_path, "gpu01")
    box(fleet).sim.filesystem.host(ROOT).mkdir(parents=True)
    return fleet


def box(fleet: Fleet) -> WindowsBox:
    return fleet.boxes["gpu01"]


def on_box(fleet: Fleet, path: str) -> Path:
    return box(fleet).sim.filesystem.host(path)


def test_directories_are_made_once(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    paths = [ROOT + r"\logs", ROOT + r"\state"]
    assert fleet.plan(files.directories, paths=paths).changed == {"gpu01"}
    assert "Will create folder C:\\ninfer\\logs" in caplog.text
    assert fleet.apply(files.directories, paths=paths).changed == {"gpu01"}
    assert on_box(fleet, ROOT + r"\state").is_dir()
    assert fleet.apply(files.directories, paths=paths).changed == set()


def test_a_file_where_a_folder_is_wanted_is_refused(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    on_box(fleet, ROOT + r"\logs").write_text("x")
    assert fleet.plan(files.directories, paths=[ROOT + r"\logs"]).failed == {"gpu01"}
    assert "is a file, a folder is wanted" in caplog.text
    assert fleet.apply(files.directories, paths=[ROOT + r"\logs"]).failed == {"gpu01"}
    assert on_box(fleet, ROOT + r"\logs").read_text() == "x"


def test_put_creates_shows_changes_and_settles(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    first = [FileContent(BAT, b"@echo off\r\nping one\r\nexit\r\n")]
    assert fleet.apply(files.put, files=first).changed == {"gpu01"}
    assert on_box(fleet, BAT).read_bytes() == first[0].data()
    assert fleet.apply(files.put, files=first).changed == set()

    caplog.clear()
    second = [FileContent(BAT, b"@echo off\r\nping two\r\nexit\r\n")]
    assert fleet.plan(files.put, files=second).changed == {"gpu01"}
    shown = [record.message for record in caplog.records if record.levelno == logging.INFO]
    assert any("Will modify C:\\ninfer\\serve_task.bat" in line for line in shown)
    assert any(line.endswith("- ping one") for line in shown)
    assert any(line.endswith("+ ping two") for line in shown)
    assert not any("echo off" in line and line.lstrip().startswith(("-", "+")) for line in shown)
    assert on_box(fleet, BAT).read_bytes() == first[0].data()


def test_without_diff_one_line_says_what_changes(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    fleet.plan(files.put, diff=False, files=[FileContent(BAT, b"@echo off\r\n")])
    shown = [record.message for record in caplog.records if "serve_task.bat" in record.message]
    assert any(line.endswith("Will create C:\\ninfer\\serve_task.bat: content") for line in shown)
    assert "echo off" not in caplog.text


def test_line_ends_that_differ_are_visible(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    on_box(fleet, BAT).write_bytes(b"@echo off\nexit\r\n")
    fleet.plan(files.put, files=[FileContent(BAT, b"@echo off\r\nexit\r\n")])
    assert "- @echo off [LF]" in caplog.text
    assert "+ @echo off [CR LF]" in caplog.text


def test_a_secret_is_never_shown_and_its_access_is_set_first(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    declared = [FileContent(KEY, HiddenValue(SECRET), access=ACCESS)]
    for run in (fleet.plan, fleet.apply):
        assert run(files.put, files=declared).changed == {"gpu01"}
    assert on_box(fleet, KEY).read_text() == SECRET
    changes = [(call.command, len(call.payload)) for call in box(fleet).calls if not call.reads]
    assert [name for name, _ in changes] == ["Set-BoxFile", "Set-BoxAcl", "Set-BoxFile"]
    assert changes[0][1] == 0
    assert fleet.apply(files.put, files=declared).changed == set()

    rotated = [FileContent(KEY, HiddenValue(SECRET + "2"), access=ACCESS)]
    assert fleet.plan(files.put, files=rotated).changed == {"gpu01"}
    assert "- *MASKED*" in caplog.text
    everything = caplog.text + repr(declared) + "".join(str(call) for call in box(fleet).calls)
    for told in (SECRET, hashlib.sha256(SECRET.encode()).hexdigest()):
        assert told not in everything
    assert box(fleet).calls[0].parameters.get("MaxContentBytes") is None


def test_access_that_was_opened_by_hand_is_named_and_repaired(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    declared = [FileContent(KEY, HiddenValue(SECRET), access=ACCESS)]
    fleet.apply(files.put, files=declared)
    box(fleet).sim.windows.acl.set(KEY, "D:(A;;FA;;;SY)(A;;FA;;;BA)(A;;FR;;;WD)")
    caplog.clear()
    assert fleet.plan(files.put, files=declared).changed == {"gpu01"}
    assert "- inheritance: from the parent folder" in caplog.text
    assert "S-1-1-0" in caplog.text
    fleet.apply(files.put, files=declared)
    assert box(fleet).changes()[-1] == "Set-BoxAcl"
    assert fleet.apply(files.put, files=declared).changed == set()


def test_an_unknown_account_is_refused_before_any_write(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    declared = [FileContent(KEY, HiddenValue(SECRET), access=(Access("no-such-user"),))]
    assert fleet.apply(files.put, files=declared).failed == {"gpu01"}
    assert "no-such-user" in caplog.text
    assert box(fleet).changes() == []


def test_read_only_is_a_field(fleet: Fleet) -> None:
    declared = [FileContent(BAT, b"model", read_only=True)]
    fleet.apply(files.put, files=declared)
    assert fleet.apply(files.put, files=declared).changed == set()
    on_box(fleet, BAT).chmod(0o644)
    assert fleet.plan(files.put, files=declared).changed == {"gpu01"}
    fleet.apply(files.put, files=declared)
    assert not on_box(fleet, BAT).stat().st_mode & 0o200


def test_a_file_that_cannot_be_read_fails_the_box(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    box(fleet).faults["Get-BoxFile"] = {"type": "System.IO.IOException", "message": "used by another process"}
    assert fleet.apply(files.put, files=[FileContent(BAT, b"x")]).failed == {"gpu01"}
    assert "used by another process" in caplog.text
    assert box(fleet).changes() == []


def test_absent_and_copies(fleet: Fleet) -> None:
    on_box(fleet, BAT).write_bytes(b"one")
    pair = [(BAT, ROOT + r"\copy.bat")]
    assert fleet.apply(files.copies, items=pair).changed == {"gpu01"}
    assert fleet.apply(files.copies, items=pair).changed == set()
    on_box(fleet, BAT).write_bytes(b"two")
    assert fleet.apply(files.copies, items=pair).changed == {"gpu01"}
    assert on_box(fleet, ROOT + r"\copy.bat").read_bytes() == b"two"
    assert fleet.apply(files.absent, paths=[BAT]).changed == {"gpu01"}
    assert fleet.apply(files.absent, paths=[BAT]).changed == set()


@pytest.mark.parametrize("path", ["ninfer", r"\ninfer", "C:ninfer", "/tmp/x"])
def test_relative_paths_are_refused(fleet: Fleet, path: str, caplog: pytest.LogCaptureFixture) -> None:
    assert fleet.plan(files.directories, paths=[path]).failed == {"gpu01"}
    assert "no full Windows path" in caplog.text


def test_protected_folder_settles_and_drift_is_named(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    arguments = {"path": ROOT, "access": [*ACCESS, Access("S-1-5-11", "read")]}
    assert fleet.apply(acl.protected, **arguments).changed == {"gpu01"}
    assert fleet.apply(acl.protected, **arguments).changed == set()
    box(fleet).sim.windows.acl.set(ROOT, "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;AU)")
    assert fleet.plan(acl.protected, **arguments).changed == {"gpu01"}
    assert "- access: allow S-1-5-11 full" in caplog.text
    assert "+ access: allow S-1-5-11 read" in caplog.text
    assert fleet.plan(acl.protected, path=ROOT, access=[Access("SYSTEM", "read")]).failed == {"gpu01"}
