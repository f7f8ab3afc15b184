"""CALL, GOTO, EXIT, SETLOCAL and the commands that talk: ECHO, VER, TITLE, ..."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from simbox.cmd.batch import label_name
from simbox.cmd.commands.kind import Builtin
from simbox.cmd.expansion import expand_percent
from simbox.cmd.flow import EndBatch, EndShell, Goto
from simbox.cmd.machine import MachineError, Streams
from simbox.cmd.variables import DELIMITERS

if TYPE_CHECKING:
    from simbox.cmd.interpreter import Interpreter


def echo(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """ECHO on, off, or text after exactly one separator."""
    word = rest.strip(" \t").lower()
    if rest[:1] in (" ", "\t", ""):
        if not word:
            shell.say(f"ECHO is {'on' if shell.state.echo else 'off'}.", streams)
            return None
        if word in ("on", "off"):
            shell.state.echo = word == "on"
            return None
    shell.say(rest[1:], streams)
    return None


def goto(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """GOTO label; GOTO :EOF ends the batch file or subroutine."""
    if shell.batch is None:
        return None
    if rest.strip().lower().startswith(":eof"):
        raise EndBatch
    text = rest.lstrip(DELIMITERS)
    label = label_name(text[1:] if text.startswith(":") else text)
    if not label:
        shell.error("No batch label specified to GOTO command.", streams)
        return 1
    raise Goto(label)


def _number(text: str) -> int | None:
    match = re.match(r"\s*([-+]?\d+)", text)
    if match is None:
        return None
    value = int(match[1]) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def leave(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """EXIT [/B] [code]."""
    match = re.match(r"\s*/b\b", rest, re.IGNORECASE)
    code = _number(rest[match.end() :] if match else rest)
    if code is not None:
        shell.state.error_level = code
    if match and shell.batch is not None:
        raise EndBatch
    raise EndShell


def call(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """CALL a label, a batch file, a program or a built-in. Percent signs are seen a second time, carets
    doubled (inside quotes that shows)."""
    parameters = shell.batch.parameters if shell.batch is not None else None
    text = expand_percent(rest, shell.state.variable, parameters, shell.state.lookups).lstrip(DELIMITERS)
    text = _doubled_carets(text)
    if text.startswith(":"):
        label = label_name(text[1:])
        return shell.call_label(label, text[1 + len(label) :], streams)
    if not text:
        return None
    from simbox.cmd.interpreter import split_name

    name, _ = split_name(text)
    if name.lower() in ("if", "for"):
        shell.error(
            f"'{name}' is not recognized as an internal or external command,\r\n"
            "operable program or batch file.",
            streams,
        )
        return 1
    from simbox.cmd.commands import BUILTINS

    if name.lower() in BUILTINS:
        shell.command(text, streams)
        return None
    return shell.external(text, streams, called=True)


def _doubled_carets(text: str) -> str:
    """Double every caret, then take out the escaping ones, as the second run of the parser does outside
    quotes."""
    out, quoted = [], False
    for character in text:
        if character == '"':
            quoted = not quoted
        out.append("^^" if character == "^" and quoted else character)
    return "".join(out)


def set_local(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """SETLOCAL [EnableDelayedExpansion | DisableDelayedExpansion] ..."""
    if shell.batch is None:
        return 0
    shell.batch.frames.append(shell.state.save())
    words = [word.lower() for word in rest.split()]
    for word in words:
        if word == "enabledelayedexpansion":
            shell.state.delayed = True
        elif word == "disabledelayedexpansion":
            shell.state.delayed = False
        elif word not in ("enableextensions", "disableextensions"):
            return 1
    return 0


def end_local(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """ENDLOCAL."""
    if shell.batch is not None and shell.batch.frames:
        shell.state.restore(shell.batch.frames.pop())
    return None


def shift(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """SHIFT [/n]."""
    if shell.batch is not None:
        first = rest.strip().removeprefix("/")
        shell.batch.parameters.shift(int(first) if first.isdigit() else 0)
    return None


def ver(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """VER."""
    shell.say(f"\r\nMicrosoft Windows [Version {shell.machine.version}]", streams)
    return 0


def pause(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """PAUSE reads one key: one byte of stdin."""
    shell.write("Press any key to continue . . . ", streams.stdout)
    streams.stdin.read(1)
    shell.say("", streams)
    return None


def quiet(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """Commands about the console window, which nobody sees here."""
    return None


def start(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """START ["title"] [/B] [/WAIT] [/MIN] [/MAX] [/D folder] [/priority] program [arguments]."""
    text = rest.strip()
    if text.startswith('"'):
        text = text[1:].partition('"')[2].lstrip()
    wait, folder = False, shell.state.directory
    while match := re.match(r"/([a-z]+)\s*", text, re.IGNORECASE):
        text = text[match.end() :]
        if match[1].lower() == "wait":
            wait = True
        elif match[1].lower() == "d":
            found = re.match(r'"([^"]*)"\s*|(\S+)\s*', text)
            if found:
                folder = shell.state.full_path(found[1] or found[2])
                text = text[found.end() :]
    if not text:
        return 0
    if wait:
        return shell.external(text, streams, called=True)
    from simbox.cmd.interpreter import split_name

    name, _ = split_name(text)
    path = shell.find_program(name)
    if path is None:
        shell.error(f"The system cannot find the file {name}.", streams)
        return 9059
    launch = shell.launch(path, text, streams)
    try:
        shell.machine.start(type(launch)(path, text, folder, launch.environment, streams))
    except MachineError as error:
        shell.error(str(error), streams)
        return 1
    return 0


COMMANDS: dict[str, Builtin] = {
    "echo": echo,
    "goto": goto,
    "exit": leave,
    "call": call,
    "setlocal": set_local,
    "endlocal": end_local,
    "shift": shift,
    "ver": ver,
    "pause": pause,
    "start": start,
    "title": quiet,
    "color": quiet,
    "cls": quiet,
    "break": quiet,
    "rem": quiet,
    "verify": quiet,
}
