"""While a session only reads, the loop on the box itself refuses whatever changes; on every engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from powershell import EngineBox

from winfleet.wire.program import build_program

COMMANDS = re.findall(r"(?m)^function ([A-Z][a-z]+-Box[A-Za-z]+) ", build_program().text)
CHANGING = [name for name in COMMANDS if not name.startswith(("Get-", "Test-"))]
PAGE = Path(__file__).parents[2] / "docs" / "box-commands.md"
ROOM = "C:\\read only"
FILE = f"{ROOM}\\kept.txt"
TASK = "\\NInferFleet\\Read-Only"
XML = """<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
<Principals><Principal id="a"><UserId>S-1-5-18</UserId></Principal></Principals>
<Actions Context="a"><Exec><Command>C:\\Windows\\System32\\cmd.exe</Command></Exec></Actions></Task>"""
RULE: dict[str, Any] = {
    "Name": "ninfer-fleet-read-only",
    "DisplayName": "x",
    "Description": "x",
    "Group": "x",
    "Enabled": True,
    "Direction": "Inbound",
    "Action": "Allow",
    "Profile": ["Any"],
    "Protocol": "TCP",
    "LocalPort": ["8099"],
    "LocalAddress": ["Any"],
    "RemoteAddress": ["Any"],
}
# What each would do to the box below, were it not refused.
PARAMETERS: dict[str, dict[str, Any]] = {
    "Copy-BoxItem": {"Items": [{"Path": FILE, "Destination": f"{ROOM}\\copy.txt"}]},
    "Disable-BoxFirewallRule": {"Name": ["ninfer-fleet-read-only"]},
    "Disable-BoxTask": {"TaskPath": TASK},
    "Enable-BoxTask": {"TaskPath": TASK},
    "Invoke-BoxHttp": {"Url": "http://127.0.0.1:9/", "TimeoutSeconds": 1, "Method": "POST", "Body": "x"},
    "Invoke-BoxScript": {"Text": f"[IO.File]::WriteAllText('{ROOM}\\script.txt', 'x')"},
    "Move-BoxItem": {"Path": FILE, "Destination": f"{ROOM}\\moved.txt"},
    "New-BoxDirectory": {"Path": [f"{ROOM}\\new"]},
    "New-BoxJunction": {"Path": f"{ROOM}\\junction", "Target": "C:\\Windows"},
    "Register-BoxTask": {"TaskPath": TASK, "Xml": XML},
    "Remove-BoxFirewallRule": {"Name": ["ninfer-fleet-read-only"]},
    "Remove-BoxItem": {"Path": [ROOM], "Recurse": True},
    "Remove-BoxRegistryValue": {"Key": "HKLM:\\SOFTWARE\\ReadOnly", "Name": "kept"},
    "Remove-BoxTaskFolder": {"Path": ["\\NInferFleet"]},
    "Set-BoxAcl": {"Path": FILE, "Sddl": "D:PAI(A;;FA;;;SY)"},
    "Set-BoxFile": {"Path": FILE, "Sha256": "0" * 64, "Encoding": "none"},
    "Set-BoxFileAttribute": {"Path": FILE, "ReadOnly": True},
    "Set-BoxFirewallRule": RULE,
    "Set-BoxRegistryValue": {"Key": "HKLM:\\SOFTWARE\\ReadOnly", "Name": "x", "Kind": "String", "Data": "x"},
    "Start-BoxJob": {"Path": f"{ROOM}\\job", "Hash": "h", "Steps": [], "TaskPath": "\\NInferFleet\\Job-x"},
    "Start-BoxTask": {"TaskPath": TASK},
    "Stop-BoxJob": {"Path": f"{ROOM}\\job"},
    "Stop-BoxProcess": {"ProcessId": 1, "CreationTimeUtc": "2026-01-01T00:00:00Z"},
    "Stop-BoxTask": {"TaskPath": TASK},
    "Unregister-BoxTask": {"TaskPath": TASK},
    "Write-BoxFilePart": {"TemporaryPath": f"{ROOM}\\part", "OffsetBytes": 0, "Encoding": "none"},
}
TAKES_PAYLOAD = ("Set-BoxFile", "Write-BoxFilePart")


def state(box: EngineBox) -> dict[str, Any]:
    """What the commands above could change, as bytes and as the box tells it."""
    room = box.host(ROOM)
    return {
        "files": {
            path.relative_to(room): path.read_bytes() if path.is_file() else None for path in room.rglob("*")
        },
        "mode": box.host(FILE).stat().st_mode,
        "store": box.box.store.get(),
        "task": box.call("Get-BoxTask", TaskPath=[TASK]),
        "registry": box.call("Get-BoxRegistry", Key="HKLM:\\SOFTWARE\\ReadOnly"),
        "rule": [
            rule
            for store in box.call("Get-BoxFirewall")["Stores"]
            for rule in store["Rules"]
            if rule["Name"] == RULE["Name"]
        ],
        "access": box.call("Get-BoxAcl", Path=[FILE]),
    }


@pytest.fixture
def furnished(box: EngineBox) -> EngineBox:
    """The box with something that each command would change."""
    box.call("New-BoxDirectory", Path=[ROOM])
    box.host(FILE).write_bytes(b"kept")
    box.call("Register-BoxTask", TaskPath=TASK, Xml=XML)
    box.call("Set-BoxFirewallRule", **RULE)
    box.call("Set-BoxRegistryValue", Key="HKLM:\\SOFTWARE\\ReadOnly", Name="kept", Kind="String", Data="x")
    return box


def test_every_changing_command_of_the_program_is_tried() -> None:
    assert sorted(CHANGING) == sorted(PARAMETERS)


def test_the_page_and_the_program_name_the_same_commands() -> None:
    cells = re.findall(r"(?m)^\| ((?:[A-Z][a-z]+-Box\w+(?: / )?)+) \|", PAGE.read_text("utf-8"))
    assert sorted(name for cell in cells for name in cell.split(" / ")) == sorted(COMMANDS)


def test_a_reading_request_is_refused_every_changing_command(furnished: EngineBox) -> None:
    before = state(furnished)
    for name in CHANGING:
        call = {"command": name, "parameters": PARAMETERS[name]}
        reply = furnished.loop.ask([call], "read", b"content" if name in TAKES_PAYLOAD else b"")
        (answer,) = reply.answers
        assert answer["error"]["type"] == "ReadOnlyRefused", answer
        assert answer["error"]["message"] == f"{name} changes the box and this session only reads"
        assert answer["error"]["command"] == name
        assert [frame.kind for frame in reply.frames] == ["result"]
    assert state(furnished) == before


def test_among_reads_only_the_change_is_refused(furnished: EngineBox) -> None:
    look = {"command": "Get-BoxFile", "parameters": {"Path": [FILE]}}
    before = state(furnished)
    calls = [look, *({"command": name, "parameters": PARAMETERS[name]} for name in CHANGING), look]
    answers = furnished.loop.ask(calls, "read").answers
    assert [answer["ok"] for answer in answers] == [True, *([False] * len(CHANGING)), True]
    assert {answer["error"]["type"] for answer in answers[1:-1]} == {"ReadOnlyRefused"}
    assert state(furnished) == before


@pytest.mark.parametrize(
    ("mode", "name", "error"),
    [
        ("Change", "New-BoxDirectory", "BadRequest"),
        ("", "New-BoxDirectory", "BadRequest"),
        ("read change", "New-BoxDirectory", "BadRequest"),
        ("read", "new-boxdirectory", "UnknownCommand"),
        ("read", "Get-BoxFile;New-BoxDirectory", "UnknownCommand"),
        ("read", "Get-Item", "UnknownCommand"),
        ("read", "Get-BoxNothing", "UnknownCommand"),
    ],
)
def test_no_other_spelling_leads_to_a_change(furnished: EngineBox, mode: Any, name: str, error: str) -> None:
    call = {"command": name, "parameters": {"Path": [f"{ROOM}\\new"]}}
    (answer,) = furnished.loop.ask([call], mode).answers
    assert answer["error"]["type"] == error
    assert not furnished.host(f"{ROOM}\\new").exists()
