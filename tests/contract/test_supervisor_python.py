"""The shipped serve_task.bat on a python box: the task scheduler starts it, it starts and restarts the
server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from powershell import EngineBox, engine_box

from ninfer_fleet.server import launcher
from ninfer_fleet.settings import Settings
from simbox.mirror import artifact_bytes
from simbox.programs import image
from simbox.programs.ninja import DLLS

TEMPLATE = Path(__file__).parents[2] / "templates" / "serve_task.bat.j2"
KEY = "test-key-that-opens-nothing-7d1f"
PORT = 18080
TASK = "\\NInferServe"
XML = """<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
<Principals><Principal id="a"><UserId>S-1-5-18</UserId></Principal></Principals>
<Settings><ExecutionTimeLimit>PT0S</ExecutionTimeLimit><Priority>4</Priority></Settings>
<Actions Context="a"><Exec><Command>{0}</Command></Exec></Actions></Task>"""


def settings() -> Settings:
    serve = {"api_key": "env:NINFER_API_KEY", "port": PORT}
    return Settings.model_validate(
        {"serve": serve, "task": {"shortest_backoff_s": 1, "longest_backoff_s": 1}}
    )


@pytest.fixture(scope="module")
def served() -> Iterator[EngineBox]:
    """A box on which the task runs."""
    with engine_box("python") as box:
        declared, files = settings(), box.box.filesystem
        layout = declared.layout
        for folder in (*layout.folders(), layout.current):
            files.make_directory(folder)
        folder = layout.executable.rpartition("\\")[0]
        for name in DLLS:
            files.write(f"{folder}\\{name}", b"MZ")
        files.write(layout.executable, image(box.box))
        files.write(declared.model_path, artifact_bytes())
        files.write(layout.key_file, KEY.encode() + b"\r\n")
        files.write(layout.draft_file, b"7\r\n")
        files.write(layout.launcher, launcher.render(declared, TEMPLATE))
        box.call("Register-BoxTask", TaskPath=TASK, Xml=XML.format(layout.launcher))
        box.call("Start-BoxTask", TaskPath=TASK)
        yield box


def until(condition: Callable[[], Any], timeout_s: float = 30) -> Any:
    """The first true value of a condition that changes by itself."""
    pause = threading.Event()
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        pause.wait(0.05)
    raise AssertionError("it did not come about")


def listener(box: EngineBox) -> dict[str, Any] | None:
    found = box.call("Get-BoxListener", Port=[PORT])
    return found[0] if found else None


def healthy(box: EngineBox) -> bool:
    answer = box.call("Get-BoxHttp", Url=f"http://127.0.0.1:{PORT}/health", TimeoutSeconds=5)
    return bool(answer["StatusCode"] == 200)


def test_the_task_serves(served: EngineBox) -> None:
    until(lambda: healthy(served))
    found = listener(served)
    assert found is not None
    assert found["ExecutablePath"].lower().endswith("ninfer-serve.exe")
    task = served.call("Get-BoxTask", TaskPath=[TASK])[0]
    assert task["State"] == "Running"
    (engine,) = task["Instances"]
    processes = {row["ProcessId"]: row for row in served.call("Get-BoxProcess")}
    server = processes[found["OwningProcess"]]
    assert server["ParentProcessId"] == engine["EnginePid"]
    assert processes[engine["EnginePid"]]["Name"].lower() == "cmd.exe"
    assert server["PriorityClass"] == "Normal"


def test_the_key_is_wanted(served: EngineBox) -> None:
    until(lambda: healthy(served))
    url = f"http://localhost:{PORT}/v1/models"
    assert served.call("Get-BoxHttp", Url=url)["StatusCode"] == 401
    answer = served.call("Get-BoxHttp", Url=url, BearerFile=settings().layout.key_file)
    assert answer["StatusCode"] == 200
    assert "qwen3.8-27b" in answer["Body"]


def test_a_killed_server_comes_back(served: EngineBox) -> None:
    until(lambda: healthy(served))
    before = listener(served)
    assert before is not None
    stopped = served.call(
        "Stop-BoxProcess", ProcessId=before["OwningProcess"], CreationTimeUtc=before["CreationTimeUtc"]
    )
    assert stopped["Stopped"] is True
    after = until(
        lambda: (found := listener(served)) and found["OwningProcess"] != before["OwningProcess"] and found
    )
    until(lambda: healthy(served))
    assert after["OwningProcess"] != before["OwningProcess"]
    layout = settings().layout
    log = served.box.filesystem.host(f"{layout.logs}\\exits.log").read_text()
    assert "code=-1 " in log


def test_the_log_is_held_by_the_server(served: EngineBox) -> None:
    until(lambda: healthy(served))
    layout = settings().layout
    names = [item["Name"] for item in served.call("Get-BoxChildItem", Path=layout.logs)["Items"]]
    serving = max(name for name in names if name.startswith("serve-"))
    state = served.call("Get-BoxFile", Path=[f"{layout.logs}\\{serving}"], MaxContentBytes=1 << 20)[0]
    assert state["Error"] is None, "others may read it"
    fault = served.reply("Remove-BoxItem", Path=[f"{layout.logs}\\{serving}"]).answers[0]
    assert fault["error"]["hresult"] == "0x80070020"


def test_the_program_of_a_running_server_is_protected(served: EngineBox) -> None:
    until(lambda: healthy(served))
    fault = served.reply("Remove-BoxItem", Path=[settings().layout.executable]).answers[0]
    assert fault["error"]["hresult"] == "0x80070005"


def test_stopping_the_task_leaves_the_server(served: EngineBox) -> None:
    """Ending a task ends its action's process; what that started goes on (docs/facts/windows.md#ending-a-task)."""
    until(lambda: healthy(served))
    server = listener(served)
    served.call("Stop-BoxTask", TaskPath=TASK)
    until(lambda: served.call("Get-BoxTask", TaskPath=[TASK])[0]["State"] == "Ready")
    assert listener(served) == server
    assert healthy(served)
    assert server is not None
    served.call(
        "Stop-BoxProcess", ProcessId=server["OwningProcess"], CreationTimeUtc=server["CreationTimeUtc"]
    )
    assert listener(served) is None


def test_the_stop_flag_ends_the_loop(served: EngineBox) -> None:
    layout = settings().layout
    served.call("Start-BoxTask", TaskPath=TASK)
    until(lambda: healthy(served))
    served.box.filesystem.write(layout.stop_flag, b"")
    server = listener(served)
    assert server is not None
    served.call(
        "Stop-BoxProcess", ProcessId=server["OwningProcess"], CreationTimeUtc=server["CreationTimeUtc"]
    )
    until(lambda: served.call("Get-BoxTask", TaskPath=[TASK])[0]["State"] == "Ready")
    assert served.call("Get-BoxTask", TaskPath=[TASK])[0]["LastTaskResult"] == 0
    assert listener(served) is None
