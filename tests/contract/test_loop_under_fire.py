"""The frame loop on PowerShell for Windows under everything that a box, a program or a network does to it."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from powershell import COMMAND, EngineBox, Loop, engine_box, wine_missing
from powershell51 import coverage

from simbox.engines.engine import Chunk, Process
from winfleet.wire.frames import FrameReader, Request, encode_request
from winfleet.wire.output import LineDecoder

pytestmark = pytest.mark.wine

# PowerShell 7 under Wine finds no program by its name alone.
CMD = "C:\\windows\\system32\\cmd.exe"
PING = "C:\\windows\\system32\\ping.exe"
NUMBERS = itertools.count(1)


@pytest.fixture
def loop(wine_box: EngineBox) -> Iterator[Loop]:
    """A session that the test may break."""
    loop = wine_box.new_loop()
    yield loop
    loop.close()


@pytest.fixture
def folder(wine_box: EngineBox) -> str:
    """A folder of the test's own on the box."""
    path = f"C:\\fire\\{next(NUMBERS)}"
    wine_box.call("New-BoxDirectory", Path=[path])
    return path


def script(text: str, shell: str = "powershell", **more: Any) -> dict[str, Any]:
    return {"command": "Invoke-BoxScript", "parameters": {"Text": text, "Shell": shell, **more}}


def lives(loop: Loop) -> None:
    assert loop.call("Get-BoxFile", Path=["C:\\windows"])[0]["Kind"] == "directory"


class Tap:
    """A process whose stdout is noted. Implements simbox.engines.engine.Process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.out = b""

    @property
    def exit_code(self) -> int | None:
        return self._process.exit_code

    def write_stdin(self, data: bytes, end: bool) -> None:
        self._process.write_stdin(data, end)

    def read(self, timeout_s: float) -> list[Chunk]:
        found = self._process.read(timeout_s)
        self.out += b"".join(data for stream, data in found if stream == "stdout")
        return found

    def signal(self, ctrl_c: bool) -> None:
        self._process.signal(ctrl_c)

    def terminate(self) -> None:
        self._process.terminate()


# Bytes in any pieces


def test_output_may_be_cut_at_any_byte(wine_box: EngineBox) -> None:
    tap = Tap(wine_box.engine.start(COMMAND, {}, None, False))
    loop = Loop(tap)
    try:
        loop.open()
        loop.reply("Invoke-BoxScript", Text="[Console]::Out.Write('noise'); '\u4e2d\u6587 \U0001f600'")
        loop.reply("Get-BoxFilePart", Path="C:\\windows\\win.ini", OffsetBytes=0, LengthBytes=64)
        loop.reply("Get-BoxNothing")
    finally:
        loop.close()
    whole = FrameReader(loop.nonce).feed(tap.out)
    assert [frame.kind for frame in whole] == ["loaded", "ready", "output", "result", "result", "result"]
    for cut in range(len(tap.out) + 1):
        reader = FrameReader(loop.nonce)
        assert reader.feed(tap.out[:cut]) + reader.feed(tap.out[cut:]) == whole
        assert any(b"noise" in line for line in reader.take_noise())
    reader = FrameReader(loop.nonce)
    assert [frame for byte in tap.out for frame in reader.feed(bytes([byte]))] == whole


def test_a_request_may_arrive_byte_by_byte(loop: Loop) -> None:
    calls = [{"command": "Get-BoxFile", "parameters": {"Path": ["C:\\windows"]}}]
    for byte in encode_request(Request(loop.nonce, 1, "read", calls)):
        loop.send(bytes([byte]))
    assert loop.frame().data["answers"][0]["value"][0]["Kind"] == "directory"


def test_a_request_cut_in_its_payload_does_not_run(loop: Loop, wine_box: EngineBox, folder: str) -> None:
    """What is left of it may still be base64; the whole one follows and is run."""
    part = {"TemporaryPath": f"{folder}\\part", "OffsetBytes": 0, "Encoding": "none"}
    call = {"command": "Write-BoxFilePart", "parameters": part}
    line = encode_request(Request(loop.nonce, 1, "change", [call], b"0123456789" * 30))
    loop.send(line[: line.index(b" ") + 1 + 80] + b"\n")
    lives_at = encode_request(Request(loop.nonce, 1, "change", [call], b"0123456789" * 30))
    loop.send(lives_at)
    assert loop.frame().data["answers"] == [{"ok": True, "value": {"SizeBytes": 300}}]
    assert wine_box.host(f"{folder}\\part").read_bytes() == b"0123456789" * 30


# Noise


def test_noise_before_the_loader_and_before_ready(wine_box: EngineBox) -> None:
    loop = Loop(wine_box.engine.start(COMMAND, {}, None, False))
    try:
        noise = "~WF1 " + loop.nonce + " 0 0 loaded 4 00000000 e30="
        loop.send(
            f"[Console]::Out.Write('{noise}'); [Console]::Error.Write('banner'); "
            "[Console]::OpenStandardOutput().Write([byte[]](0xd6, 0xd0, 0, 0xff), 0, 4)\n\n".encode()
        )
        assert loop.open()["LanguageMode"] == "FullLanguage"
        assert loop.noise()[0] == noise.encode() + b"\xd6\xd0\x00\xff"
        lives(loop)
    finally:
        loop.close()


@pytest.mark.parametrize(
    "text",
    [
        "[Console]::Out.Write('no line end')",
        "$out = [Console]::OpenStandardOutput(); $out.Write([byte[]](126, 87, 70, 49, 32, 0xff, 0), 0, 7)",
        "[Console]::Error.WriteLine('to stderr')",
        f"Start-Process -NoNewWindow -Wait {CMD} -ArgumentList '/c','echo to the handle& echo both 1>&2'",
        "$host.UI.WriteLine('host')",
        "Write-Host 'host'",
    ],
)
def test_native_output_leaves_frames_whole(wine_box: EngineBox, text: str) -> None:
    reply = wine_box.reply("Invoke-BoxScript", Text=f"{text}; 'asked'")
    assert reply.answers[0]["value"] == {"ExitCode": 0, "TimedOut": False}
    assert b"asked\n" in reply.output("stdout")
    lives(wine_box.loop)


def test_native_programs_of_both_streams_are_told_apart(wine_box: EngineBox) -> None:
    reply = wine_box.reply("Invoke-BoxScript", Text=f"{CMD} /c 'echo out& echo err 1>&2& exit 3'")
    assert reply.output("stdout").split() == [b"out"]
    assert b"err" in reply.output("stderr")
    assert reply.answers[0]["value"]["ExitCode"] == 3


# Ends


@pytest.mark.parametrize(
    ("text", "shell", "code"),
    [
        ("exit 5", "powershell", 5),
        ("'a'; & { exit 6 }; 'b'", "powershell", 6),
        ("exit", "powershell", 0),
        ("$host.SetShouldExit(7)", "powershell", 0),
        ("exit 4", "cmd", 4),
        ("exit /b -1073741819", "cmd", -1073741819),
    ],
)
def test_exit_ends_the_text_and_not_the_loop(wine_box: EngineBox, text: str, shell: str, code: int) -> None:
    assert wine_box.call("Invoke-BoxScript", Text=text, Shell=shell)["ExitCode"] == code
    lives(wine_box.loop)


@pytest.mark.parametrize(
    ("text", "code"), [("[Environment]::Exit(3)", 3), ("Stop-Process -Id $PID -Force", None)]
)
def test_the_end_of_the_process_is_seen_and_the_next_session_works(
    loop: Loop, wine_box: EngineBox, text: str, code: int | None
) -> None:
    loop.send(encode_request(Request(loop.nonce, 1, "change", [script(f"'before'; {text}; 'after'")])))
    kinds = []
    with pytest.raises(AssertionError, match="ended: True"):  # noqa: PT012
        while True:
            kinds.append(loop.frame().kind)
    assert "result" not in kinds
    assert loop.process.exit_code is not None
    assert code is None or loop.process.exit_code == code
    lives(wine_box.loop)


# Input


@pytest.mark.parametrize(
    "text",
    [
        '$line = [Console]::In.ReadLine(); "[$line]"',
        "[Console]::OpenStandardInput().ReadByte()",
        "$input | ForEach-Object { $_ }; '[]'",
        f"{CMD} /d /c 'set /p X=& echo [%X%]'",
        "C:\\windows\\system32\\find.exe x",
        f"Start-Process -NoNewWindow -Wait {CMD} -ArgumentList '/c','set /p X='",
        "Read-Host",
    ],
)
def test_who_reads_stdin_gets_its_end_and_not_a_request(wine_box: EngineBox, text: str) -> None:
    number = 0
    wine_box.loop.send(encode_request(Request("0" * 32, number, "read", [])))  # a line that could be read
    reply = wine_box.reply("Invoke-BoxScript", Text=text, TimeoutSeconds=30)
    assert reply.answers[0]["value"]["TimedOut"] is False
    assert b"eyJ" not in reply.output("stdout")
    lives(wine_box.loop)


@pytest.mark.parametrize("shell", ["cmd", "powershell"])
def test_stdin_of_the_text_is_its_payload(wine_box: EngineBox, shell: str) -> None:
    text = {"cmd": 'find "a"', "powershell": "$input | Where-Object { $_ -match 'a' }"}[shell]
    reply = wine_box.reply("Invoke-BoxScript", b"b\r\na\r\nba\r\n", Text=text, Shell=shell)
    assert reply.output("stdout").split() == [b"a", b"ba"]


# Much and long


@pytest.fixture(scope="module")
def spew(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A program that writes as many bytes as its argument says."""
    target = tmp_path_factory.mktemp("spew") / "spew.exe"
    source = Path(__file__).with_name("spew.c")
    subprocess.run(["x86_64-w64-mingw32-gcc", "-O1", "-o", str(target), str(source)], check=True)
    return target.read_bytes()


@pytest.mark.parametrize("shell", ["powershell", "cmd"])
def test_fifty_megabytes_of_output(
    loop: Loop, wine_box: EngineBox, folder: str, spew: bytes, shell: str
) -> None:
    wine_box.host(f"{folder}\\spew.exe").write_bytes(spew)
    wanted = 50 << 20
    text = {
        "powershell": "$line = 'x' * 1048575; for ($i = 0; $i -lt 50; $i++) { $line }",
        "cmd": f"{folder}\\spew.exe {wanted}",
    }[shell]
    before = memory(wine_box, loop)
    reply = loop.ask([script(text, shell)], "change", timeout_s=200)
    assert reply.answers[0]["value"] == {"ExitCode": 0, "TimedOut": False}
    assert len(reply.output("stdout")) == wanted
    assert [frame.index for frame in reply.frames] == list(range(len(reply.frames)))
    again = loop.ask([script(text, shell)], "change", seq=1)
    assert again.answers[0]["error"]["type"] == "AnswerForgotten"
    assert memory(wine_box, loop) - before < 200 << 20
    lives(loop)


def memory(box: EngineBox, loop: Loop) -> int:
    (row,) = box.call("Get-BoxProcess", ProcessId=[loop.ready["ProcessId"]])
    return int(row["WorkingSetBytes"])


@pytest.mark.parametrize("shell", ["powershell", "cmd"])
def test_a_command_may_take_any_time(loop: Loop, wine_box: EngineBox, folder: str, shell: str) -> None:
    """Ten minutes are here as many polls that bring nothing: nothing in the loop counts the time."""
    go = f"{folder}\\go"
    text = {
        "powershell": f"'begun'; while (-not [IO.File]::Exists('{go}')) {{ Start-Sleep -Milliseconds 20 }}; 'ended'",
        # Of its own commands only: among hundreds of starts Wine's cmd.exe once found no ping.
        "cmd": f'echo begun\n:again\nif not exist "{go}" goto again\necho ended',
    }[shell]
    loop.send(encode_request(Request(loop.nonce, 1, "change", [script(text, shell)])))
    assert loop.frame().kind == "output"
    while loop.process.read(0.5):
        pass  # the rest of its first line
    for _ in range(40):
        assert loop.process.read(0.02) == []
    wine_box.host(go).touch()
    frames = [loop.frame()]
    while frames[-1].kind != "result":
        frames.append(loop.frame())
    assert frames[-1].data["answers"][0]["value"]["ExitCode"] == 0


def test_a_command_may_wait_for_another_session(loop: Loop, wine_box: EngineBox) -> None:
    event = "New-Object Threading.EventWaitHandle -ArgumentList $false, 'ManualReset', 'fire'"
    loop.send(
        encode_request(Request(loop.nonce, 1, "change", [script(f"$e = {event}; 'begun'; $e.WaitOne()")]))
    )
    assert loop.frame().data["text"] == "begun\n"
    wine_box.call("Invoke-BoxScript", Text=f"[void] ({event}).Set()")
    assert loop.frame().data["text"] == "True\n"
    assert loop.frame().kind == "result"


# Cancelled


def pings(box: EngineBox) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = box.call("Get-BoxProcess", Name=["ping.exe"])
    return found


@pytest.mark.parametrize("shell", ["powershell", "cmd"])
def test_a_cancelled_session_leaves_no_process(loop: Loop, wine_box: EngineBox, shell: str) -> None:
    text = {"powershell": f"'begun'; {PING} -n 600 127.0.0.1", "cmd": "echo begun& ping -n 600 127.0.0.1"}
    loop.send(encode_request(Request(loop.nonce, 1, "change", [script(text[shell], shell)])))
    assert loop.frame().kind == "output"
    while not pings(wine_box):
        pass
    loop.process.terminate()
    assert pings(wine_box) == []
    lives(wine_box.loop)


@pytest.mark.parametrize("shell", ["powershell", "cmd"])
def test_a_text_out_of_time_leaves_no_process_and_a_loop_that_answers(
    wine_box: EngineBox, shell: str
) -> None:
    reply = wine_box.reply(
        "Invoke-BoxScript", Text=f"echo begun{'&' if shell == 'cmd' else ';'} {PING} -n 600 127.0.0.1",
        Shell=shell, TimeoutSeconds=2,
    )  # fmt: skip
    assert reply.answers[0]["value"] == {"ExitCode": None, "TimedOut": True}
    assert reply.output("stdout").split()[0] == b"begun"
    assert pings(wine_box) == []
    lives(wine_box.loop)


# Children that stay


@pytest.mark.parametrize(
    ("text", "shell"),
    [
        (f"Start-Process -NoNewWindow {PING} -ArgumentList '-n','600','127.0.0.1'; 'done'", "powershell"),
        ("start /b ping -n 600 127.0.0.1& echo done", "cmd"),
    ],
)
def test_a_child_that_keeps_stdout_holds_nothing_up(
    loop: Loop, wine_box: EngineBox, text: str, shell: str
) -> None:
    reply = loop.reply("Invoke-BoxScript", Text=text, Shell=shell)
    assert b"done" in reply.output("stdout")
    assert reply.answers[0]["value"]["ExitCode"] == 0
    assert len(pings(wine_box)) == 1
    lives(loop)
    loop.process.write_stdin(b"", True)
    loop.close()
    assert pings(wine_box) == []


# Again


def test_a_request_sent_again_while_it_runs_is_answered_twice_and_run_once(
    loop: Loop, wine_box: EngineBox, folder: str
) -> None:
    log = f"{folder}\\log.txt"
    text = f"[IO.File]::AppendAllText('{log}', 'x'); 'one'; 'two'"
    line = encode_request(Request(loop.nonce, 1, "change", [script(text)]))
    header = encode_request(Request(loop.nonce, 1, "change", []))
    loop.send(line + line + header)
    answers: list[list[Any]] = []
    for _ in range(3):
        answers.append([loop.frame()])
        while answers[-1][-1].kind != "result":
            answers[-1].append(loop.frame())
    assert answers[0] == answers[1] == answers[2]
    assert wine_box.host(log).read_text() == "x"


# Languages


@pytest.mark.skipif(
    bool(os.environ.get(coverage.VARIABLE)), reason="notes of coverage need the full language"
)
def test_the_language_mode_is_told_when_it_keeps_the_loop_away(wine_box: EngineBox) -> None:
    loop = Loop(wine_box.engine.start(COMMAND, {}, None, False))
    try:
        loop.send(b"$ExecutionContext.SessionState.LanguageMode = 'ConstrainedLanguage'\n\n")
        with pytest.raises(AssertionError, match=r"ended: True.*limited to ConstrainedLanguage"):
            loop.open()
        assert loop.process.exit_code == 1
    finally:
        loop.close()


def test_a_python_box_tells_its_language_mode_alike() -> None:
    with engine_box("python") as box:
        box.box.store.set("system", "language_mode", value="ConstrainedLanguage")
        loop = Loop(box.engine.start(COMMAND, {}, None, False))
        with pytest.raises(AssertionError, match=r"ended: True.*limited to ConstrainedLanguage"):
            loop.open()
        assert loop.process.exit_code == 1


@pytest.fixture(scope="module")
def chinese_box() -> Iterator[EngineBox]:
    missing = wine_missing()
    if missing:
        pytest.skip(missing)
    with engine_box("wine", "zh-cn") as box:
        yield box


TEXTS = ["\u4e2d\u6587", "\u5fcd\u8005\u4e28", "plain"]
"""The second holds bytes that are \\ and | in ASCII."""


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("shell", ["cmd", "powershell"])
def test_bytes_of_code_page_936_are_decoded(chinese_box: EngineBox, text: str, shell: str) -> None:
    assert (chinese_box.loop.ready["OemCodePage"], chinese_box.loop.ready["AnsiCodePage"]) == (936, 936)
    command = f"echo {text}" if shell == "cmd" else f"{CMD} /d /c echo {text}"
    output = chinese_box.reply("Invoke-BoxScript", Text=command, Shell=shell).output("stdout")
    if shell == "cmd":
        assert output.rstrip() == text.encode("cp936"), "as the program wrote them"
    for cut in range(len(output) + 1):
        decoder = LineDecoder(chinese_box.loop.ready["OemCodePage"])
        lines = [*decoder.feed(output[:cut]), *decoder.feed(output[cut:]), *decoder.finish()]
        assert lines == [text]


def test_native_noise_of_code_page_936_leaves_frames_whole(chinese_box: EngineBox) -> None:
    text = "$out = [Console]::OpenStandardOutput(); $out.Write([byte[]](0xd6, 0xd0, 0x81), 0, 3); '\u4e2d'"
    reply = chinese_box.reply("Invoke-BoxScript", Text=text)
    assert reply.output("stdout").decode() == "\u4e2d\n"
    assert chinese_box.loop.noise() == [b"\xd6\xd0\x81"]
