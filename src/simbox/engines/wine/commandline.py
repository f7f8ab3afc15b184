"""What a command line of a box starts in a wine box: PowerShell for Windows in place of powershell.exe."""

from __future__ import annotations

import base64
import ntpath
import re
from dataclasses import dataclass, field

from simbox.engines.wine.locate import WineTools
from simbox.engines.wine.prefix import windows_path

_WORD = re.compile(r'\s*("(?:[^"\\]|\\.)*"?|[^\s"]+)')


@dataclass(frozen=True)
class Line:
    """A command line for CreateProcess.

    Attributes: text, variables (added to the environment), loop (PowerShell that reads commands from stdin).
    """

    text: str
    variables: dict[str, str] = field(default_factory=dict)
    loop: bool = False


def is_powershell(program: str) -> bool:
    """True for powershell.exe under any folder, with or without its extension."""
    return ntpath.basename(program.strip('"')).lower().removesuffix(".exe") == "powershell"


def resolve(tools: WineTools, command_line: str, *, load: str | None) -> Line:
    """The line that runs `command_line`; load: PowerShell text that runs before what it asks for, or None.

    The text is put before a -Command or -EncodedCommand; a loop (-Command -) gets it on stdin from the
    engine.
    """
    program, rest = split_program(command_line)
    if not is_powershell(program):
        return Line(command_line)
    loop = re.search(r"(?i)-c(?:ommand)?\s+-\s*$", rest) is not None
    if load and not loop:
        rest = _with_text(rest, load)
    return Line(f'"{windows_path(tools.pwsh_exe)}" {rest}', powershell_variables(tools), loop)


def split_program(command_line: str) -> tuple[str, str]:
    """The first word without its quotes, and the rest."""
    match = _WORD.match(command_line)
    if match is None:
        return "", ""
    return match[1].strip('"'), command_line[match.end() :].strip()


def powershell_variables(tools: WineTools) -> dict[str, str]:
    """Environment without which PowerShell fails under Wine, or talks to the outside."""
    return {
        "DOTNET_ROOT": windows_path(tools.powershell / "dotnet"),
        "DOTNET_EnableWriteXorExecute": "0",  # else access violations now and then under Wine 8
        # Sessions are too short to gain from optimized code: half the work of the first hundred calls, a fifth
        # less after six hundred (measured).
        "DOTNET_JITMinOpts": "1",
        "DOTNET_TieredPGO": "0",
        "DOTNET_gcConcurrent": "0",  # with its background collector .NET under Wine stood still (seen twice)
        "POWERSHELL_TELEMETRY_OPTOUT": "1",
        "POWERSHELL_UPDATECHECK": "Off",
        "PSModulePath": windows_path(tools.powershell / "modules"),
    }


def _with_text(rest: str, load: str) -> str:
    encoded = re.search(r"(?i)(-e(?:c|nc|ncodedcommand)?\s+)([A-Za-z0-9+/=]+)", rest)
    if encoded:
        text = base64.b64decode(encoded[2]).decode("utf-16-le")
        fresh = base64.b64encode(f"{load}\n{text}".encode("utf-16-le")).decode()
        return rest[: encoded.start(2)] + fresh + rest[encoded.end(2) :]
    command = re.search(r'(?i)(-c(?:ommand)?\s+)("?)', rest)
    if command:
        return rest[: command.end()] + load.replace('"', '\\"') + "; " + rest[command.end() :]
    return rest
