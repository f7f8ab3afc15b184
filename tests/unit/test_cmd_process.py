"""cmd.exe as a process of a python box: handles, killing, exit codes, code pages, what is refused."""

from __future__ import annotations

import io
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbox.account import environment as account
from simbox.box import Box
from simbox.cmd.machine import Streams
from simbox.engines.python import handles, launcher, systemprograms
from simbox.engines.python.commandline import parse_shell_line, split_argv
from simbox.engines.python.engine import PythonEngine, PythonProcess
from simbox.job.jobfolder import JobFolder


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box.open(tmp_path / "box", "gpu01", "127.0.88.1", "rtx4090d")
    systemprograms.install(made)
    yield made
    made.shut_down()


def start(box: Box, text: str, out: io.BytesIO, err: io.BytesIO | None = None) -> launcher.Child:
    box.filesystem.write("C:\\t\\x.bat", ("@echo off\r\n" + text.replace("\n", "\r\n") + "\r\n").encode())
    streams = Streams(io.BytesIO(), out, err or io.BytesIO())
    return launcher.launch(box, "C:\\t\\x.bat", "x.bat", "C:\\t", account.environment(box), streams)


def output(process: PythonProcess) -> tuple[int, str, str]:
    streams = {"stdout": b"", "stderr": b""}
    while process.exit_code is None:
        for name, data in process.read(30):
            streams[name] += data
    for name, data in process.read(0):
        streams[name] += data
    return process.exit_code, streams["stdout"].decode(), streams["stderr"].decode()


def run(box: Box, line: str, skip_cmd_shell: bool = False) -> tuple[int, str, str]:
    return output(PythonEngine(box).start(line, {}, None, skip_cmd_shell))


def wait_for_child(box: Box, name: str) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        rows = box.windows.process.list([name])
        if rows:
            return int(rows[0]["ProcessId"])
        threading.Event().wait(0.01)
    raise AssertionError(f"{name} does not start")


def test_ordinary_commands(box: Box) -> None:
    assert run(box, "hostname") == (0, "GPU01\r\n", "")
    assert run(box, "echo hi there") == (0, "hi there\r\n", "")
    code, text, _ = run(box, "ver")
    assert (code, "Microsoft Windows [Version 10.0.22631" in text) == (0, True)
    assert run(box, "exit 7")[0] == 7
    assert run(box, "cmd /c exit -1073741819")[0] == 0xC0000005
    assert run(box, "echo %COMPUTERNAME% %NOPE%")[1] == "GPU01 %NOPE%\r\n"


def test_an_unknown_command(box: Box) -> None:
    code, text, error = run(box, "frobnicate now")
    assert (code, text) == (1, "")
    assert "'frobnicate' is not recognized as an internal or external command" in error


def test_text_travels_as_utf8_in_a_remote_shell(box: Box) -> None:
    assert run(box, "echo 中文")[1] == "中文\r\n"


def test_skipping_the_shell_needs_a_full_path(box: Box) -> None:
    assert run(box, "C:\\Windows\\System32\\hostname.exe", skip_cmd_shell=True)[1] == "GPU01\r\n"
    with pytest.raises(FileNotFoundError):
        PythonEngine(box).start("hostname", {}, None, True)
    with pytest.raises(FileNotFoundError):
        PythonEngine(box).start("hostname", {}, "C:\\nowhere", False)


@pytest.mark.parametrize(
    "line",
    [
        "powershell.exe -NoProfile -EncodedCommand RwBlAHQALQBEAGEAdABlAA==",
        "powershell -Command Get-Date",
        'C:\\Windows\\System32\\WindowsPowerShell\\v1.0\\powershell.exe -File "C:\\x.ps1"',
        "cmd /c powershell Get-Date",
    ],
)
def test_other_powershell_is_refused_with_the_way_out(box: Box, line: str) -> None:
    code, text, error = run(box, line)
    assert (code, text) == (1, "")
    assert "--engine wine" in error


def test_powershell_that_gets_no_program_is_refused(box: Box) -> None:
    process = PythonEngine(box).start("powershell.exe -NoProfile -Command -", {}, None, False)
    process.write_stdin(b"Get-Date\n\n", True)
    code, _, error = output(process)
    assert code == 1
    assert "--engine wine" in error


def test_stdin_reaches_set_p(box: Box) -> None:
    process = PythonEngine(box).start("set /p X= & call echo [%^X%]", {}, None, False)
    process.write_stdin(b"typed\r\nmore\r\n", True)
    assert output(process)[1] == "[typed]\r\n"


def test_terminate_interrupts_a_pause_and_kills_the_tree(box: Box) -> None:
    box.filesystem.write("C:\\t\\x.bat", b"@ping -n 600 127.0.0.1 >nul\r\n@echo never\r\n")
    process = PythonEngine(box).start("C:\\t\\x.bat", {}, None, False)
    pid = wait_for_child(box, "ping.exe")
    process.terminate()
    assert output(process)[:2] == (1, "")
    child = box.windows.process.find(pid)
    assert child is None or child.gone.wait(10)


def test_a_killed_shell_leaves_its_child(box: Box) -> None:
    out = io.BytesIO()
    shell = start(box, "ping -n 600 127.0.0.1 >log.txt\necho never", out)
    pid = wait_for_child(box, "ping.exe")
    shell.kill_root()
    assert shell.wait(10) == 1
    assert box.windows.process.find(pid) is not None
    assert out.getvalue() == b""
    second = io.BytesIO()
    again = start(box, "echo more >log.txt || echo held", second)
    assert again.wait(10) is not None
    assert second.getvalue() == b"held\r\n", "the child holds the log open"
    box.windows.process.stop(pid)
    third = io.BytesIO()
    once_more = start(box, "echo more >log.txt && type log.txt", third)
    assert once_more.wait(10) == 0
    assert third.getvalue().split() == [b"more"]


def test_a_killed_child_gives_its_code_to_the_batch_file(box: Box) -> None:
    out = io.BytesIO()
    shell = start(box, "ping -n 600 127.0.0.1 >nul\necho %ERRORLEVEL%", out)
    box.windows.process.stop(wait_for_child(box, "ping.exe"), exit_code=0xFFFFFFFF)
    assert shell.wait(10) == 0xFFFFFFFF
    assert out.getvalue() == b"-1\r\n"


def test_a_file_held_by_another_process(box: Box) -> None:
    box.filesystem.write("C:\\t\\a.txt", b"text")
    held = handles.of(box).open(box.filesystem.host("C:\\t\\a.txt"), handles.READ, handles.NOTHING)
    err, out = io.BytesIO(), io.BytesIO()
    shell = start(box, "type a.txt\ndel a.txt\nif exist a.txt echo there", out, err)
    assert shell.wait(10) is not None
    assert out.getvalue() == b"there\r\n"
    assert err.getvalue().count(b"being used by another process") == 2
    handles.of(box).close(held)


def test_a_batch_file_replaced_while_it_runs_goes_on_at_the_same_byte(box: Box) -> None:
    first = b"@echo off\r\ncopy /y new.bat x.bat >nul\r\necho old\r\n"
    second = first.replace(b"old", b"new")
    box.filesystem.write("C:\\t\\new.bat", second)
    box.filesystem.write("C:\\t\\x.bat", first)
    out = io.BytesIO()
    streams = Streams(io.BytesIO(), out, io.BytesIO())
    shell = launcher.launch(box, "C:\\t\\x.bat", "x.bat", "C:\\t", account.environment(box), streams)
    assert shell.wait(10) is not None
    assert out.getvalue() == b"new\r\n"


def test_a_missing_label_ends_the_batch_file(box: Box) -> None:
    err, out = io.BytesIO(), io.BytesIO()
    shell = start(box, "goto nowhere\necho never", out, err)
    assert shell.wait(10) == 1
    assert (out.getvalue(), b"cannot find the batch label specified - nowhere" in err.getvalue()) == (
        b"",
        True,
    )


def test_code_page_936(tmp_path: Path) -> None:
    chinese = Box.open(tmp_path / "box", "gpu02", "127.0.88.2", "zh-cn")
    systemprograms.install(chinese)
    chinese.filesystem.write("C:\\t\\x.bat", "@echo 中文\r\n".encode("gbk"))
    out = io.BytesIO()
    streams = Streams(io.BytesIO(), out, io.BytesIO())
    shell = launcher.launch(chinese, "C:\\t\\x.bat", "x.bat", "C:\\t", account.environment(chinese), streams)
    assert shell.wait(10) == 0
    assert out.getvalue() == "中文\r\n".encode("gbk")


def test_timeout_needs_a_console(box: Box) -> None:
    code, _, error = run(box, "timeout /t 5")
    assert code == 1
    assert "Input redirection is not supported" in error


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        ('a.exe b "c d" ""', ["a.exe", "b", "c d", ""]),
        ('"C:\\a b\\x.exe" "a\\\\" b', ["C:\\a b\\x.exe", "a\\", "b"]),
        ('x a\\\\\\"b', ["x", 'a\\"b']),
        ('x "a""b" c', ["x", 'a"b', "c"]),
        ("x C:\\dir\\ y", ["x", "C:\\dir\\", "y"]),
    ],
)
def test_argv(line: str, argv: list[str]) -> None:
    assert split_argv(line) == argv


@given(st.lists(st.text(alphabet='ab \t"\\\\^%&é中', max_size=8), max_size=5))
def test_argv_takes_apart_what_was_quoted_for_it(arguments: list[str]) -> None:
    assert split_argv(subprocess.list2cmdline(["x.exe", *arguments])) == ["x.exe", *arguments]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('/d /s /c ""C:\\a b\\x.bat" "y z""', '"C:\\a b\\x.bat" "y z"'),
        ("/c echo hi", "echo hi"),
        ('/c "C:\\a b\\x.bat"', '"C:\\a b\\x.bat"'),
        ('/c "C:\\a b\\x.bat" "y"', 'C:\\a b\\x.bat" "y'),
        ("/cecho hi", "echo hi"),
        ("/q", None),
    ],
)
def test_quotes_of_cmd_c(arguments: str, text: str | None) -> None:
    assert parse_shell_line(arguments, lambda name: True).text == text


def test_what_is_started_in_the_moment_of_a_kill_ends_with_the_tree(box: Box) -> None:
    table = box.windows.process
    ping = "C:\\Windows\\System32\\PING.EXE"
    started: list[int] = []

    def late(code: int) -> None:
        table.exited(started[0], code)

    def root_killed(code: int) -> None:
        started.append(table.add(ping, late, parent_pid=root.pid).pid)
        table.exited(root.pid, code)

    root = table.add("C:\\Windows\\System32\\cmd.exe", root_killed)
    table.kill_tree(root.pid)
    assert started
    assert table.list(pids=[root.pid, *started]) == []


def test_a_job_that_ends_between_two_looks_is_done(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    job = JobFolder(box, "C:\\job")
    job.host("job.json").parent.mkdir()
    job.write("job.json", '{"Hash": "one", "Steps": [], "TaskPath": "\\\\NInferFleet\\\\Job"}')
    job.write("pid", "77 2026-09-01T10:00:00.0000000Z")
    assert job.state() == "lost"

    def ends(self: JobFolder) -> bool:
        self.write("rc", "0")
        return False

    monkeypatch.setattr(JobFolder, "is_alive", ends)
    assert job.state() == "done"
