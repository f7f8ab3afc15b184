"""Detached jobs: started as on-demand tasks, so that they outlive the session."""

from __future__ import annotations

import json
import threading
import time
from typing import Any
from xml.sax.saxutils import escape

from simbox.engines.python.answers import Call, Command, refused
from simbox.engines.python.machine import codec
from simbox.engines.python.systemprograms import POWERSHELL
from simbox.errors import WindowsError
from simbox.files.boxfiles import BoxFiles
from simbox.job.jobfolder import JobFolder

_TASK = (
    '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">'
    '<Principals><Principal id="Author"><UserId>S-1-5-18</UserId><RunLevel>HighestAvailable</RunLevel>'
    "</Principal></Principals><Settings><MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>"
    "<DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>"
    "<StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>"
    "<ExecutionTimeLimit>PT0S</ExecutionTimeLimit><Priority>5</Priority></Settings>"
    '<Actions Context="Author"><Exec><Command>{command}</Command><Arguments>{arguments}</Arguments></Exec>'
    "</Actions></Task>"
)
_RUNNER = (
    '-NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command ". ([ScriptBlock]::Create('
    "[IO.File]::ReadAllText('{0}')))\""
)
_BEGIN_S = 30.0


def start(call: Call) -> dict[str, Any]:
    """Start-BoxJob."""
    path, wanted, task_path = call.text("Path"), call.text("Hash"), call.text("TaskPath")
    folder = JobFolder(call.box, BoxFiles(call.box).full(path))
    state, held = folder.state(), (folder.job() or {}).get("Hash")
    if state == "running" and held != wanted:
        raise refused(f"another job runs in {path}; stop it first")
    if held == wanted and (state == "running" or (state == "done" and folder.exit_code() == 0)):
        return {"State": state}
    call.box.filesystem.make_directory(folder.path)
    folder.remove("rc", "pid", "started", "step", "stdout.log")
    job = {"Hash": wanted, "Steps": call.get("Steps", []), "TaskPath": task_path}
    folder.write("job.json", json.dumps(job))
    arguments = _RUNNER.format((folder.path + "\\run.ps1").replace("'", "''"))
    scheduler = call.box.windows.scheduler
    scheduler.register(task_path, _TASK.format(command=escape(POWERSHELL), arguments=escape(arguments)))
    scheduler.start(task_path)
    # Until the runner has said who it is, the job could not be told from a lost one.
    deadline, pause = time.monotonic() + _BEGIN_S, threading.Event()
    while folder.process() is None and folder.state() == "running" and time.monotonic() < deadline:
        pause.wait(0.01)
    return {"State": folder.state()}


def _log(call: Call, folder: JobFolder, whole: bool) -> tuple[str, int, int]:
    """Text from the offset in whole lines while more may come; size of the log; where to go on."""
    offset, limit = int(call.get("LogOffsetBytes", 0)), int(call.get("LogMaxBytes", 1 << 20))
    try:
        with folder.host("stdout.log").open("rb") as file:
            size = file.seek(0, 2)
            file.seek(min(offset, size))
            data = file.read(max(0, min(limit, size - offset)))
    except (OSError, WindowsError):
        return "", 0, offset
    if not whole or offset + len(data) < size:
        end = data.rfind(b"\n") + 1
        if end > 0 or len(data) < limit:
            data = data[:end]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        page = int(call.box.store.get("system", "oem_code_page", default=437))
        text = data.decode(codec(page), "replace")
    return text, size, offset + len(data)


def get(call: Call) -> dict[str, Any]:
    """Get-BoxJob."""
    folder = JobFolder(call.box, BoxFiles(call.box).full(call.text("Path")))
    state, process = folder.state(), folder.process()
    log, size, following = _log(call, folder, state != "running")
    return {
        "State": state,
        "Hash": None if state == "absent" else (folder.job() or {}).get("Hash"),
        "ExitCode": folder.exit_code() if state == "done" else None,
        "StartedUtc": folder.read("started"),
        "ProcessId": process[0] if process else None,
        "Step": folder.read("step"),
        "Log": log,
        "LogSizeBytes": size,
        "LogNextOffsetBytes": following,
    }


def stop(call: Call) -> dict[str, Any]:
    """Stop-BoxJob: the job's process and all it started."""
    folder = JobFolder(call.box, BoxFiles(call.box).full(call.text("Path")))
    process = folder.process()
    if process is not None and folder.is_alive():
        entry = call.box.windows.process.find(process[0])
        call.box.windows.process.kill_tree(process[0], 0xFFFFFFFF)
        if entry is not None:
            entry.gone.wait(10)
    return {"State": folder.state()}


COMMANDS: dict[str, Command] = {"start-boxjob": start, "get-boxjob": get, "stop-boxjob": stop}
