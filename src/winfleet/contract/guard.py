"""What a real box may be asked: reads, and changes inside the scratch folder."""

from __future__ import annotations

import ntpath
import re
from collections.abc import Mapping
from typing import Any

from winfleet.call import Call

_WRITES: dict[str, tuple[str, ...]] = {
    "Set-BoxFile": ("Path", "TemporaryPath"),
    "Write-BoxFilePart": ("TemporaryPath",),
    "New-BoxDirectory": ("Path",),
    "Remove-BoxItem": ("Path",),
    "Move-BoxItem": ("Path", "Destination"),
    "Copy-BoxItem": ("Items",),
    "Set-BoxFileAttribute": ("Path",),
    "New-BoxJunction": ("Path", "Target"),
    "Set-BoxAcl": ("Path",),
}
"""Commands that change files, and the parameters that say which."""
_OWN_TEXT = frozenset({"Invoke-BoxScript", "Invoke-BoxHttp"})
"""What these do depends on the text of the case, which is ours: none of them changes more than the scratch folder."""
_PLACE = re.compile(r"\{[A-Za-z]\w*\.\w+\}")


def forbidden(call: Call, scratch: str, own_processes: frozenset[int] = frozenset()) -> str | None:
    """Why this call may not go to a real box, or None when it may.

    Args: scratch is the full path of the folder in which anything may change; own_processes are those that the
    run itself started.
    """
    if call.reads or call.command in _OWN_TEXT:
        return None
    if call.command == "Stop-BoxProcess":
        wanted = call.parameters.get("ProcessId")
        # Before the program is started its number is still a place in the text.
        ours = wanted in own_processes or (isinstance(wanted, str) and _PLACE.fullmatch(wanted) is not None)
        return None if ours else "would change the machine: stops a process that is not its own"
    if call.command not in _WRITES:
        return f"would change the machine: {call.command}"
    outside = [path for path in _paths(call) if not inside(path, scratch)]
    return f"would leave the scratch folder: {call.command} {outside[0] or '(no path)'}" if outside else None


def inside(path: str, scratch: str) -> bool:
    """True for the scratch folder and what is below it, whatever the spelling."""
    plain = path[4:] if path.startswith("\\\\?\\") else path
    full, folder = ntpath.normcase(ntpath.normpath(plain)), ntpath.normcase(ntpath.normpath(scratch))
    return full == folder or full.startswith(folder + "\\")


def _paths(call: Call) -> list[str]:
    found = [path for name in _WRITES[call.command] for path in _texts(call.parameters.get(name))]
    return found or [""]


def _texts(value: Any) -> list[str]:
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, Mapping):
        return [str(value.get("Destination", ""))]
    return [] if value is None else [str(value)]
