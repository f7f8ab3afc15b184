"""A wine box of the simulator: tasks are real Windows processes, programs are real executables."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import winrm

from simbox import mirror, service
from simbox.engines.wine import locate
from simbox.engines.wine import standins as build
from simbox.programs.ninja import DLLS

NETWORK = "127.45.88"
BATCH = (
    b"@echo off\r\n"
    b"C:\\ninfer\\ninfer-serve.exe C:\\models\\q.ninfer --host 0.0.0.0 --max-pending-requests 64"
    b" >C:\\ninfer\\serve.log 2>&1\r\n"
    b"exit /b 7\r\n"  # not the server's own: Wine's taskkill ends a process with 0, Microsoft's with 1
)
TASK = """<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
<Triggers/><Principals><Principal id="A"><UserId>Administrator</UserId>
<LogonType>InteractiveToken</LogonType></Principal></Principals>
<Settings><ExecutionTimeLimit>PT0S</ExecutionTimeLimit></Settings>
<Actions Context="A"><Exec><Command>C:\\ninfer\\serve.bat</Command></Exec></Actions></Task>"""


def missing() -> str | None:
    try:
        locate.locate()
    except locate.Missing as error:
        return str(error)
    return None if build.compiler() else f"no {build.COMPILER} in PATH"


pytestmark = [
    pytest.mark.wine,
    pytest.mark.skipif(missing() is not None, reason=f"no wine box here: {missing()}"),
]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    directory = tmp_path_factory.mktemp("fleet")
    found = service.up(engine="wine", boxes=1, network=NETWORK, directory=directory)
    drive = Path(found["boxes"][0]["directory"]) / "drive_c"
    (drive / "ninfer").mkdir()
    (drive / "ninfer" / "ninfer-serve.exe").write_bytes(build.program().read_bytes())
    for name in DLLS:
        (drive / "ninfer" / name).write_bytes(b"MZ")
    (drive / "models" / "q.ninfer").write_bytes(mirror.artifact_bytes())
    (drive / "ninfer" / "serve.bat").write_bytes(BATCH)
    yield {**found, "directory": directory}
    service.down(directory)


def windows(fleet: dict[str, Any], method_name: str, **params: Any) -> Any:
    asked = {"box": "gpu01", "method": method_name, "params": params}
    return service.ask("windows", asked, directory=fleet["directory"])


def session(fleet: dict[str, Any]) -> winrm.Session:
    box = fleet["boxes"][0]
    return winrm.Session(
        f"https://{box['address']}:{box['https_port']}/wsman",
        auth=(box["user"], Path(box["password_file"]).read_text()),
        transport="ntlm",
        server_cert_validation="ignore",
    )


def listening(fleet: dict[str, Any]) -> dict[str, Any]:
    """The server's listener, once there is one."""
    while not (rows := windows(fleet, "network.listeners")):
        assert windows(fleet, "scheduler.get", path="\\T")["State"] == "Running"
    return dict(rows[0])


def until_gone(fleet: dict[str, Any]) -> None:
    while windows(fleet, "network.listeners"):
        continue


def test_a_program_under_its_own_name(fleet: dict[str, Any]) -> None:
    done = session(fleet).run_cmd("C:\\Windows\\System32\\nvidia-smi.exe -L")
    assert (done.status_code, done.std_err) == (0, b"")
    assert b"RTX 4090 D" in done.std_out
    failed = session(fleet).run_cmd('"C:\\Program Files\\Git\\cmd\\git.exe" frobnicate')
    assert failed.status_code == 1
    assert b"is not a git command" in failed.std_err


def test_a_task_serves_and_its_process_can_be_killed(fleet: dict[str, Any]) -> None:
    windows(fleet, "scheduler.register", path="\\T", xml=TASK)
    assert windows(fleet, "scheduler.start", path="\\T") == {"State": "Running"}
    listener = listening(fleet)
    connection = http.client.HTTPConnection(f"{NETWORK}.1", 8080, timeout=30)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    assert listener["ExecutablePath"] == "C:\\ninfer\\ninfer-serve.exe"

    text = session(fleet).run_cmd(f"taskkill /F /PID {listener['OwningProcess']}")
    assert text.status_code == 0, text.std_err
    until_gone(fleet)
    while windows(fleet, "scheduler.get", path="\\T")["State"] == "Running":
        continue
    assert windows(fleet, "scheduler.get", path="\\T")["LastTaskResult"] == 7


def test_a_drift_reaches_the_registry_of_the_box(fleet: dict[str, Any]) -> None:
    windows(
        fleet,
        "firewall.set",
        name="ninfer",
        display_name="NInfer",
        local_port=["8080"],
        remote_address=["100.64.0.0/10"],
    )
    windows(fleet, "scheduler.register", path="\\T", xml=TASK)
    done = service.ask("drift", {"box": "gpu01"}, directory=fleet["directory"])
    assert len(done) == 3
    key = "HKLM\\SYSTEM\\CurrentControlSet\\Services\\SharedAccess\\Parameters\\FirewallPolicy\\FirewallRules"
    found = session(fleet).run_cmd(f"reg query {key} /v ninfer").std_out.decode()
    assert "LPort=8080" in found
    assert "RA4" not in found
    box = Path(fleet["boxes"][0]["directory"])
    assert b"--max-pending-requests 16" in (box / "drive_c" / "ninfer" / "serve.bat").read_bytes()


def test_down_ends_every_windows_process(fleet: dict[str, Any]) -> None:
    windows(fleet, "scheduler.start", path="\\T")
    listening(fleet)
    marks = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    assert service.down(fleet["directory"])
    prefix = f"WINEPREFIX={fleet['boxes'][0]['directory']}".encode()
    for path in marks:
        try:
            environment = (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        assert prefix not in environment, path
