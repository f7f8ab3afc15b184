"""Processes and free text, on every engine; PowerShell text where there is a PowerShell."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from powershell import BoxFault, EngineBox

CMD = "C:\\Windows\\System32\\cmd.exe"


@contextlib.contextmanager
def running(box: EngineBox, command: str) -> Iterator[dict[str, Any]]:
    """A command that cmd.exe of the box runs; its process as Get-BoxProcess sees it."""
    known = {row["ProcessId"] for row in box.call("Get-BoxProcess", Name=["ping.exe"])}
    started = box.engine.start(command, {}, None, False)
    try:
        found: list[dict[str, Any]] = []
        while not found:
            assert started.exit_code is None
            started.read(0.05)
            rows = box.call("Get-BoxProcess", Name=["ping.exe"])
            found = [row for row in rows if row["ProcessId"] not in known]
        yield found[0]
    finally:
        started.terminate()


def test_a_process_is_described_without_its_command_line(box: EngineBox) -> None:
    with running(box, "ping -n 100 127.0.0.1") as process:
        assert process["Name"].lower() == "ping.exe"
        assert process["ExecutablePath"].lower() == "c:\\windows\\system32\\ping.exe"
        assert process["CreationTimeUtc"].endswith("Z")
        assert process["PriorityClass"] == "Normal"
        assert process["ParentProcessId"] > 0
        assert not any("127.0.0.1" in str(value) for value in process.values())
        assert box.call("Get-BoxProcess", ProcessId=[process["ProcessId"]])[0]["Name"] == process["Name"]


def test_a_process_is_stopped_by_id_and_creation_time(box: EngineBox) -> None:
    with running(box, "ping -n 100 127.0.0.1") as process:
        answer = box.call(
            "Stop-BoxProcess", ProcessId=process["ProcessId"], CreationTimeUtc=process["CreationTimeUtc"]
        )
        assert answer["Stopped"] is True
        assert answer["ExitCode"] is not None
        assert box.call("Get-BoxProcess", ProcessId=[process["ProcessId"]]) == []


def test_another_process_of_the_same_id_is_left_alone(box: EngineBox) -> None:
    with running(box, "ping -n 100 127.0.0.1") as process:
        with pytest.raises(BoxFault) as fault:
            box.call(
                "Stop-BoxProcess",
                ProcessId=process["ProcessId"],
                CreationTimeUtc="2020-01-01T00:00:00.0000000Z",
            )
        assert fault.value.type == "Refused"
        (left,) = box.call("Get-BoxProcess", ProcessId=[process["ProcessId"]])
        assert left["CreationTimeUtc"] == process["CreationTimeUtc"]


def test_a_process_that_is_gone_is_no_error(box: EngineBox) -> None:
    answer = box.call("Stop-BoxProcess", ProcessId=999996, CreationTimeUtc="2020-01-01T00:00:00.0000000Z")
    assert answer == {"Stopped": False, "ExitCode": None}


@pytest.mark.parametrize(
    ("text", "code", "output"),
    [
        ("echo hi", 0, b"hi"),
        ("exit 3", 3, b""),
        ("exit -1073741819", -1073741819, b""),
        ("echo one\necho two\nexit /b 4", 4, b"one\r\ntwo"),
        ("echo %NINFER_TEST%", 0, b"a value and more"),
    ],
)
def test_text_for_cmd(box: EngineBox, text: str, code: int, output: bytes) -> None:
    environment = {"NINFER_TEST": "a value and more"}
    reply = box.reply("Invoke-BoxScript", Text=text, Shell="cmd", Environment=environment)
    assert reply.answers[0]["value"] == {"ExitCode": code, "TimedOut": False}
    assert reply.output("stdout").strip() == output


def test_stderr_of_cmd_is_kept_apart(box: EngineBox) -> None:
    reply = box.reply("Invoke-BoxScript", Text="echo out& echo err>&2", Shell="cmd")
    assert (reply.output("stdout").strip(), reply.output("stderr").strip()) == (b"out", b"err")


def test_a_text_whose_time_is_up_ends_with_its_programs(box: EngineBox) -> None:
    before = {row["ProcessId"] for row in box.call("Get-BoxProcess", Name=["ping.exe"])}
    value = box.call("Invoke-BoxScript", Text="ping -n 300 127.0.0.1 >nul", Shell="cmd", TimeoutSeconds=1.5)
    assert value == {"ExitCode": None, "TimedOut": True}
    assert {row["ProcessId"] for row in box.call("Get-BoxProcess", Name=["ping.exe"])} <= before


def test_a_shell_that_there_is_not(box: EngineBox) -> None:
    with pytest.raises(BoxFault) as fault:
        box.call("Invoke-BoxScript", Text="echo", Shell="bash")
    assert fault.value.type == "BadRequest"


@pytest.mark.wine
@pytest.mark.parametrize(
    ("text", "code", "stdout", "stderr"),
    [
        ("'one'; 'two'", 0, b"one\ntwo\n", b""),
        ("exit 9", 9, b"", b""),
        ("'x'; throw 'bad'", 1, b"x\n", b"bad\n"),
        ("Get-Item C:\\nowhere", 1, b"", b"Cannot find path 'C:\\nowhere'"),
        ("Get-Item C:\\nowhere; 'after'", 0, b"after\n", b"Cannot find path"),
        (f"& {CMD} /c exit 5", 5, b"", b""),
        (f"& {CMD} /c exit 5; 'fine'", 0, b"fine\n", b""),
        (f"& {CMD} /c 'echo err 1>&2'", 0, b"", b"err"),
        ("if (", 1, b"", b"Missing condition"),
        ("'" + "x" * 1000 + "'", 0, b"x" * 1000 + b"\n", b""),
        ("[pscustomobject] @{ Name = 'a'; Size = 5 }", 0, b"Name Size", b""),
        ("Write-Warning 'careful'", 0, b"", b"WARNING: careful\n"),
        ("'last' # a comment ends it", 0, b"last\n", b""),
        ("$input | ForEach-Object { $_ + '!' }", 0, b"a!\n\xe4\xb8\xad!\n", b""),
        ("$env:NINFER_TEST; (Get-Location).Path", 0, "\u503c\nC:\\windows\n".encode(), b""),
    ],
)
def test_text_for_powershell(wine_box: EngineBox, text: str, code: int, stdout: bytes, stderr: bytes) -> None:
    reply = wine_box.reply(
        "Invoke-BoxScript",
        "a\r\n\u4e2d\n".encode(),
        Text=text,
        Environment={"NINFER_TEST": "\u503c"},
        WorkingDirectory="C:\\windows",
    )
    assert reply.answers[0].get("value") == {"ExitCode": code, "TimedOut": False}, reply.answers
    if stdout == b"":
        assert reply.output("stdout") == b""
    assert stdout in reply.output("stdout")
    assert reply.output("stderr").startswith(stderr)


@pytest.mark.wine
def test_a_text_leaves_nothing_behind_in_the_session(wine_box: EngineBox) -> None:
    wine_box.call("Invoke-BoxScript", Text="$Left = 1; Set-Location C:\\", Environment={"NINFER_LEFT": "x"})
    reply = wine_box.reply("Invoke-BoxScript", Text='"[$Left][$env:NINFER_LEFT]"; exit 0')
    assert reply.output("stdout") == b"[][]\n"


@pytest.mark.wine
def test_a_program_of_the_text_does_not_read_the_requests(wine_box: EngineBox) -> None:
    """What it reads from stdin is at its end; the next request is answered."""
    text = f"& {CMD} /c 'set /p X=& echo got [%X%]'"
    assert b"got" in wine_box.reply("Invoke-BoxScript", Text=text).output("stdout")
    assert wine_box.call("Get-BoxFile", Path=["C:\\Windows"])[0]["Kind"] == "directory"


@pytest.mark.wine
def test_a_text_that_ends_the_process_ends_the_session_only(wine_box: EngineBox) -> None:
    loop = wine_box.new_loop()
    loop.send(b"")
    with pytest.raises(AssertionError, match="ended: True"):
        loop.call("Invoke-BoxScript", Text="[Environment]::Exit(7)")
    assert loop.process.exit_code == 7
    assert wine_box.call("Get-BoxFile", Path=["C:\\Windows"])[0]["Kind"] == "directory"


@pytest.mark.wine
@pytest.mark.parametrize("text", ["while ($true) { }", f"& {CMD} /c 'ping -n 300 127.0.0.1 >nul'"])
def test_powershell_text_whose_time_is_up(wine_box: EngineBox, text: str) -> None:
    value = wine_box.call("Invoke-BoxScript", Text=text, TimeoutSeconds=1)
    assert value == {"ExitCode": None, "TimedOut": True}
    assert wine_box.reply("Invoke-BoxScript", Text="'next'").output("stdout") == b"next\n"
