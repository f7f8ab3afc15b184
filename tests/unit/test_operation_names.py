"""What an operation is called in a run and in its messages."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from windows_fleet import Fleet

from winfleet import files, task
from winfleet.operation import SHOWN_CHARACTERS, operation_name


@pytest.fixture
def fleet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Fleet:
    caplog.set_level(logging.INFO, logger="pyinfra")
    return Fleet(tmp_path, "gpu01")


def _heading(caplog: pytest.LogCaptureFixture) -> str:
    (line,) = [one for one in caplog.text.splitlines() if "Starting operation: " in one]
    return line.rpartition("Starting operation: ")[2].rstrip()


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        ([r"C:\a"], r"files.directories C:\a"),
        ([r"C:\a", r"C:\b", r"C:\c"], r"files.directories C:\a and 2 more"),
        (["C:\\" + "long" * 30], "files.directories C:\\" + "long" * 13 + "lo..."),
    ],
)
def test_without_a_name_an_operation_is_called_after_its_first_argument(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, paths: list[str], name: str
) -> None:
    fleet.apply(files.directories, paths=paths)
    assert _heading(caplog) == name
    assert len(name) <= len("files.directories ") + SHOWN_CHARACTERS


def test_declared_things_are_called_by_their_path_and_their_content_is_not_printed(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.apply(files.put, files=[files.FileContent(r"C:\a.txt", "long text")])
    assert _heading(caplog) == r"files.put C:\a.txt"


def test_a_given_name_stays(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    fleet.apply(files.directories, paths=[r"C:\a"], name="Folders")
    assert _heading(caplog) == "Folders"


def test_a_fault_names_the_noun_and_the_operation(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    assert operation_name(task.present) == "task.present"
    assert fleet.apply(files.directories, paths=["no path"]).failed == {"gpu01"}
    assert "files.directories: no full Windows path" in caplog.text


def test_text_becomes_utf8_and_anything_else_is_refused_when_it_is_declared(fleet: Fleet) -> None:
    assert fleet.apply(files.put, files=[files.FileContent(r"C:\a.txt", "caf\u00e9\r\n")]).failed == set()
    assert fleet.apply(files.put, files=[files.FileContent(r"C:\a.txt", b"caf\xc3\xa9\r\n")]).changed == set()
    with pytest.raises(TypeError, match=r"content of C:\\a.txt: found int, wanted text or bytes"):
        files.FileContent(r"C:\a.txt", 7)  # type: ignore[arg-type]
