"""Command lines as Windows programs read them: argv (CommandLineToArgvW) and the switches of cmd.exe."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


def split_argv(command_line: str) -> list[str]:
    """argv of a command line by the rules of CommandLineToArgvW: argv[0] ends at its quote or at a blank,
    elsewhere 2n backslashes and a quote are n backslashes, one more is a literal quote, "" inside quotes is a
    quote."""
    text = command_line.lstrip(" \t")
    if not text:
        return []
    if text.startswith('"'):
        first, _, rest = text[1:].partition('"')
    else:
        first = re.split(r"[ \t]", text, maxsplit=1)[0]
        rest = text[len(first) :]
    return [first, *_arguments(rest)]


def _arguments(text: str) -> list[str]:
    found: list[str] = []
    at = 0
    while True:
        while at < len(text) and text[at] in " \t":
            at += 1
        if at >= len(text):
            return found
        out: list[str] = []
        quoted = False
        while at < len(text) and (quoted or text[at] not in " \t"):
            slashes = 0
            while at < len(text) and text[at] == "\\":
                slashes += 1
                at += 1
            if at < len(text) and text[at] == '"':
                out.append("\\" * (slashes // 2))
                if slashes % 2:
                    out.append('"')
                elif quoted and text[at + 1 : at + 2] == '"':
                    out.append('"')
                    at += 1
                else:
                    quoted = not quoted
                at += 1
                continue
            out.append("\\" * slashes)
            if at < len(text) and (quoted or text[at] not in " \t"):
                out.append(text[at])
                at += 1
        found.append("".join(out))


@dataclass(frozen=True)
class ShellLine:
    """What cmd.exe was started with: the text to run (None: it would read commands from stdin), /Q, /V:ON."""

    text: str | None
    quiet: bool = False
    delayed: bool = False


_SWITCH = re.compile(r"\s*/([a-zA-Z])(:\w+)?\s*")


def parse_shell_line(arguments: str, is_program: Callable[[str], bool]) -> ShellLine:
    """The switches of cmd.exe and the text after /C or /K with its outer quotes handled as `cmd /?` says.

    Args:
        arguments: the command line without argv[0]; is_program: whether a name is an executable file.
    """
    strip_always = quiet = delayed = False
    while match := _SWITCH.match(arguments):
        letter = match[1].lower()
        if letter in ("c", "k", "r"):
            # /C and /K take everything that follows, even without a blank in between
            text = arguments[match.end(1) :].lstrip()
            return ShellLine(_outer_quotes(text, strip_always, is_program), quiet, delayed)
        strip_always |= letter == "s"
        quiet |= letter == "q"
        delayed |= letter == "v" and (match[2] or ":on").lower() == ":on"
        arguments = arguments[match.end() :]
    return ShellLine(None, quiet, delayed)


def _outer_quotes(text: str, always: bool, is_program: Callable[[str], bool]) -> str:
    if not text.startswith('"'):
        return text
    inner = text[1:].partition('"')[0]
    kept = (
        not always
        and text.count('"') == 2
        and not set(text) & set("&<>()@^|")
        and any(character in inner for character in " \t")
        and is_program(inner)
    )
    if kept:
        return text
    last = text.rfind('"')
    return text[1:last] + text[last + 1 :] if last > 0 else text[1:]
