"""Registry values, on every engine."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from powershell import BoxFault, EngineBox

_NUMBERS = itertools.count(1)


@pytest.fixture
def key() -> str:
    return f"HKLM:\\SOFTWARE\\NInferFleetTest\\{next(_NUMBERS)}"


@pytest.mark.parametrize(
    ("kind", "data", "stored"),
    [
        ("String", "\u4e2d\u6587 \U0001f600", "\u4e2d\u6587 \U0001f600"),
        ("String", "", ""),
        ("ExpandString", "%SystemRoot%\\x", "%SystemRoot%\\x"),
        ("DWord", 1, 1),
        ("DWord", 4294967295, -1),
        ("DWord", -2147483648, -2147483648),
        ("QWord", 2**63 - 1, 2**63 - 1),
        ("QWord", 2**64 - 1, -1),
        ("MultiString", ["one"], ["one"]),
        ("MultiString", ["a", "b c"], ["a", "b c"]),
        ("Binary", "AAECAw==", "AAECAw=="),
    ],
)
def test_a_value_is_set_once_and_read_back(
    box: EngineBox, key: str, kind: str, data: Any, stored: Any
) -> None:
    setting = {"Key": key, "Name": "Value", "Kind": kind, "Data": data}
    assert box.call("Set-BoxRegistryValue", **setting) == {"Changed": True}
    assert box.call("Set-BoxRegistryValue", **setting) == {"Changed": False}
    assert box.call("Get-BoxRegistry", Key=key) == {
        "Exists": True,
        "Values": [{"Name": "Value", "Kind": kind, "Data": stored}],
    }


def test_names_are_found_whatever_their_case(box: EngineBox, key: str) -> None:
    for name in ("Beta", "alpha"):
        box.call("Set-BoxRegistryValue", Key=key, Name=name, Kind="DWord", Data=1)
    assert [value["Name"] for value in box.call("Get-BoxRegistry", Key=key)["Values"]] == ["alpha", "Beta"]
    found = box.call("Get-BoxRegistry", Key=key, Name=["BETA", "none"])["Values"]
    assert [value["Name"] for value in found] == ["Beta"]


def test_another_kind_is_another_value(box: EngineBox, key: str) -> None:
    box.call("Set-BoxRegistryValue", Key=key, Name="v", Kind="String", Data="1")
    assert box.call("Set-BoxRegistryValue", Key=key, Name="v", Kind="DWord", Data=1) == {"Changed": True}
    assert box.call("Get-BoxRegistry", Key=key)["Values"] == [{"Name": "v", "Kind": "DWord", "Data": 1}]


def test_a_value_is_removed_once(box: EngineBox, key: str) -> None:
    box.call("Set-BoxRegistryValue", Key=key, Name="v", Kind="String", Data="x")
    assert box.call("Remove-BoxRegistryValue", Key=key, Name="V") == {"Changed": True}
    assert box.call("Remove-BoxRegistryValue", Key=key, Name="V") == {"Changed": False}
    assert box.call("Get-BoxRegistry", Key=key) == {"Exists": True, "Values": []}


def test_a_key_that_is_not_there(box: EngineBox, key: str) -> None:
    assert box.call("Get-BoxRegistry", Key=key) == {"Exists": False, "Values": []}
    assert box.call("Remove-BoxRegistryValue", Key=key, Name="v") == {"Changed": False}


@pytest.mark.parametrize(
    "change",
    [{"Key": "C:\\x"}, {"Kind": "Word"}, {"Kind": "DWord", "Data": "x"}, {"Kind": "DWord", "Data": 2**40}],
)
def test_what_cannot_be_a_value_is_refused(box: EngineBox, key: str, change: dict[str, Any]) -> None:
    with pytest.raises(BoxFault) as fault:
        box.call("Set-BoxRegistryValue", **{"Key": key, "Name": "v", "Kind": "String", "Data": "x", **change})
    assert fault.value.type == "BadRequest"
    assert box.call("Get-BoxRegistry", Key=key)["Exists"] is False


def test_the_environment_of_the_machine_is_a_key(box: EngineBox) -> None:
    key = "HKLM:\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Environment"
    found = box.call("Get-BoxRegistry", Key=key, Name=["Path"])["Values"]
    assert found[0]["Kind"] in ("String", "ExpandString")
    assert "system32" in found[0]["Data"].lower()
