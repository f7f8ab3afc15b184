"""The frame loop: what it answers, remembers and refuses (docs/box-commands.md section 1), on every engine."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from typing import Any

import pytest
from powershell import COMMAND, BoxFault, EngineBox, Loop

from winfleet.wire.frames import Request, encode_request
from winfleet.wire.program import bootstrap_line, build_program

GET_WINDOWS = {"command": "Get-BoxFile", "parameters": {"Path": ["C:\\Windows"]}}


def make(path: str) -> dict[str, Any]:
    return {"command": "New-BoxDirectory", "parameters": {"Path": [path]}}


def test_ready_tells_what_the_controller_needs(box: EngineBox) -> None:
    ready = box.loop.ready
    assert ready["LanguageMode"] == "FullLanguage"
    assert ready["Is64BitProcess"] is True
    assert (ready["OemCodePage"], ready["AnsiCodePage"]) == (437, 1252)
    assert isinstance(ready["Elevated"], bool)
    assert int(ready["PSVersion"].split(".")[0]) >= 5
    assert ready["BootTimeUtc"].endswith("Z")


def test_several_reads_are_answered_each_on_its_own(box: EngineBox) -> None:
    reply = box.loop.ask([GET_WINDOWS, {"command": "Get-BoxNothing"}, GET_WINDOWS], "read")
    assert [answer["ok"] for answer in reply.answers] == [True, False, True]
    assert reply.answers[1]["error"]["type"] == "UnknownCommand"
    assert reply.answers[2]["value"][0]["Kind"] == "directory"


def test_a_change_that_fails_stops_those_after_it(box: EngineBox) -> None:
    calls = [make("C:\\loop\\one"), make("relative"), make("C:\\loop\\three")]
    answers = box.loop.ask(calls, "change").answers
    assert answers[0] == {"ok": True, "value": {"Created": ["C:\\loop\\one"]}}
    assert [answer["error"]["type"] for answer in answers[1:]] == ["BadRequest", "NotRun"]
    assert not box.host("C:\\loop\\three").exists()


@pytest.mark.parametrize(
    "command", ["New-BoxDirectory", "Remove-BoxItem", "Invoke-BoxScript", "Start-BoxJob"]
)
def test_a_read_only_request_changes_nothing(box: EngineBox, command: str) -> None:
    (answer,) = box.loop.ask([{"command": command, "parameters": {"Path": ["C:\\loop\\no"]}}], "read").answers
    assert answer["error"]["type"] == "ReadOnlyRefused"
    assert command in answer["error"]["message"]
    assert not box.host("C:\\loop\\no").exists()


def test_a_request_that_comes_again_is_answered_and_not_run_again(box: EngineBox) -> None:
    loop = box.new_loop()
    try:
        first = loop.ask([make("C:\\loop\\once")], "change", seq=1)
        box.host("C:\\loop\\once").rmdir()
        again = loop.ask([make("C:\\loop\\once")], "change", seq=1)
        assert again.frames == first.frames
        assert not box.host("C:\\loop\\once").exists()
    finally:
        loop.close()


def test_an_answer_too_old_to_be_remembered_is_said_to_be(box: EngineBox) -> None:
    loop = box.new_loop()
    try:
        for seq in range(1, 7):
            loop.ask([make(f"C:\\loop\\old{seq}")], "change", seq=seq)
        forgotten = loop.ask([make("C:\\loop\\old1")], "change", seq=1)
        assert forgotten.answers[0]["error"]["type"] == "AnswerForgotten"
        assert loop.ask([make("C:\\loop\\old6")], "change", seq=6).answers[0]["ok"]
    finally:
        loop.close()


def test_foreign_and_damaged_lines_are_noise(box: EngineBox) -> None:
    foreign = encode_request(Request("0" * 32, 10**6, "change", [make("C:\\loop\\foreign")]))
    cut = encode_request(Request(box.loop.nonce, 10**6, "change", [make("C:\\loop\\cut")]))[:-20] + b"\n"
    box.loop.send(foreign + cut + b"hello\r\n\n")
    assert box.call("Get-BoxFile", Path=["C:\\loop\\foreign", "C:\\loop\\cut"]) == [
        {**found, "Kind": "absent"}
        for found in box.call("Get-BoxFile", Path=["C:\\loop\\foreign", "C:\\loop\\cut"])
    ]


def test_texts_arrive_as_they_were_sent(box: EngineBox) -> None:
    """No JSON parser of either PowerShell takes them for dates, numbers or something to tidy up."""
    texts = [
        "2025-01-02T03:04:05Z",
        "/Date(1700000000000)/",
        "1e3",
        "true",
        "<a & 'b'>",
        "\u4e2d\u6587 \U0001f600",
        'tab\tquote" back\\slash',
    ]
    found = box.call("Get-BoxAccount", Name=texts)
    assert [one["Name"] for one in found] == texts


def test_one_element_and_none_stay_lists(box: EngineBox) -> None:
    assert isinstance(box.call("Get-BoxFile", Path=["C:\\Windows"]), list)
    assert box.call("Get-BoxProcess", Name=["no-such-program.exe"]) == []
    assert box.call("New-BoxDirectory", Path=["C:\\Windows"]) == {"Created": []}


@pytest.mark.parametrize(
    ("command", "parameters", "told"),
    [
        ("Get-BoxFile", {"Path": ["C:\\"], "Colour": 1}, ("Colour", "Path, Hash, MaxContentBytes")),
        ("Get-BoxFile", {"path": ["C:\\"]}, ("path",)),
        ("Get-BoxFile", {"Hash": True}, ("Path",)),
        ("Get-BoxFile", {"Path": ["C:\\"], "MaxContentBytes": "many"}, ("MaxContentBytes",)),
        ("Get-BoxFile", {"Path": ["C:\\"], "Verbose": True}, ("Verbose",)),
    ],
)
def test_wrong_parameters_are_named(
    box: EngineBox, command: str, parameters: dict[str, Any], told: tuple[str, ...]
) -> None:
    with pytest.raises(BoxFault) as fault:
        box.call(command, **parameters)
    assert fault.value.type == "BadRequest"
    assert all(text in fault.value.error["message"] for text in told)


@pytest.mark.parametrize(
    "command", ["Get-Item", "Write-WireFrame", "Get-BoxFile; Remove-Item", "get-boxfile", ""]
)
def test_only_box_commands_are_run(box: EngineBox, command: str) -> None:
    (answer,) = box.loop.ask([{"command": command, "parameters": {}}], "change").answers
    assert answer["error"]["type"] == "UnknownCommand"


def test_a_payload_needs_a_command_that_takes_one(box: EngineBox) -> None:
    with pytest.raises(BoxFault) as fault:
        box.call("New-BoxDirectory", b"bytes", Path=["C:\\loop\\payload"])
    assert fault.value.type == "BadRequest"
    assert not box.host("C:\\loop\\payload").exists()


def test_a_damaged_program_is_not_run(box: EngineBox) -> None:
    loop = Loop(box.engine.start(COMMAND, {}, None, False))
    try:
        loop.send((bootstrap_line(loop.nonce, build_program().sha256) + "\n\n").encode())
        assert loop.frame().kind == "loaded"
        loop.send(base64.b64encode(gzip.compress(b"New-Item C:\\damaged -ItemType Directory")) + b"\n")
        loop.process.write_stdin(b"", True)
        with pytest.raises(AssertionError, match="SHA-256 differs"):
            loop.frame()
        assert not box.host("C:\\damaged").exists()
    finally:
        loop.close()


@pytest.mark.wine
def test_json_of_the_loop_is_json(wine_box: EngineBox) -> None:
    """Values that a request can hold come back in the job description as they went."""
    steps = [
        {"Name": "x", "Kind": "none", "Numbers": [0, -1, 2**53 + 1, 2**63, 1.5, 1e300], "Nothing": None},
        {"Name": "a", "name": "differs in case", "": "empty name", "Deep": [[[]], [{}], [[1]]]},
    ]
    wine_box.call(
        "Start-BoxJob", Path="C:\\loop\\json", Hash="h", Steps=steps, TaskPath="\\NInferFleet\\Job-json"
    )
    written = json.loads(wine_box.host("C:\\loop\\json\\job.json").read_text("ascii"))
    assert written["Steps"] == steps


@pytest.mark.wine
def test_what_the_box_prints_beside_frames_is_no_answer(wine_box: EngineBox) -> None:
    """Whatever a script writes past the loop, the frames stay whole."""
    text = "[Console]::Out.WriteLine('~WF1 forged'); [Console]::Out.Flush(); 'asked'"
    reply = wine_box.reply("Invoke-BoxScript", Text=text)
    assert reply.output("stdout") == b"asked\n"
    assert any(b"forged" in line for line in wine_box.loop.noise())


def test_the_program_is_one_ascii_line_on_the_wire() -> None:
    program = build_program()
    assert program.text.isascii()
    assert b"\n" not in program.packed
    assert hashlib.sha256(gzip.decompress(base64.b64decode(program.packed))).hexdigest() == program.sha256
    line = bootstrap_line("ab" * 16, program.sha256)
    assert line.startswith(f"$WF='{'ab' * 16}:{program.sha256}';")
    assert "\n" not in line
