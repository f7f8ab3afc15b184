"""The connector with the product's own program on PowerShell for Windows under Wine."""

from __future__ import annotations

import concurrent.futures
import io
import json
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State

from simbox import service
from simbox.engines.wine import launcher, locate
from winfleet.call import Call
from winfleet.connectors.winrm import WinRMConnector
from winfleet.wire.errors import DeadlineExceeded, OutcomeUnknown

pytestmark = pytest.mark.wine

FOLDER = "C:\\wire test\\中文 \u00e4 \U0001f600"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a simulator with one wine box."""
    try:
        locate.locate()
        launcher.launcher()
    except locate.Missing as missing:
        pytest.skip(str(missing))
    directory = tmp_path_factory.mktemp("wine fleet")
    network = f"127.3.{os.getpid() % 250 + 1}"  # several runs of these tests on one machine
    service.up(engine="wine", boxes=1, network=network, directory=directory)
    yield directory
    service.down(directory)


@pytest.fixture
def connector(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[WinRMConnector]:
    """A connected connector to the box; afterwards the box must hold no shell."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    known = service.fleet(fleet)
    assert known is not None
    box = known["boxes"][0]
    data = {
        "winrm_host": box["address"],
        "winrm_user": box["user"],
        "winrm_password": f"file:{box['password_file']}",
    }
    if getattr(request, "param", "https") == "http":
        data["winrm_scheme"] = "http"
    else:
        data["winrm_certificate_sha256"] = box["certificate_sha256"]
    if getattr(request, "param", "") == "short polls":
        data["winrm_operation_timeout_s"] = 1
    inventory = Inventory((["@winrm/gpu01"], data))
    state = State(inventory, Config(CONNECT_TIMEOUT=10))
    state.is_executing = True
    made = inventory.get_host("gpu01").connector
    assert isinstance(made, WinRMConnector)
    made.connect()
    yield made
    service.ask("faults", {"box": "gpu01", "clear": True}, directory=fleet)
    made.disconnect()
    assert count(fleet, "shell_created") == count(fleet, "shell_deleted")


def count(fleet: Path, kind: str) -> int:
    """How many events of a kind the box has seen."""
    known = service.fleet(fleet)
    assert known is not None
    lines = Path(known["boxes"][0]["events"]).read_text("utf-8").splitlines()
    return sum(json.loads(line)["kind"] == kind for line in lines)


def value(connector: WinRMConnector, call: Call) -> Any:
    """The value that a Call gives; fails when it gives an error."""
    answer = json.loads(connector.run_shell_command(call)[1].stdout_lines[0])
    assert answer["ok"], answer
    return answer["value"]


@pytest.mark.parametrize("connector", ["https", "http"], indirect=True)
def test_files_travel_both_ways(connector: WinRMConnector) -> None:
    value(connector, Call("New-BoxDirectory", Path=[FOLDER]))
    content = random.Random(5).randbytes(1_500_000)
    path = f"{FOLDER}\\a b.bin"
    for wanted in (content, b"small \x00\r\n" * 100, b""):
        assert connector.put_file(io.BytesIO(wanted), path)
        sink = io.BytesIO()
        assert connector.get_file(path, sink)
        assert sink.getvalue() == wanted
    items = value(connector, Call("Get-BoxChildItem", Path=FOLDER))["Items"]
    assert [item["Name"] for item in items] == ["a b.bin"]


def test_free_text_in_powershell_and_cmd(connector: WinRMConnector) -> None:
    value(connector, Call("New-BoxDirectory", Path=[FOLDER]))
    ok, output = connector.run_shell_command(
        "'gr\u00fcn \u4e2d\u6587'; $env:EXAMPLE; (Get-Location).Path; exit 7",
        _env={"EXAMPLE": "a'b \u00e4"},
        _chdir=FOLDER,
        _success_exit_codes=[7],
    )
    assert ok
    assert output.stdout_lines == ["gr\u00fcn \u4e2d\u6587", "a'b \u00e4", FOLDER]
    ok, output = connector.run_shell_command("echo %EXAMPLE%", _env={"EXAMPLE": "x"}, _shell_executable="cmd")
    assert ok
    assert output.stdout_lines[0].strip() == "x"
    ok, output = connector.run_shell_command("throw 'no'")
    assert not ok
    assert "no" in output.stderr_lines[0]
    _, output = connector.run_shell_command("'y' * 200000")
    assert output.stdout_lines == ["y" * 200000]


@pytest.mark.parametrize("connector", ["https", "http"], indirect=True)
@pytest.mark.parametrize("action", ["Send", "Receive"])
def test_a_lost_reply_is_fetched_and_nothing_runs_twice(
    connector: WinRMConnector, fleet: Path, action: str
) -> None:
    value(connector, Call("New-BoxDirectory", Path=[FOLDER]))
    log = f"{FOLDER}\\log.txt"
    connector.run_shell_command(f"Set-Content -LiteralPath '{log}' -Value 'start'")
    starts = count(fleet, "process_start")
    fault = {"kind": "close_after", "on": action}
    service.ask("faults", {"box": "gpu01", "add": [fault]}, directory=fleet)
    ok, output = connector.run_shell_command(f"Add-Content -LiteralPath '{log}' -Value 'once'; 'done'")
    assert ok
    assert output.stdout_lines == ["done"]
    sink = io.BytesIO()
    connector.get_file(log, sink)
    assert sink.getvalue().split() == [b"start", b"once"]
    assert count(fleet, "process_start") == starts


@pytest.mark.parametrize("connector", ["short polls"], indirect=True)
def test_a_command_may_outlast_any_number_of_polls(connector: WinRMConnector, fleet: Path) -> None:
    """Ten minutes are 14 polls of 45 s; here they are of a second, and the test says when the command ends."""
    value(connector, Call("New-BoxDirectory", Path=[FOLDER]))
    go = f"{FOLDER}\\go"
    text = f"'begun'; while (-not [IO.File]::Exists('{go}')) {{ Start-Sleep -Milliseconds 20 }}; 'ended'"
    starts, polls = count(fleet, "process_start"), count(fleet, "http_request")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(connector.run_shell_command, text)
        try:
            while count(fleet, "http_request") < polls + 6 and not running.done():
                concurrent.futures.wait([running], timeout=0.2)
        finally:
            drive = Path(service.fleet(fleet)["boxes"][0]["events"]).parent / "drive_c"  # type: ignore[index]
            drive.joinpath(*go[3:].split("\\")).touch()
        ok, output = running.result()
    assert ok
    assert output.stdout_lines == ["begun", "ended"]
    assert count(fleet, "process_start") == starts


@pytest.mark.parametrize("connector", ["short polls"], indirect=True)
@pytest.mark.parametrize("shell", ["powershell", "cmd"])
def test_a_command_out_of_time_leaves_no_process(connector: WinRMConnector, shell: str) -> None:
    ping = "C:\\windows\\system32\\ping.exe -n 600 127.0.0.1"
    text = f"echo begun{'&' if shell == 'cmd' else ';'} {ping}"
    with pytest.raises(DeadlineExceeded, match="did not end within 3 s and was stopped"):
        connector.run_shell_command(text, _timeout=3, _shell_executable=shell)
    assert value(connector, Call("Get-BoxProcess", Name=["ping.exe"])) == []


def test_the_end_of_powershell_is_reported_and_the_box_goes_on(connector: WinRMConnector) -> None:
    with pytest.raises(OutcomeUnknown, match="exit code 5"):
        connector.run_shell_command("[Environment]::Exit(5)")
    assert connector.run_shell_command("1 + 1")[1].stdout_lines == ["2"]


def test_the_loop_refuses_changes_in_a_read_only_request(connector: WinRMConnector) -> None:
    session = connector._session
    assert session is not None
    talk = session._talk
    assert talk is not None
    path = f"{FOLDER}\\never"
    answer = talk.ask([Call("New-BoxDirectory", Path=[path])], "read", 60.0)[0]
    assert answer.error_type == "ReadOnlyRefused"
    assert value(connector, Call("Get-BoxFile", Path=[path]))[0]["Kind"] == "absent"
