"""Access lists and junctions."""

from __future__ import annotations

import pytest
from powershell import BoxFault, EngineBox

ONLY_SYSTEM_AND_ADMINISTRATORS = "D:PAI(A;;FA;;;SY)(A;;FA;;;BA)"


def test_a_protected_list_is_set_and_read_back(box: EngineBox) -> None:
    box.host("C:\\contract-acl").mkdir(exist_ok=True)
    box.host("C:\\contract-acl\\key.txt").write_text("example")
    path = "C:\\contract-acl\\key.txt"
    (before,) = box.call("Get-BoxAcl", Path=[path])
    assert before["Protected"] is False
    assert all(entry["Inherited"] for entry in before["Access"])
    assert box.call("Set-BoxAcl", Path=path, Sddl=ONLY_SYSTEM_AND_ADMINISTRATORS) == {"Changed": True}
    assert box.call("Set-BoxAcl", Path=path, Sddl=ONLY_SYSTEM_AND_ADMINISTRATORS) == {"Changed": False}
    (after,) = box.call("Get-BoxAcl", Path=[path])
    assert after["Protected"] is True
    assert after["Sddl"].endswith(ONLY_SYSTEM_AND_ADMINISTRATORS)
    assert after["OwnerSid"] == before["OwnerSid"], "an SDDL without O: leaves the owner"
    assert sorted((entry["Sid"], entry["Rights"], entry["Type"]) for entry in after["Access"]) == [
        ("S-1-5-18", 0x1F01FF, "Allow"),
        ("S-1-5-32-544", 0x1F01FF, "Allow"),
    ]
    assert {entry["Inherited"] for entry in after["Access"]} == {False}


def test_a_folder_hands_its_entries_down(box: EngineBox) -> None:
    box.host("C:\\contract-tree").mkdir(exist_ok=True)
    sddl = "O:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;0x1200a9;;;BU)"
    box.call("Set-BoxAcl", Path="C:\\contract-tree", Sddl=sddl)
    box.host("C:\\contract-tree\\below.txt").write_text("x")
    folder, file, absent = box.call(
        "Get-BoxAcl", Path=["C:\\contract-tree", "C:\\contract-tree\\below.txt", "C:\\contract-tree\\none"]
    )
    assert folder["OwnerSid"] == "S-1-5-18"
    assert {entry["InheritanceFlags"] for entry in folder["Access"]} == {"ContainerInherit, ObjectInherit"}
    assert {entry["PropagationFlags"] for entry in folder["Access"]} == {"None"}
    assert {(entry["Sid"], entry["Inherited"]) for entry in file["Access"]} == {
        ("S-1-5-18", True),
        ("S-1-5-32-545", True),
    }
    assert (absent["Exists"], absent["Sddl"], absent["Access"]) == (False, None, [])


def test_setting_the_list_of_nothing_is_an_error(box: EngineBox) -> None:
    with pytest.raises(BoxFault):
        box.call("Set-BoxAcl", Path="C:\\contract-none", Sddl=ONLY_SYSTEM_AND_ADMINISTRATORS)


def test_a_junction_is_made_left_alone_and_led_elsewhere(box: EngineBox) -> None:
    for name in ("one", "two"):
        box.host(f"C:\\contract-rel\\{name}").mkdir(parents=True, exist_ok=True)
        box.host(f"C:\\contract-rel\\{name}\\id.txt").write_text(name)
    path = "C:\\contract-rel\\current"

    def make(target: str) -> dict[str, object]:
        return dict(box.call("New-BoxJunction", Path=path, Target=f"C:\\contract-rel\\{target}"))

    assert make("one") == {"Changed": True, "PreviousTarget": None}
    assert make("one") == {"Changed": False, "PreviousTarget": "C:\\contract-rel\\one"}
    assert make("two") == {"Changed": True, "PreviousTarget": "C:\\contract-rel\\one"}
    assert box.host(path + "\\id.txt").read_text() == "two"
    assert box.host("C:\\contract-rel\\one\\id.txt").read_text() == "one", "the old target is untouched"
    assert sorted(item.name for item in box.host("C:\\contract-rel").iterdir()) == ["current", "one", "two"]
    (answer,) = box.call("Get-BoxFile", Path=[path])
    assert (answer["Kind"], answer["Target"]) == ("junction", "C:\\contract-rel\\two")


def test_a_junction_whose_target_has_gone_is_led_elsewhere(box: EngineBox) -> None:
    for name in ("old", "new"):
        box.host(f"C:\\contract-gone\\{name}").mkdir(parents=True, exist_ok=True)
    path = "C:\\contract-gone\\current"
    box.call("New-BoxJunction", Path=path, Target="C:\\contract-gone\\old")
    box.host("C:\\contract-gone\\old").rmdir()
    answer = box.call("New-BoxJunction", Path=path, Target="C:\\contract-gone\\new")
    assert answer == {"Changed": True, "PreviousTarget": "C:\\contract-gone\\old"}


def test_a_folder_is_never_replaced_by_a_junction(box: EngineBox) -> None:
    box.host("C:\\contract-full").mkdir(exist_ok=True)
    box.host("C:\\contract-full\\kept.txt").write_text("kept")
    with pytest.raises(BoxFault) as fault:
        box.call("New-BoxJunction", Path="C:\\contract-full", Target="C:\\Windows")
    assert fault.value.type == "Refused"
    assert box.host("C:\\contract-full\\kept.txt").read_text() == "kept"


def test_a_junction_to_nowhere_is_an_error(box: EngineBox) -> None:
    with pytest.raises(BoxFault) as fault:
        box.call("New-BoxJunction", Path="C:\\contract-nowhere", Target="C:\\contract-absent")
    assert fault.value.error["hresult"] == "0x80070003"
    assert not box.host("C:\\contract-nowhere").is_symlink()
