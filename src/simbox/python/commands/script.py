"""Invoke-BoxScript: free text for cmd.exe. Text for PowerShell needs a PowerShell, which this engine has
not."""

from __future__ import annotations

import ntpath
import threading
import uuid
from typing import Any

from simbox.cmd.machine import Streams
from simbox.python import account, launcher, systemprograms
from simbox.python.answers import Call, Command
from simbox.python.errors import file_error
from simbox.python.pipes import InputPipe
from simbox.windows.errors import WindowsError


class _Stream:
    def __init__(self, call: Call, name: str) -> None:
        self._call, self._name = call, name

    def write(self, data: bytes, /) -> int:
        self._call.output(self._name, bytes(data))
        return len(data)


def invoke(call: Call) -> dict[str, Any]:
    """Invoke-BoxScript."""
    if (call.text("Shell") or "powershell").lower() != "cmd":
        raise WindowsError("Refused", systemprograms.NO_POWERSHELL, None, "NotImplemented", "Refused")
    box = call.box
    folder = call.text("WorkingDirectory") or account.profile_folder(box)
    if not box.filesystem.host(folder).is_dir():
        raise file_error(267, folder)
    variables = account.environment(box)
    for name, value in (call.get("Environment") or {}).items():
        variables[str(name)] = str(value)
    stdin = InputPipe()
    script = ntpath.join(variables["TEMP"], f"winfleet-{uuid.uuid4().hex[:12]}.cmd")
    text = call.text("Text").replace("\r\n", "\n").replace("\n", "\r\n")
    box.filesystem.write(script, b"@echo off\r\n" + text.encode("utf-8") + b"\r\n")
    try:
        child = launcher.launch(
            box,
            systemprograms.CMD,
            f'cmd.exe /d /s /c ""{script}""',
            folder,
            variables,
            Streams(stdin, _Stream(call, "stdout"), _Stream(call, "stderr")),
            parent_pid=call.process_id,
        )
        feeding = threading.Thread(target=_feed, args=(stdin, call.payload), daemon=True)
        feeding.start()
        code = child.wait(float(call.get("TimeoutSeconds", 0) or 0) or None)
        timed_out = code is None
        if timed_out:
            child.kill_tree()
            child.wait(5)
        stdin.break_off()
    finally:
        box.filesystem.host(script).unlink(missing_ok=True)
    return {"ExitCode": None if timed_out else _signed(code or 0), "TimedOut": timed_out}


def _feed(stdin: InputPipe, data: bytes) -> None:
    try:
        stdin.write(data, end=True)
    except BrokenPipeError:
        return


def _signed(code: int) -> int:
    return code - 0x1_0000_0000 if code & 0x8000_0000 else code


COMMANDS: dict[str, Command] = {"invoke-boxscript": invoke}
