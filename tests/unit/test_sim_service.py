"""The simulator as a process: up, asked, drifted, rebooted, down by its process id, and its command line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import winrm

from simbox import cli, mirror, service
from simbox.programs.ninja import DLLS

NETWORK = "127.45.98"
TASK = """<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
<Triggers><LogonTrigger/></Triggers><Principals><Principal id="A"><UserId>Administrator</UserId>
<LogonType>InteractiveToken</LogonType></Principal></Principals>
<Settings><ExecutionTimeLimit>PT0S</ExecutionTimeLimit><Priority>4</Priority></Settings>
<Actions Context="A"><Exec><Command>C:\\ninfer\\serve.bat</Command></Exec></Actions></Task>"""
BATCH = (
    b"@echo off\r\n"
    b"C:\\ninfer\\ninfer-serve.exe C:\\models\\q.ninfer --host 0.0.0.0 --max-pending-requests 64\r\n"
    b"exit /b %ERRORLEVEL%\r\n"
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("fleet")
    service.up(profiles=["rtx4090d", "headless"], network=NETWORK, directory=directory)
    yield directory
    service.down(directory)


def ask(directory: Path, request: str, **params: Any) -> Any:
    return service.ask(request, {"box": "gpu01", **params}, directory=directory)


def windows(directory: Path, method_name: str, **params: Any) -> Any:
    return ask(directory, "windows", method=method_name, params=params)


def install(directory: Path) -> None:
    """A server that a task can start."""
    drive = directory / "python" / "gpu01" / "drive_c"
    (drive / "ninfer").mkdir(exist_ok=True)
    program = (drive / "Program Files" / "CMake" / "bin" / "cmake.exe").read_bytes()
    (drive / "ninfer" / "ninfer-serve.exe").write_bytes(program)
    for name in DLLS:
        (drive / "ninfer" / name).write_bytes(b"MZ")
    (drive / "models" / "q.ninfer").write_bytes(mirror.artifact_bytes())
    (drive / "ninfer" / "serve.bat").write_bytes(BATCH)
    windows(directory, "scheduler.register", path="\\NInferServe", xml=TASK)
    windows(
        directory, "firewall.set", name="ninfer", display_name="NInfer", local_port=["8080"],
        remote_address=["100.64.0.0/10", "fd7a:115c:a1e0::/48"],
    )  # fmt: skip


def health(directory: Path) -> str:
    """What /health answers, once the server of gpu01 listens; it has been started by then."""
    while not windows(directory, "network.listeners"):
        assert service.ask("status", directory=directory)[0]["tasks"]["\\NInferServe"] == "Running"
    with socket.create_connection((f"{NETWORK}.1", 8080), timeout=20) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return connection.recv(4096).decode()


def test_what_an_inventory_needs_is_in_the_fleet_file(directory: Path) -> None:
    fleet = json.loads((directory / "fleet.json").read_text())
    assert fleet["engine"] == "python"
    box = fleet["boxes"][0]
    assert (box["name"], box["address"], box["https_port"]) == ("gpu01", f"{NETWORK}.1", 5986)
    password = Path(box["password_file"])
    assert password.stat().st_mode & 0o077 == 0
    assert len(Path(box["api_key_file"]).read_text()) == 64
    assert len(box["certificate_sha256"]) == 64
    assert fleet["artifact"]["size_bytes"] == mirror.ARTIFACT_BYTES


def test_up_again_is_the_same_fleet_and_another_one_is_refused(directory: Path) -> None:
    pid = (directory / "daemon.pid").read_text()
    fleet = service.up(directory=directory)
    assert [box["profile"] for box in fleet["boxes"]] == ["rtx4090d", "headless"]
    assert (directory / "daemon.pid").read_text() == pid
    with pytest.raises(service.SimError, match=r"already up with .*rtx4090d headless.*sim down"):
        service.up(directory=directory, profiles=["rtx4090d"])


def test_an_independent_client_runs_a_command(directory: Path) -> None:
    box = json.loads((directory / "fleet.json").read_text())["boxes"][0]
    session = winrm.Session(
        f"https://{box['address']}:{box['https_port']}/wsman",
        auth=(box["user"], Path(box["password_file"]).read_text()),
        transport="ntlm",
        server_cert_validation="ignore",
    )
    done = session.run_cmd("echo hello")
    assert (done.status_code, done.std_out.strip()) == (0, b"hello")
    row = service.ask("status", directory=directory)[0]
    assert row["requests"] >= 5
    assert row["shells"] == 0


def test_a_reboot_starts_the_logon_task_and_a_drift_is_told(directory: Path) -> None:
    install(directory)
    before = windows(directory, "system.facts")["BootTimeUtc"]
    ask(directory, "reboot")
    assert windows(directory, "system.facts")["BootTimeUtc"] > before
    assert "200 OK" in health(directory)
    row = service.ask("status", directory=directory)[0]
    assert row["tasks"]["\\NInferServe"] == "Running"
    assert row["listeners"][0]["ExecutablePath"] == "C:\\ninfer\\ninfer-serve.exe"

    done = ask(directory, "drift")
    assert len(done) == 3
    rules = windows(directory, "firewall.snapshot")["Stores"][0]["Rules"]
    rule = next(rule["Data"] for rule in rules if rule["Name"] == "ninfer")
    assert "RA4" not in rule
    assert "RA6" not in rule
    assert "LPort=8080" in rule
    xml = windows(directory, "scheduler.get", path="\\NInferServe")["Xml"]
    assert "ExecutionTimeLimit" not in xml  # the default is left out of the stored shape
    assert "<Priority>4</Priority>" in xml
    batch = directory / "python" / "gpu01" / "drive_c" / "ninfer" / "serve.bat"
    assert batch.read_bytes() == BATCH.replace(b"requests 64", b"requests 16")


def test_errors_of_services_arrive_as_text(directory: Path) -> None:
    with pytest.raises(service.SimError, match="cannot find the file"):
        windows(directory, "scheduler.start", path="\\None")
    with pytest.raises(service.SimError, match="no method"):
        windows(directory, "scheduler.boot")
    with pytest.raises(service.SimError, match="no box"):
        service.ask("drift", {"box": "other"}, directory=directory)


def test_the_command_line(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        code = cli.main(["sim", arguments[0], "--dir", str(directory), *arguments[1:]])
        return code, capsys.readouterr().out

    code, text = run("status")
    assert code == 0
    assert text.splitlines()[0].split()[:3] == ["BOX", "ADDRESS", "ENGINE"]
    assert f"{NETWORK}.2" in text
    code, text = run("faults", "gpu02", "close_after:on=Send,times=2", "noise")
    assert [json.loads(line)["kind"] for line in text.splitlines()] == ["close_after", "noise"]
    assert run("faults", "gpu02", "--clear") == (0, "no faults armed\n")
    assert run("faults", "gpu02", "nonsense")[0] == 1
    code, text = run("events", "gpu02", "--kind", "boot")
    assert [json.loads(line)["kind"] for line in text.splitlines()] == ["boot"]
    assert run("events", "gpu02", "--since", "9999")[1] == ""
    assert run("drift", "gpu02")[0] == 1
    assert run("up") == (
        0,
        f"gpu01  {NETWORK}.1:5986  python  rtx4090d\ngpu02  {NETWORK}.2:5986  python  headless\n",
    )


def test_down_by_process_id_and_state_that_stays(tmp_path: Path) -> None:
    fleet = service.up(boxes=1, network="127.45.97", directory=tmp_path)
    pid = int((tmp_path / "daemon.pid").read_text())
    service.ask(
        "windows",
        {"box": "gpu01", "method": "scheduler.register", "params": {"path": "\\T", "xml": TASK}},
        directory=tmp_path,
    )
    assert service.down(tmp_path)
    assert not (tmp_path / "fleet.json").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.45.97.1", 5986))
    _reap(pid)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not service.down(tmp_path)
    again = service.up(boxes=1, network="127.45.97", directory=tmp_path)
    assert again["boxes"][0] == fleet["boxes"][0]
    tasks = service.ask("status", directory=tmp_path)[0]["tasks"]
    assert set(tasks) == {"\\T"}
    assert service.reset(tmp_path)
    assert not tmp_path.exists()


def _reap(pid: int) -> None:
    """Take the ended child from the process table, if nobody has yet."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return


def test_a_killed_simulator_is_not_taken_for_a_living_one(tmp_path: Path) -> None:
    service.up(boxes=1, network="127.45.96", directory=tmp_path)
    pid = int((tmp_path / "daemon.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    _reap(pid)
    assert service.fleet(tmp_path) is None
    with pytest.raises(service.SimError, match="ninfer-fleet sim up"):
        service.ask("status", directory=tmp_path)
    service.up(boxes=1, network="127.45.96", directory=tmp_path)
    assert service.down(tmp_path)


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.45.95.1", 5986)),
        pytest.raises(service.SimError, match=r"did not start: a port of .* is in use"),
    ):
        service.up(boxes=1, network="127.45.95", directory=tmp_path)


def test_reset_deletes_only_a_fleet(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(service.SimError, match="holds no simulated fleet"):
        service.reset(tmp_path)
    assert (tmp_path / "precious").exists()


def test_it_can_be_started_from_a_gevent_patched_process(tmp_path: Path) -> None:
    code = (
        "from gevent import monkey; monkey.patch_all()\n"
        "import pathlib, sys\nfrom simbox import service\n"
        "fleet = service.up(boxes=1, network='127.45.94', directory=pathlib.Path(sys.argv[1]))\n"
        "print(fleet['boxes'][0]['address'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    try:
        assert done.stdout.strip() == "127.45.94.1", done.stderr
        assert service.fleet(tmp_path) is not None  # it outlives the process that started it
    finally:
        assert service.down(tmp_path)


@pytest.mark.parametrize("count", ["0", "-1", "255", "three"])
def test_a_number_of_boxes_that_cannot_be_is_told(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["sim", "up", f"--boxes={count}"])
    assert ended.value.code == 2
    assert f"wanted: a number of 1 to 254; found '{count}'" in capsys.readouterr().err


def test_the_tasks_of_jobs_are_counted_in_the_table() -> None:
    states = {"\\NInferFleet\\Job-a": "Ready", "\\NInferFleet\\Job-b": "Ready", "\\NInferServe": "Running"}
    assert cli._tasks(states) == "\\NInferServe Running, 2 jobs Ready"
    assert cli._tasks({}) == "-"
