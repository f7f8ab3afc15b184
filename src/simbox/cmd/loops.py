"""FOR: plain, /L, /D, /R and /F."""

from __future__ import annotations

import io
import ntpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simbox.cmd.expansion import expand_percent
from simbox.cmd.flow import EndBatch, EndShell, Goto
from simbox.cmd.machine import MachineError, Streams
from simbox.cmd.parser import Parser
from simbox.cmd.patterns import matching
from simbox.cmd.syntax import For, SyntaxFault
from simbox.cmd.variables import split_arguments

if TYPE_CHECKING:
    from simbox.cmd.interpreter import Interpreter


def run(node: For, shell: Interpreter, streams: Streams) -> int:
    """Run a FOR command; returns the code of the last body run."""
    saved = dict(shell.state.for_values)
    code = 0
    try:
        for values in _rounds(node, shell, streams):
            shell.machine.check()
            shell.state.for_values = {**saved, **values}
            code = shell.execute(node.body, streams)
    finally:
        shell.state.for_values = saved
    return code


def _rounds(node: For, shell: Interpreter, streams: Streams) -> Iterator[dict[str, str]]:
    items = shell.late(node.items)
    if node.switch == "/l":
        numbers = [int(item) if re.fullmatch(r"[-+]?\d+", item) else 0 for item in split_arguments(items)]
        start, step, end = (*numbers, 0, 0, 0)[:3]
        while (start <= end) if step >= 0 else (start >= end):
            yield {node.variable: str(start)}
            start += step
    elif node.switch == "/f":
        options = FieldOptions.parse(shell.late(node.options))
        for line in _lines(items, options, shell, streams):
            values = options.fields(line, node.variable)
            if values is not None:
                yield values
    elif node.switch == "/r":
        yield from _walk(node, shell, shell.late(node.options).replace('"', "") or ".", items)
    else:
        for item in split_arguments(items):
            if "*" in item or "?" in item:
                for path, entry in matching(shell.state, item.replace('"', "")):
                    if entry.directory == (node.switch == "/d"):
                        yield {node.variable: path}
            else:
                yield {node.variable: item}


def _walk(node: For, shell: Interpreter, root: str, items: str) -> Iterator[dict[str, str]]:
    folders = [shell.state.full_path(root)]
    while folders:
        folder = folders.pop(0)
        for item in split_arguments(items):
            name = item.replace('"', "")
            if "*" in name or "?" in name:
                for path, entry in matching(shell.state, ntpath.join(folder, name)):
                    if not entry.directory:
                        yield {node.variable: path}
            else:
                yield {node.variable: ntpath.join(folder, name)}
        try:
            inner = [entry.name for entry in shell.machine.names(folder) if entry.directory]
        except MachineError:
            inner = []
        folders[:0] = [ntpath.join(folder, name) for name in inner]


@dataclass(frozen=True)
class FieldOptions:
    """The options of FOR /F: end-of-line mark, lines to skip, delimiters, fields wanted, meaning of
    quotes."""

    eol: str = ";"
    skip: int = 0
    delimiters: str = " \t"
    tokens: tuple[int, ...] = (1,)
    rest: bool = False
    use_back_quotes: bool = False

    @classmethod
    def parse(cls, text: str) -> FieldOptions:
        """From `eol=; skip=1 delims=, tokens=1,3-5* usebackq`. Raises SyntaxFault."""
        text = text[1:-1] if text.startswith('"') and text.endswith('"') and len(text) > 1 else text
        eol, skip, delimiters, rest, back = ";", 0, " \t", False, False
        tokens: tuple[int, ...] = (1,)
        while text.strip():
            text = text.lstrip()
            lowered = text.lower()
            if lowered.startswith("usebackq"):
                back, text = True, text[8:]
            elif lowered.startswith("eol="):
                eol, text = text[4:5], text[5:]
            elif match := re.match(r"skip=(\d+)", lowered):
                skip, text = int(match[1]), text[match.end() :]
            elif match := re.match(r"tokens=([\d,\-]*)(\*?)", lowered):
                tokens, rest = _token_numbers(match[1]), bool(match[2])
                text = text[match.end() :]
            elif lowered.startswith("delims="):
                delimiters, text = _delimiters(text[7:])
            else:
                raise SyntaxFault(f"{text} was unexpected at this time.")
        return cls(eol, skip, delimiters, tokens, rest, back)

    def fields(self, line: str, variable: str) -> dict[str, str] | None:
        """FOR variables of one line, the first named `variable`; None when the line is empty or a comment."""
        if not line or (self.eol and line.startswith(self.eol)):
            return None
        spans = self._spans(line)
        if not spans and self.delimiters:
            return None
        values: dict[str, str] = {}
        name = ord(variable)
        for number in self.tokens:
            start, end = spans[number - 1] if number <= len(spans) else (0, 0)
            values[chr(name)] = line[start:end]
            name += 1
        if self.rest:
            last = max(self.tokens, default=0)
            values[chr(name)] = line[spans[last][0] :] if last < len(spans) else ""
        return values

    def _spans(self, line: str) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        at = 0
        while at < len(line):
            while at < len(line) and line[at] in self.delimiters:
                at += 1
            start = at
            while at < len(line) and line[at] not in self.delimiters:
                at += 1
            if at > start:
                spans.append((start, at))
        return spans


def _token_numbers(text: str) -> tuple[int, ...]:
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first:
            numbers.update(range(int(first), int(last if dash and last else first) + 1))
    return tuple(sorted(numbers))


def _delimiters(text: str) -> tuple[str, str]:
    """The delimiters and what follows them: a blank is one of them only when it is the last character."""
    end = text.find(" ")
    if end < 0 or end == len(text) - 1:
        return text, ""
    return text[:end], text[end:]


def _lines(items: str, options: FieldOptions, shell: Interpreter, streams: Streams) -> Iterator[str]:
    text = items.strip()
    quote = text[:1]
    command, string = ("`", "'") if options.use_back_quotes else ("'", '"')
    if quote == string and text.endswith(string) and len(text) > 1:
        content = text[1:-1]
    elif quote == command and text.endswith(command) and len(text) > 1:
        content = _output(text[1:-1], shell, streams)
    else:
        content = ""
        for name in split_arguments(items):
            name = name.replace('"', "")
            try:
                raw = shell.machine.read(shell.state.full_path(name))
            except MachineError:
                shell.error(f"The system cannot find the file {name}.", streams)
                shell.state.error_level = 1
                return
            content += raw.decode(shell.machine.encoding, "replace")
    lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    yield from lines[options.skip :]


def _output(command: str, shell: Interpreter, streams: Streams) -> str:
    """What a command prints; it runs in a copy of this shell, as a child cmd.exe does."""
    captured = io.BytesIO()
    frame = shell.state.save()
    level, batch, shell.batch = shell.state.error_level, shell.batch, None
    try:
        expanded = [expand_percent(command, shell.state.variable, None, shell.state.lookups)]
        parsed = Parser(lambda: expanded.pop(0) if expanded else None).statement()
        if parsed is not None:
            shell.execute(parsed.node, Streams(streams.stdin, captured, streams.stderr))
    except (EndBatch, EndShell, Goto):
        pass
    finally:
        shell.state.restore(frame)
        shell.state.error_level, shell.batch = level, batch
    return captured.getvalue().decode(shell.machine.encoding, "replace")
