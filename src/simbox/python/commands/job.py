"""Detached jobs: started as on-demand tasks, so that they outlive the session."""

from __future__ import annotations

import json
from typing import Any
from xml.sax.saxutils import escape

from simbox.python.answers import Call, Command, refused
from simbox.python.jobfolder import JobFolder
from simbox.python.systemprograms import POWERSHELL
from simbox.windows.errors import WindowsError

_TASK = """<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <Principals><Principal id="Author"><UserId>S-1-5-18</UserId>\
<RunLevel>HighestAvailable</RunLevel></Principal></Principals>
  <Settings>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>5</Priority>
  </Settings>
  <Actions
  Context="Author"><Exec><Command>{command}</Command><Arguments>{arguments}</Arguments></Exec></Actions>
</Task>"""


def start(call: Call) -> dict[str, Any]:
    """Start-BoxJob."""
    path, wanted, task_path = call.text("Path"), call.text("Hash"), call.text("TaskPath")
    box, folder = call.box, JobFolder(call.box, path)
    state = folder.state()
    held = (folder.job() or {}).get("Hash")
    if state == "running" and held != wanted:
        raise refused(f"another job runs in {path}; stop it first")
    if held == wanted and (state == "running" or (state == "done" and folder.exit_code() == 0)):
        return {"State": state}
    box.filesystem.make_directory(path)
    folder.remove("rc", "pid", "started", "step", "stdout.log")
    job = {"Hash": wanted, "Steps": call.get("Steps", []), "TaskPath": task_path}
    folder.write("job.json", json.dumps(job, ensure_ascii=False))
    arguments = f'-NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -File "{path}\\run.ps1"'
    scheduler = box.windows.scheduler
    scheduler.register(task_path, _TASK.format(command=escape(POWERSHELL), arguments=escape(arguments)))
    scheduler.start(task_path)
    return {"State": folder.state()}


def get(call: Call) -> dict[str, Any]:
    """Get-BoxJob."""
    folder = JobFolder(call.box, call.text("Path"))
    state = folder.state()
    process = folder.process()
    offset = int(call.get("LogOffsetBytes", 0) or 0)
    limit = call.get("LogMaxBytes")
    log, size = b"", 0
    try:
        with folder.host("stdout.log").open("rb") as file:
            size = file.seek(0, 2)
            file.seek(min(offset, size))
            log = file.read(-1 if limit is None else int(limit))
    except (OSError, WindowsError):
        size = 0
    return {
        "State": state,
        "Hash": (folder.job() or {}).get("Hash"),
        "ExitCode": folder.exit_code(),
        "StartedUtc": folder.read("started"),
        "ProcessId": process[0] if process else None,
        "Step": folder.read("step"),
        "Log": log.decode("utf-8", "replace"),
        "LogSizeBytes": size,
    }


def stop(call: Call) -> dict[str, Any]:
    """Stop-BoxJob: the job's process and all it started."""
    folder = JobFolder(call.box, call.text("Path"))
    process = folder.process()
    if process is not None and folder.is_alive():
        entry = call.box.windows.process.find(process[0])
        call.box.windows.process.kill_tree(process[0])
        if entry is not None:
            entry.gone.wait(10)
    return {"State": folder.state()}


COMMANDS: dict[str, Command] = {"start-boxjob": start, "get-boxjob": get, "stop-boxjob": stop}
