"""Which functions, with which parameters, a PowerShell program defines: read from its text.

The python engine answers only what the program that the controller sends could have answered; a command or
parameter that the PowerShell lacks is refused here as it would be on a box.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FUNCTION = re.compile(r"(?im)^[ \t]*function[ \t]+(?:global:|script:)?([A-Za-z][\w-]*)[ \t]*(\(|\{|$)")
_PARAM = re.compile(r"(?i)\bparam\s*\(")
_ATTRIBUTE = re.compile(
    r"(?i)^(parameter|validate\w*|allow\w*|alias|cmdletbinding|outputtype|psdefaultvalue)\b"
)
_NAME = re.compile(r"\$([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, .NET type as written ("" when none), whether it must be given, whether it then
    may be empty."""

    name: str
    type: str
    mandatory: bool
    may_be_empty: bool = False


@dataclass(frozen=True)
class Function:
    """One function: its name as written, its parameters by lower-case name, and whether it binds them as a
    cmdlet does (it has a Parameter attribute or CmdletBinding)."""

    name: str
    parameters: dict[str, Parameter]
    advanced: bool = False


def _skip(text: str, at: int) -> int:
    """The end of the comment, string or here-string that begins at `at`; `at` itself when none does."""
    if text.startswith("<#", at):
        end = text.find("#>", at)
        return len(text) if end < 0 else end + 2
    if text[at] == "#" and (at == 0 or text[at - 1] in " \t\n\r({;,|"):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    for quote in ("'", '"'):
        if text.startswith("@" + quote, at) and text[at + 2 : at + 3] in ("\n", "\r"):
            end = text.find("\n" + quote + "@", at)
            return len(text) if end < 0 else end + 3
        if text[at] == quote:
            return _string_end(text, at, quote)
    return at


def _string_end(text: str, at: int, quote: str) -> int:
    at += 1
    while at < len(text):
        if text[at] == "`" and quote == '"':
            at += 2
        elif text[at] == quote:
            if text[at + 1 : at + 2] != quote:
                return at + 1
            at += 2
        else:
            at += 1
    return at


def _code(text: str, at: int = 0) -> Iterator[tuple[int, str]]:
    """Positions and characters of a text outside of comments and strings."""
    while at < len(text):
        end = _skip(text, at)
        if end > at:
            at = end
            continue
        if text[at] == "`":
            at += 2
            continue
        yield at, text[at]
        at += 1


def _closing(text: str, opening: int) -> int:
    """The bracket that closes the one at `opening`."""
    depth = 0
    for at, character in _code(text, opening):
        depth += character in "({["
        depth -= character in ")}]"
        if depth == 0:
            return at
    return len(text)


def _split(text: str) -> list[str]:
    """Cut the inside of a param block at its commas."""
    parts, start, depth = [], 0, 0
    for at, character in _code(text):
        depth += character in "({["
        depth -= character in ")}]"
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [part for part in [*parts, text[start:]] if part.strip()]


def _blank(text: str) -> str:
    """The text with comments and the inside of strings replaced by blanks, so that positions stay."""
    kept = {at for at, _ in _code(text)}
    return "".join(character if at in kept or character == "\n" else " " for at, character in enumerate(text))


def _parameter(text: str) -> Parameter | None:
    type_name, mandatory, may_be_empty, at = "", False, False, 0
    plain = _blank(text)
    while at < len(plain):
        if plain[at].isspace():
            at += 1
        elif plain[at] == "[":
            end = _closing(text, at)
            inside = text[at + 1 : end].strip()
            if _ATTRIBUTE.match(inside):
                lowered = re.sub(r"\s", "", inside.lower())
                mandatory |= "mandatory" in lowered and "mandatory=$false" not in lowered
                may_be_empty |= lowered.startswith("allowempty")
            else:
                type_name = inside
            at = end + 1
        else:
            match = _NAME.match(plain, at)
            return Parameter(match[1], type_name, mandatory, may_be_empty) if match else None
    return None


def functions(program: str) -> dict[str, Function]:
    """The functions of a program by lower-case name; the last definition of a name holds, as in
    PowerShell."""
    plain = _blank(program)
    found: dict[str, Function] = {}
    for match in _FUNCTION.finditer(plain):
        opening = plain.find("{", match.end(1))
        if opening < 0:
            continue
        inside = ""
        if match[2] == "(":
            start = match.start(2)
            inside = program[start + 1 : _closing(program, start)]
        else:
            end = _closing(program, opening)
            block = _PARAM.search(plain, opening, end)
            before = plain[opening + 1 : block.start()].strip() if block else "x"
            # A param block belongs to the function when only attributes stand before it.
            if block and re.fullmatch(r"(\[[^{}]*\]\s*)*", before):
                start = block.end() - 1
                inside = program[start + 1 : _closing(program, start)]
        parameters = [item for item in map(_parameter, _split(inside)) if item is not None]
        advanced = re.search(
            r"(?i)\[\s*(parameter|cmdletbinding)\s*\(", inside + plain[opening : opening + 200]
        )
        found[match[1].lower()] = Function(
            match[1], {item.name.lower(): item for item in parameters}, advanced is not None
        )
    return found
