"""Invoke-BoxScript: free text for cmd.exe. Text for PowerShell needs a PowerShell, which this engine has
not."""

from __future__ import annotations

import ntpath
import threading
import uuid
from typing import Any

from simbox.account import environment as account
from simbox.cmd.machine import Streams
from simbox.engines.python import launcher, systemprograms
from simbox.engines.python.answers import Call, Command, bad_request, refused, thrown
from simbox.engines.python.machine import codec
from simbox.engines.python.pipes import InputPipe
from simbox.errors import signed
from simbox.files.boxfiles import BoxFiles


class _Stream:
    def __init__(self, call: Call, name: str) -> None:
        self._call, self._name = call, name

    def write(self, data: bytes, /) -> int:
        self._call.output(self._name, bytes(data))
        return len(data)


def _batch(call: Call, lines: list[str]) -> str:
    """Write several lines into a batch file in the console's code page; its path."""
    page = int(call.box.store.get("system", "oem_code_page", default=437))
    try:
        content = "\r\n".join(["@echo off", *lines, ""]).encode(codec(page))
    except UnicodeEncodeError as error:
        raise bad_request(
            f"code page {page} of this box cannot write that text into a batch file; "
            "use one line, or powershell"
        ) from error
    folder = account.environment(call.box).get("TEMP", "C:\\Windows\\TEMP")
    path = ntpath.join(folder, f"winfleet-{uuid.uuid4().hex}.cmd")
    call.box.filesystem.write(path, content)
    return path


def invoke(call: Call) -> dict[str, Any]:
    """Invoke-BoxScript."""
    box, shell = call.box, str(call.get("Shell", "powershell"))
    folder = account.profile_folder(box)
    if call.text("WorkingDirectory"):
        folder = BoxFiles(box).full(call.text("WorkingDirectory"))
    if not box.filesystem.host(folder).is_dir():
        message = f"Could not find the working folder '{folder}'."
        raise thrown("System.IO.DirectoryNotFoundException", message, 0x80070003)
    if shell.lower() == "powershell":
        raise refused(systemprograms.NO_POWERSHELL)
    if shell.lower() != "cmd":
        raise bad_request(f"'{shell}' is no shell; powershell and cmd are")
    variables = account.environment(box)
    for name, value in (call.get("Environment") or {}).items():
        variables[str(name)] = str(value)
    lines = call.text("Text").replace("\r\n", "\n").rstrip("\n").split("\n")
    script = _batch(call, lines) if len(lines) > 1 else None
    line = f'"{script}"' if script is not None else lines[0]
    stdin = InputPipe()
    try:
        child = launcher.launch(
            box,
            systemprograms.CMD,
            f'"{systemprograms.CMD}" /d /s /c "{line}"',
            folder,
            variables,
            Streams(stdin, _Stream(call, "stdout"), _Stream(call, "stderr")),
            parent_pid=call.process_id,
        )
        threading.Thread(target=_feed, args=(stdin, call.payload), daemon=True).start()
        code = child.wait(float(call.get("TimeoutSeconds", 0)) or None)
        timed_out = code is None
        if timed_out:
            child.kill_tree()
            child.wait(5)
        stdin.break_off()
    finally:
        if script is not None:
            box.filesystem.host(script).unlink(missing_ok=True)
    return {"ExitCode": None if timed_out else signed(code or 0), "TimedOut": timed_out}


def _feed(stdin: InputPipe, data: bytes) -> None:
    try:
        stdin.write(data, end=True)
    except BrokenPipeError:
        return


COMMANDS: dict[str, Command] = {"invoke-boxscript": invoke}
