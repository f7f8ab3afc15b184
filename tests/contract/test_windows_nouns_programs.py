"""The one executable behind every program of a wine box: what it tells, relays and ends with."""

from __future__ import annotations

import json
import re
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from powershell import EngineBox

from simbox.engines.engine import Process
from simbox.engines.wine import tree
from simbox.rpc import until_gone

pytestmark = pytest.mark.wine
GIT = "C:\\Program Files\\Git\\cmd\\git.exe"
WAIT_S = 60


class Simulator:
    """The other side of one run of the executable."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(WAIT_S)
        self.environment = {"SIMBOX_PORT": str(self._listener.getsockname()[1]), "SIMBOX_TOKEN": "example"}

    def request(self) -> dict[str, Any]:
        """Wait for the executable and return what it says."""
        self.connection, _ = self._listener.accept()
        self.connection.settimeout(WAIT_S)
        self._reader = self.connection.makefile("rb")
        return dict(json.loads(self._reader.readline()))

    def frame(self, kind: bytes, data: bytes) -> None:
        self.connection.sendall(kind + struct.pack("<I", len(data)) + data)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    made = Simulator()
    yield made
    made.close()


def run(box: EngineBox, simulator: Simulator, arguments: str, **environment: str) -> Process:
    return box.engine.start(
        f'"{GIT}" {arguments}', {**simulator.environment, **environment}, "C:\\models", True
    )


def output(process: Process) -> bytes:
    """All of stdout, until the process has ended."""
    collected = b""
    deadline = time.monotonic() + WAIT_S
    while process.exit_code is None and time.monotonic() < deadline:
        collected += b"".join(data for name, data in process.read(1) if name == "stdout")
    return collected + b"".join(data for name, data in process.read(0) if name == "stdout")


def test_it_tells_arguments_folder_and_environment_exactly(wine_box: EngineBox, simulator: Simulator) -> None:
    arguments = (
        r'clone "a b" "C:\dir with space\\" plain\path "say \"hi\"" "" caf' + "\u00e9\u4efb\u52a1 100% ^&"
    )
    process = run(wine_box, simulator, arguments, CONTRACT_VALUE='quote " and \\ backslash')
    request = simulator.request()
    simulator.frame(b"X", struct.pack("<i", 0))
    output(process)
    assert (request["op"], request["token"], request["name"]) == ("program", "example", "git.exe")
    assert request["path"] == GIT
    assert request["argv"][1:] == [
        "clone",
        "a b",
        "C:\\dir with space\\",
        "plain\\path",
        'say "hi"',
        "",
        "caf\u00e9\u4efb\u52a1",
        "100%",
        "^&",
    ]
    assert request["command_line"].endswith(arguments)
    assert request["cwd"].lower() == "c:\\models"
    assert request["pid"] > 0
    assert request["environment"]["CONTRACT_VALUE"] == 'quote " and \\ backslash'
    assert not [name for name in request["environment"] if not name]


def test_bytes_pass_unchanged_and_the_exit_code_is_its_own(wine_box: EngineBox, simulator: Simulator) -> None:
    process = run(wine_box, simulator, "anything")
    simulator.request()
    data = bytes(range(256)) * 2000 + b"\xc8\xce\xce\xf1\r\n"
    simulator.frame(b"O", data)
    simulator.frame(b"X", struct.pack("<I", 0xC0000409))
    assert output(process) == data
    assert process.exit_code == 0xC0000409


def test_the_simulator_sees_that_it_was_killed(wine_box: EngineBox, simulator: Simulator) -> None:
    process = run(wine_box, simulator, "wait")
    unix_pid = simulator.request()["unix_pid"]
    ended = Thread(target=until_gone, args=(simulator.connection, unix_pid), daemon=True)
    ended.start()
    process.terminate()
    ended.join(WAIT_S)
    assert not ended.is_alive()


@pytest.mark.parametrize("how", ["it closes its connection", "its process ends", "its process has ended"])
def test_an_end_is_seen_by_the_connection_or_by_the_process(how: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen(["sleep", "600"]) as process:
        try:
            if how == "its process has ended":
                process.kill()
                process.wait()
            ended = Thread(target=until_gone, args=(ours, process.pid), daemon=True)
            ended.start()
            if how != "its process has ended":
                theirs.sendall(b"noise")
            if how == "it closes its connection":
                theirs.close()
            if how == "its process ends":
                process.kill()
            ended.join(WAIT_S)
            assert not ended.is_alive()
        finally:
            process.kill()


def test_a_simulator_that_goes_away_is_a_failure(wine_box: EngineBox, simulator: Simulator) -> None:
    process = run(wine_box, simulator, "wait")
    simulator.request()
    simulator.connection.shutdown(socket.SHUT_RDWR)
    output(process)
    assert process.exit_code == 255


def test_powershell_finds_it_as_a_process_of_that_name(wine_box: EngineBox, simulator: Simulator) -> None:
    process = run(wine_box, simulator, "wait")
    request = simulator.request()
    (found,) = wine_box.call("Get-BoxProcess", ProcessId=[request["pid"]])
    assert (found["Name"], found["ExecutablePath"]) == ("git.exe", GIT)
    process.terminate()


def test_nothing_of_a_start_dies_with_its_terminal(wine_box: EngineBox, simulator: Simulator) -> None:
    """A conhost.exe that dies before its console ends takes the wineserver with it."""
    process = run(wine_box, simulator, "wait")
    simulator.request()
    members = tree.members(process._mark)  # type: ignore[attr-defined]
    programs = {tree._program(pid) for pid in members}
    assert {"launch.exe", "conhost.exe", "git.exe"} <= programs
    for pid in members:
        ignored = re.search(r"^SigIgn:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        assert ignored is not None
        assert int(ignored[1], 16) & 1 << (signal.SIGHUP - 1), tree._program(pid)
    process.terminate()
    assert tree.members(process._mark) == []  # type: ignore[attr-defined]
