"""fleet.yml as groups, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ninfer_fleet.fleet.inventory import InventoryError, read_fleet
from winfleet.connectors.winrm_data import META, endpoint
from winfleet.wire.errors import SettingRefused

ROOT = Path(__file__).parents[2]


def test_the_example_is_a_fleet() -> None:
    groups = read_fleet(ROOT / "inventory" / "fleet.example.yml")
    assert list(groups) == ["rtx4090d"]
    names = [name for name, _ in groups["rtx4090d"]]
    assert names == ["@winrm/gpu01", "@winrm/gpu02"]
    first, second = (data for _, data in groups["rtx4090d"])
    assert first["winrm_host"] == "100.77.174.21"
    assert first["winrm_password"] == "env:NINFER_FLEET_PASSWORD"
    assert second["serve"] == {"max_concurrency": 2}


GOOD = "good: {address: h, user: u, password: 'env:P', groups: [rtx4090d]}"


def fleet(tmp_path: Path, text: str) -> dict[str, dict[str, Any]]:
    """The host data of each box of a fleet.yml with this text, by name."""
    (tmp_path / "inventory").mkdir()
    (tmp_path / "group_data").mkdir()
    for group in ("all", "rtx4090d"):
        (tmp_path / "group_data" / f"{group}.py").write_text("")
    path = tmp_path / "inventory" / "fleet.yml"
    path.write_text(text)
    return {name.removeprefix("@winrm/"): data for hosts in read_fleet(path).values() for name, data in hosts}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("boxes: {}", "at least one box"),
        ("boxes:", "at least one box"),
        ("", "at least one box"),
        ("boxes: [gpu01]", "mapping `boxes`"),
        ("- a", "mapping `boxes`"),
        (f"boxs: {{}}\nboxes: {{{GOOD}}}", "unknown: boxs"),
        (f"defaults: [u]\nboxes: {{{GOOD}}}", "defaults is no mapping"),
        (f"defaults: {{user: a, user: b}}\nboxes: {{{GOOD}}}", "'user' stands there 2 times"),
        (f"boxes: {{{GOOD}}}\nboxes: {{{GOOD}}}", "'boxes' stands there 2 times"),
        ("boxes: [", "not YAML"),
        ("boxes:\n\tgpu01: {password: hunter2}", "not YAML.*line 2"),
    ],
)
def test_a_file_that_is_no_fleet_is_told_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InventoryError, match=words) as caught:
        fleet(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


ENTRY = "address: h, user: u, password: 'env:P'"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{address: h, user: u, password: hunter2}", ["password: found a literal text", "env:NAME"]),
        ("{address: h, user: u, password: 12345678}", ["password: found a value that is not shown", "text"]),
        ("{address: h, user: u, password: 'env:'}", ["password: found a literal text"]),
        ("{user: u, password: 'env:P'}", ["address: found nothing; wanted: an address"]),
        (f"{{{ENTRY}, adress: x}}", ["adress: no such key; did you mean 'address'?"]),
        (f"{{{ENTRY}, passwd: hunter2}}", ["passwd: no such key; did you mean 'password'?"]),
        (f"{{{ENTRY}, port: abc}}", ["port: found 'abc'; wanted: a whole number"]),
        (f"{{{ENTRY}, port: true}}", ["port: true and false are switches"]),
        (f"{{{ENTRY}, port: 99999}}", ["port: found 99999; wanted: at most 65535"]),
        (f"{{{ENTRY}, port: [1]}}", ["port: found a list; wanted: a whole number"]),
        ("{address: 17, user: u, password: 'env:P'}", ["address: found 17; wanted: text"]),
        ("{address: h, user: yes, password: 'env:P'}", ["user: true and false are switches"]),
        (f"{{{ENTRY}, scheme: ftp}}", ["scheme: found 'ftp'; wanted: 'https' or 'http'"]),
        (f"{{{ENTRY}, certificate_sha256: 12}}", ["certificate_sha256: found 12; wanted: text (in quotes"]),
        (f"{{{ENTRY}, groups: []}}", ["groups: found no group"]),
        (f"{{{ENTRY}, groups: ['']}}", ["groups: found ''"]),
        (f"{{{ENTRY}, groups: [_hidden]}}", ["groups: found '_hidden'"]),
        (f"{{{ENTRY}, groups: [all]}}", ["groups: found 'all'"]),
        (f"{{{ENTRY}, groups: rtx4090d}}", ["groups: found 'rtx4090d'; wanted: a list"]),
        (f"{{{ENTRY}, groups: [rtx490d]}}", ["no group_data/rtx490d.py; did you mean 'rtx4090d'?"]),
        (f"{{{ENTRY}, user: v}}", ["'user' stands there 2 times (lines 3, 3)"]),
        (f"{{{ENTRY}, serve: {{port: 1, port: 2}}}}", ["'port' stands there 2 times", "in serve"]),
        (f"{{{ENTRY}}}\n  bad: {{{ENTRY}}}", ["the box 'bad' stands there 2 times (lines 3, 4)"]),
        ("100.64.0.1", ["found '100.64.0.1'; wanted: settings of the form"]),
        ("", ["address: found nothing", "user: found nothing", "password: found nothing"]),
        ("!host {address: h}", ["its entry cannot be read"]),
    ],
)
def test_a_wrong_entry_fails_its_own_box_only_in_one_line(
    tmp_path: Path, entry: str, words: list[str]
) -> None:
    boxes = fleet(tmp_path, f"boxes:\n  {GOOD}\n  bad: {entry}\n")
    assert boxes["good"]["winrm_host"] == "h"
    assert set(boxes["bad"]) == {"winrm_refused"}
    with pytest.raises(SettingRefused) as caught:
        endpoint({key: meta.default for key, meta in META.items()} | boxes["bad"], "bad", 10.0)
    told = str(caught.value)
    assert told.startswith("bad: ")
    assert "fleet.yml" in told
    for word in (*words, "mend: "):
        assert word in told
    for unwanted in ("\n", "hunter2", "12345678", "Input should", "Extra inputs"):
        assert unwanted not in told


def test_names_are_taken_as_they_are_written(tmp_path: Path) -> None:
    boxes = fleet(tmp_path, f"boxes:\n  010: {{{ENTRY}}}\n  on: {{{ENTRY}}}\n  '': {{{ENTRY}}}\n")
    assert list(boxes) == ["010", "on", "(unnamed)"]
    assert "its name is empty" in boxes["(unnamed)"]["winrm_refused"]


def test_a_group_without_data_may_serve_limit_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pyinfra")
    bad = f"c: {{{ENTRY}, groups: [rtx490d]}}"
    boxes = fleet(
        tmp_path, f"boxes:\n  a: {{{ENTRY}, groups: [berlin, rtx4090d]}}\n  b: {{{ENTRY}}}\n  {bad}\n"
    )
    assert "winrm_refused" not in boxes["a"]
    assert [line for line in caplog.messages if "berlin has no group_data/berlin.py" in line]
    assert len([line for line in caplog.messages if "the group" in line]) == 1
