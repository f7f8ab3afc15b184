"""The connector with the product's own program on a simulated box of the python engine."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loop_box import ADDRESS, CERTIFICATES, PASSWORD, USER, LoopBox, World

from simbox.box import Box
from simbox.engines.python.engine import PythonEngine
from simbox.winrm import Certificate, Credential, WinRMEndpoint
from winfleet.call import Call
from winfleet.connectors.winrm import WinRMConnector
from winfleet.wire.frames import Request, decode_frame, encode_request

FOLDER = "C:\\wire test"


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopBox]:
    """A box of the python engine behind its endpoint; afterwards it must hold no shell."""
    monkeypatch.setenv("LOOP_BOX_PASSWORD", PASSWORD)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    box = Box.open(tmp_path / "box", "gpu01", ADDRESS, "rtx4090d")
    endpoint = WinRMEndpoint(
        ADDRESS,
        0,
        0,
        [Credential(USER, PASSWORD)],
        PythonEngine(box),
        box.events,
        Certificate.load_or_create(CERTIFICATES, "localhost", ADDRESS),
        name="gpu01",
    )
    endpoint.start()
    made = LoopBox(endpoint, World(), box.events)
    try:
        yield made
        for connector in made.made:
            connector.disconnect()
        assert endpoint.shells() == []
    finally:
        endpoint.stop()
        box.shut_down()


def value(connector: WinRMConnector, call: Call) -> Any:
    """The value that a Call gives; fails when it gives an error."""
    answer = json.loads(connector.run_shell_command(call)[1].stdout_lines[0])
    assert answer["ok"], answer
    return answer["value"]


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_commands_files_and_scripts(simulated: LoopBox, scheme: str) -> None:
    connector = simulated.connected(scheme)
    assert value(connector, Call("Get-BoxSession"))["ComputerName"].lower() == "gpu01"
    assert value(connector, Call("New-BoxDirectory", Path=[FOLDER]))
    content = random.Random(1).randbytes(1_200_000)
    path = f"{FOLDER}\\中文 \u00e4.bin"
    assert connector.put_file(io.BytesIO(content), path)
    sink = io.BytesIO()
    assert connector.get_file(path, sink)
    assert sink.getvalue() == content
    assert connector.put_file(io.BytesIO(b"small" * 1000), path)
    assert value(connector, Call("Get-BoxFile", Path=[path]))[0]["SizeBytes"] == 5000
    names = [item["Name"] for item in value(connector, Call("Get-BoxChildItem", Path=FOLDER))["Items"]]
    assert names == ["中文 \u00e4.bin"]
    ok, output = connector.run_shell_command("echo hello", _shell_executable="cmd", _chdir=FOLDER)
    assert ok, output.output
    assert output.stdout_lines == ["hello"]
    assert simulated.events.counts("process_start") >= 1
    assert simulated.events.counts("shell_created") == 1


def test_several_facts_in_one_request(simulated: LoopBox) -> None:
    connector = simulated.connected()
    calls = [
        Call("Get-BoxSystem"),
        Call("Get-BoxFile", Path=["C:\\"]),
        Call("Get-BoxRegistry", Key="HKLM:\\SOFTWARE"),
    ]
    assert connector.prefetch(calls) == 3
    before = simulated.events.counts("http_request")
    for call in calls:
        assert value(connector, call) is not None
    assert simulated.events.counts("http_request") == before


def test_a_refused_change_says_why(simulated: LoopBox) -> None:
    connector = simulated.connected()
    ok, output = connector.run_shell_command(Call("Remove-BoxItem", Path=["C:\\Windows"], Recurse=True))
    assert not ok
    assert "Refused" in output.stderr
    assert json.loads(output.stdout)["error"]["type"] == "Refused"


def test_the_box_itself_refuses_a_change_in_a_read_only_session(simulated: LoopBox) -> None:
    """What the controller would refuse anyway is sent past it, to the loop."""
    connector = simulated.connected()
    session = connector._session
    assert session is not None
    talk = session._talk
    assert talk is not None
    call = Call("New-BoxDirectory", Path=[FOLDER])
    answer = talk.ask([call], "read", 30.0)[0]
    assert answer.error_type == "ReadOnlyRefused"
    assert value(connector, Call("Get-BoxFile", Path=[FOLDER]))[0]["Kind"] == "absent"


@pytest.mark.parametrize("scheme", ["https", "http"])
@pytest.mark.parametrize("action", ["Send", "Receive"])
def test_lost_replies(simulated: LoopBox, scheme: str, action: str) -> None:
    connector = simulated.connected(scheme)
    simulated.arm("close_after", on=action)
    assert value(connector, Call("New-BoxDirectory", Path=[FOLDER])) == {"Created": [FOLDER]}


def test_a_request_known_by_its_number_needs_no_calls(simulated: LoopBox) -> None:
    """The short form in which a session asks again for an answer that was lost."""
    connector = simulated.connected()
    session = connector._session
    assert session is not None
    talk = session._talk
    assert talk is not None
    connector.run_shell_command(Call("New-BoxDirectory", Path=[FOLDER]))
    again = Request(talk._reader.nonce, talk._seq, "change", [])
    talk.shell.write(encode_request(again))
    lines: list[bytes] = []
    while not lines:
        lines = [line for line in talk.shell.read(20).stdout.split(b"\n") if line.strip()]
    assert decode_frame(lines[-1]).data["answers"][0]["value"] == {"Created": [FOLDER]}
