"""Processes and listeners."""

from __future__ import annotations

from typing import Any

from simbox.engines.python.answers import Call, Command, refused
from simbox.errors import signed

_MILLISECONDS = 23
"""Characters of a time in the `o` format down to the millisecond."""


def get(call: Call) -> list[dict[str, Any]]:
    """Get-BoxProcess."""
    return call.box.windows.process.list(call.get("Name"), call.get("ProcessId"))


def stop(call: Call) -> dict[str, Any]:
    """Stop-BoxProcess; like Stop-Process it ends the process with the code -1."""
    service, pid, wanted = (
        call.box.windows.process,
        int(call.get("ProcessId", 0)),
        call.text("CreationTimeUtc"),
    )
    rows = service.list(None, [pid])
    if not rows:
        return {"Stopped": False, "ExitCode": None}
    created = rows[0]["CreationTimeUtc"]
    if len(wanted) < _MILLISECONDS or created[:_MILLISECONDS] != wanted[:_MILLISECONDS]:
        raise refused(
            f"process {pid} was created {created}, not {wanted}; the id was reused and nothing was stopped"
        )
    answer = service.stop(pid, created, 0xFFFFFFFF)
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
