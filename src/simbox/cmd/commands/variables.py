"""SET, PATH, PROMPT, DATE and TIME."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simbox.cmd.arithmetic import ArithmeticFault, evaluate
from simbox.cmd.commands.kind import Builtin
from simbox.cmd.machine import Streams

if TYPE_CHECKING:
    from simbox.cmd.interpreter import Interpreter

SYNTAX = "The syntax of the command is incorrect."
_LONGEST_INPUT = 1023


def _unquoted(text: str) -> str:
    """`"X=value" rest` without the quotes and what follows the last of them."""
    if not text.startswith('"'):
        return text
    inner = text[1:]
    end = inner.rfind('"')
    return inner if end < 0 else inner[:end]


def assign(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """SET: show, change or remove variables; /A computes, /P reads a line."""
    text = rest.lstrip(" \t,;=") if rest.strip() else ""
    if text[:2].lower() == "/a":
        return _compute(shell, text[2:], streams)
    if text[:2].lower() == "/p":
        return _ask(shell, text[2:].strip(), streams)
    text = _unquoted(text)
    name, equals, value = text.partition("=")
    if not equals:
        return _show(shell, text.strip(), streams)
    if not name:
        shell.error(SYNTAX, streams)
        return 1
    if value:
        shell.state.environment[name] = value
    elif name in shell.state.environment:
        del shell.state.environment[name]
    else:
        return 1
    return None


def _show(shell: Interpreter, prefix: str, streams: Streams) -> int | None:
    environment = shell.state.environment
    names = sorted((name for name in environment if name.upper().startswith(prefix.upper())), key=str.upper)
    if prefix and not names:
        shell.error(f"Environment variable {prefix} not defined", streams)
        return 1
    for name in names:
        shell.say(f"{name}={environment[name]}", streams)
    return None


def _compute(shell: Interpreter, text: str, streams: Streams) -> int | None:
    try:
        value = evaluate(text, shell.state.environment)
    except ArithmeticFault as fault:
        shell.error(str(fault), streams)
        return fault.code
    if shell.batch is None:
        shell.write(str(value), streams.stdout)
    return None


def _ask(shell: Interpreter, text: str, streams: Streams) -> int | None:
    name, equals, prompt = _unquoted(text).partition("=")
    if not equals or not name:
        shell.error(SYNTAX, streams)
        return 1
    shell.write(_unquoted(prompt.lstrip()), streams.stdout)
    line = streams.stdin.readline().decode(shell.machine.encoding, "replace")
    while line and ord(line[-1]) < 32:
        line = line[:-1]
    line = line[:_LONGEST_INPUT]
    if not line:
        return 1
    shell.state.environment[name] = line
    return None


def path(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """PATH: show or set the search path."""
    text = rest.strip(" \t=")
    if not text:
        shell.say(f"PATH={shell.state.variable('PATH') or ''}", streams)
    elif text == ";":
        shell.state.environment.pop("PATH", None)
    else:
        shell.state.environment["PATH"] = text
    return None


def prompt(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """PROMPT: kept as the variable; the prompt itself is shown as $P$G."""
    if rest.strip():
        shell.state.environment["PROMPT"] = rest.strip()
    return None


def _clock(name: str) -> Builtin:
    def show(shell: Interpreter, rest: str, streams: Streams) -> int | None:
        if rest.strip().lower() != "/t":
            shell.error(f"Only {name} /t is known here.", streams)
            return 1
        shell.say(shell.state.variable(name) or "", streams)
        return 0

    return show


COMMANDS: dict[str, Builtin] = {
    "set": assign,
    "path": path,
    "prompt": prompt,
    "date": _clock("DATE"),
    "time": _clock("TIME"),
}
