"""Accounts and access control lists of a simulated box."""

from __future__ import annotations

from pathlib import Path

import pytest

from simbox.acl import state as acl
from simbox.box import Box
from simbox.errors import WindowsError


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "rtx4090d")


@pytest.mark.parametrize(
    ("name", "sid"),
    [
        ("SYSTEM", "S-1-5-18"),
        ("NT AUTHORITY\\SYSTEM", "S-1-5-18"),
        ("localsystem", "S-1-5-18"),
        ("builtin\\administrators", "S-1-5-32-544"),
        ("Everyone", "S-1-1-0"),
        (".\\fleet", "S-1-5-21-1004336348-1177238915-682003330-1001"),
        ("GPU01\\Administrator", "S-1-5-21-1004336348-1177238915-682003330-500"),
        ("s-1-5-18", "S-1-5-18"),
    ],
)
def test_names_become_sids(box: Box, name: str, sid: str) -> None:
    assert box.windows.account.resolve([name]) == [{"Name": name, "Sid": sid, "Error": None}]


def test_an_unknown_name_is_told_and_does_not_stop_the_others(box: Box) -> None:
    answers = box.windows.account.resolve(["nobody", "OTHER\\fleet", "SYSTEM"])
    assert [answer["Sid"] for answer in answers] == [None, None, "S-1-5-18"]
    assert "could not be translated" in answers[0]["Error"]
    assert box.windows.account.name_of("S-1-5-32-544") == "BUILTIN\\Administrators"


def test_a_new_file_inherits_from_its_folder(box: Box) -> None:
    box.filesystem.write("C:\\ninfer\\a.txt", b"")
    (folder,) = box.windows.acl.get("C:\\ninfer")
    assert not folder["Protected"]
    assert all(entry["Inherited"] for entry in folder["Access"])
    users = next(entry for entry in folder["Access"] if entry["Sid"] == "S-1-5-32-545")
    assert (users["Rights"], users["InheritanceFlags"]) == (0x1200A9, "ContainerInherit, ObjectInherit")
    (file,) = box.windows.acl.get("C:\\ninfer\\a.txt")
    assert {entry["InheritanceFlags"] for entry in file["Access"]} == {"None"}


def test_protection_keeps_inherited_entries_out_and_reaches_children(box: Box) -> None:
    box.filesystem.write("C:\\ninfer\\secrets\\key.txt", b"")
    sddl = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
    assert box.windows.acl.set("C:\\ninfer\\secrets", sddl) == {"Changed": True}
    assert box.windows.acl.set("C:\\ninfer\\secrets", sddl) == {"Changed": False}
    (key,) = box.windows.acl.get("C:\\ninfer\\secrets\\key.txt")
    assert {entry["Sid"] for entry in key["Access"]} == {"S-1-5-18", "S-1-5-32-544"}
    assert all(entry["Inherited"] for entry in key["Access"])
    box.windows.acl.set("C:\\ninfer\\secrets\\key.txt", "D:(D;;FR;;;BU)")
    (key,) = box.windows.acl.get("C:\\ninfer\\secrets\\key.txt")
    assert [entry["Type"] for entry in key["Access"]] == ["Deny", "Allow", "Allow"]


def test_a_folder_made_anew_has_no_old_entries(box: Box) -> None:
    folder = box.filesystem.make_directory("C:\\ninfer\\secrets")
    box.windows.acl.set("C:\\ninfer\\secrets", "D:P(A;OICI;FA;;;SY)")
    folder.rename(folder.with_name("old"))
    box.filesystem.make_directory("C:\\ninfer\\secrets")
    assert not box.windows.acl.get("C:\\ninfer\\secrets")[0]["Protected"]


def test_entries_move_with_the_folder_and_go_with_it(box: Box) -> None:
    folder = box.filesystem.make_directory("C:\\a")
    box.windows.acl.set("C:\\a", "D:P(A;OICI;FA;;;SY)")
    folder.rename(folder.with_name("b"))
    box.windows.acl.moved("C:\\a", "C:\\b")
    assert box.windows.acl.get("C:\\b")[0]["Protected"]
    box.windows.acl.forget("C:\\b")
    assert not box.windows.acl.get("C:\\b")[0]["Protected"]


@pytest.mark.parametrize("sddl", ["rubbish", "D:(X;;FA;;;SY)", "D:(A;;QQ;;;SY)", "D:(A;O;FA;;;SY)"])
def test_wrong_sddl_is_refused(box: Box, sddl: str) -> None:
    with pytest.raises(WindowsError) as caught:
        box.windows.acl.set("C:\\models", sddl)
    assert caught.value.type == "System.ArgumentException"


def test_an_acl_of_nothing(box: Box) -> None:
    assert box.windows.acl.get(["C:\\none"])[0]["Exists"] is False
    with pytest.raises(WindowsError) as caught:
        box.windows.acl.set("C:\\none", "D:(A;;FA;;;SY)")
    assert caught.value.hresult == 0x80070002


def test_creator_owner_becomes_the_owner_below() -> None:
    ace = acl.parse("D:(A;OICIIO;GA;;;CO)").aces[0]
    own, passed_on = acl.inherited(ace, True, "S-1-5-32-544")
    assert (own.sid, own.mask, own.flags) == ("S-1-5-32-544", 0x1F01FF, frozenset({"ID"}))
    assert (passed_on.sid, passed_on.mask) == ("S-1-3-0", 0x10000000)
    assert acl.inherited(acl.parse("D:(A;CI;FA;;;SY)").aces[0], False, "x") == []


def test_sddl_survives_a_round_trip() -> None:
    text = "O:BAG:SYD:PAI(D;;FR;;;BU)(A;OICI;FA;;;SY)(A;OICIIO;0x1301bf;;;AU)(A;;FX;;;S-1-5-21-1-2-3-1001)"
    assert acl.parse(text).text() == text
