"""Processes and listeners."""

from __future__ import annotations

from typing import Any

from simbox.python.answers import Call, Command
from simbox.windows.errors import signed


def get(call: Call) -> list[dict[str, Any]]:
    """Get-BoxProcess."""
    return call.box.windows.process.list(call.get("Name"), call.get("ProcessId"))


def stop(call: Call) -> dict[str, Any]:
    """Stop-BoxProcess; like Stop-Process it ends the process with the code -1."""
    created = call.text("CreationTimeUtc")
    answer = call.box.windows.process.stop(int(call.get("ProcessId", 0)), created, 0xFFFFFFFF)
    code = answer["ExitCode"]
    return answer | {"ExitCode": None if code is None else signed(code)}


def listeners(call: Call) -> list[dict[str, Any]]:
    """Get-BoxListener."""
    return call.box.windows.network.listeners(call.get("Port") or None)


COMMANDS: dict[str, Command] = {
    "get-boxprocess": get,
    "stop-boxprocess": stop,
    "get-boxlistener": listeners,
}
