"""Runs parsed statements: chains, blocks, IF, FOR, redirections, batch contexts, and the choice between a
built-in command, a batch file and a program."""

from __future__ import annotations

import io
import ntpath
from collections.abc import Mapping
from contextlib import ExitStack

from simbox.cmd import conditions, loops
from simbox.cmd.batch import Batch, BatchGone
from simbox.cmd.commands import BUILTINS
from simbox.cmd.expansion import expand_delayed, expand_for, expand_percent
from simbox.cmd.flow import EndBatch, EndShell, Goto
from simbox.cmd.machine import Launch, Machine, MachineError, Sink, Source, Streams
from simbox.cmd.parser import Parser
from simbox.cmd.state import State
from simbox.cmd.syntax import Block, Chain, For, If, Node, Pipe, Quiet, Redirection, Simple, SyntaxFault
from simbox.cmd.variables import DELIMITERS, Environment, Parameters

PATHEXT = ".COM;.EXE;.BAT;.CMD"
_NAME_ENDS = DELIMITERS + '/.:\\[]()+"'


def split_name(text: str) -> tuple[str, str]:
    """A command's name and the text after it: `dir/b`, `cd..` and `echo.` need no blank after a built-in."""
    end = 0
    while end < len(text) and text[end] not in _NAME_ENDS:
        end += 1
    name = text[:end]
    if name.lower() in BUILTINS and text[end : end + 4].lower() not in (".exe", ".com", ".bat", ".cmd"):
        return name, text[end:]
    end, quoted = 0, False
    while end < len(text) and (quoted or text[end] not in DELIMITERS):
        quoted ^= text[end] == '"'
        end += 1
    return text[:end].replace('"', ""), text[end:]


class Empty:
    """A stdin or stdout that is NUL."""

    def read(self, size: int = -1, /) -> bytes:
        return b""

    def readline(self) -> bytes:
        return b""

    def write(self, data: bytes, /) -> int:
        return len(data)


class Interpreter:
    """One cmd.exe.

    Args:
        machine: files, programs and time.
        environment, directory: of the process.
        streams: its standard handles.

    Example::

        code = Interpreter(machine, {"PATH": ""}, "C:\\\\", streams).run_line('echo hello')
    """

    def __init__(
        self, machine: Machine, environment: Mapping[str, str], directory: str, streams: Streams
    ) -> None:
        self.machine = machine
        self.streams = streams
        self.state = State.begin(machine, environment, directory)
        self.batch: Batch | None = None
        self.ended = False

    # entry points

    def run_line(self, text: str) -> int:
        """Run a command line as `cmd /c` does; returns the exit code (signed 32 bit). Raises Interrupted."""
        lines = [expand_percent(text, self.state.variable, None, self.state.lookups)]
        try:
            parsed = Parser(lambda: lines.pop(0) if lines else None).statement()
            if parsed is not None and parsed.node is not None:
                self._execute(parsed.node, self.streams)
        except SyntaxFault as fault:
            self.error(str(fault), self.streams)
            self.state.error_level = 1
        except EndShell:
            self.ended = True
        except (EndBatch, Goto):
            pass
        return self.state.error_level

    def run_batch(self, path: str, name: str, arguments: str, streams: Streams) -> None:
        """Run a batch file to its end in a context of its own."""
        self._run_context(Batch(self.machine, path, Parameters.of(name, path, arguments)), streams)

    def call_label(self, label: str, arguments: str, streams: Streams) -> int:
        """CALL :label. Returns the error level."""
        caller = self.batch
        if caller is None:
            self.error("Invalid attempt to call batch label outside of batch script.", streams)
            return 1
        parameters = Parameters.of(":" + label, caller.path, arguments)
        context = Batch(self.machine, caller.path, parameters, caller.offset)
        if not context.find_label(label):
            self.error(f"The system cannot find the batch label specified - {label}", streams)
            return 1
        self._run_context(context, streams)
        return self.state.error_level

    def _run_context(self, context: Batch, streams: Streams) -> None:
        caller, self.batch = self.batch, context
        values, self.state.for_values = self.state.for_values, {}
        try:
            self._statements(context, streams)
        except EndBatch:
            pass
        except BatchGone as gone:
            self.error(str(gone), streams)
            self.state.error_level = 1
        finally:
            if context.frames:
                self.state.restore(context.frames[0])
            self.batch, self.state.for_values = caller, values

    def _statements(self, context: Batch, streams: Streams) -> None:
        def next_line() -> str | None:
            line = context.next_line()
            if line is None or line.lstrip(DELIMITERS).startswith(":"):
                return line
            return expand_percent(line, self.state.variable, context.parameters, self.state.lookups)

        parser = Parser(next_line)
        while True:
            self.machine.check()
            try:
                parsed = parser.statement()
            except SyntaxFault as fault:
                self.error(str(fault), streams)
                self.state.error_level = 255
                raise EndShell from None
            if parsed is None:
                return
            if parsed.node is None:
                continue
            if self.state.echo and not isinstance(parsed.node, Quiet):
                self.say(f"\r\n{self.state.directory}>{parsed.text.replace(chr(10), ' ')} ", streams)
            try:
                self._execute(parsed.node, streams)
            except Goto as goto:
                label = str(goto)
                if not context.find_label(label):
                    self.error(f"The system cannot find the batch label specified - {label}", streams)
                    self.state.error_level = 1
                    return

    # output

    def say(self, text: str, streams: Streams) -> None:
        """Write one line to stdout."""
        self.write(text + "\r\n", streams.stdout)

    def error(self, text: str, streams: Streams) -> None:
        """Write one line to stderr."""
        self.write(text + "\r\n", streams.stderr)

    def write(self, text: str, sink: Sink) -> None:
        """Write text in the console code page."""
        sink.write(text.encode(self.machine.encoding, "replace"))

    # statements

    def execute(self, node: Node | None, streams: Streams) -> int:
        """Run a statement; returns the code that && and || look at."""
        return 0 if node is None else self._execute(node, streams)

    def _execute(self, node: Node, streams: Streams) -> int:
        match node:
            case Quiet(body):
                return self._execute(body, streams)
            case Simple(text, redirections):
                with ExitStack() as stack:
                    own = self._redirected(redirections, streams, stack)
                    return 1 if own is None else self.command(self.late(text), own)
            case Block(body, redirections):
                with ExitStack() as stack:
                    own = self._redirected(redirections, streams, stack)
                    if own is None:
                        return 1
                    code = 0
                    for inner in body:
                        code = self._execute(inner, own)
                    return code
            case Chain(operator, left, right):
                code = self._execute(left, streams)
                if operator == "&" or (operator == "&&") == (code == 0):
                    code = self._execute(right, streams)
                return code
            case Pipe(left, right):
                return self._piped(left, right, streams)
            case If():
                holds = conditions.holds(node, self)
                return self.execute(node.then if holds else node.otherwise, streams)
            case For():
                return loops.run(node, self, streams)

    def late(self, text: str) -> str:
        """The expansions that happen when a command runs: FOR variables, then !name!."""
        text = expand_for(text, self.state.for_values, self.state.lookups)
        return expand_delayed(text, self.state.variable) if self.state.delayed else text

    def _piped(self, left: Node, right: Node, streams: Streams) -> int:
        """The left side to its end first, then the right one with its output; each in a copy of the
        environment."""
        between = io.BytesIO()
        code = 0
        for node, own in (
            (left, Streams(streams.stdin, between, streams.stderr)),
            (right, Streams(between, streams.stdout, streams.stderr)),
        ):
            frame = self.state.save()
            try:
                code = self._execute(node, own)
            except (EndBatch, EndShell):
                code = self.state.error_level
            finally:
                self.state.restore(frame)
            between.seek(0)
        self.state.error_level = code
        return code

    def _redirected(
        self, redirections: tuple[Redirection, ...], streams: Streams, stack: ExitStack
    ) -> Streams | None:
        """The handles of a command; None when a file cannot be opened: then the command does not run."""
        if not redirections:
            return streams
        reading: Source = streams.stdin
        writing: dict[int, Sink] = {1: streams.stdout, 2: streams.stderr}
        for redirection in redirections:
            target = self.late(redirection.target)
            if target.startswith("&"):
                source = writing.get(int(target[1:]))
                if source is not None and redirection.handle != 0:
                    writing[redirection.handle] = source
                continue
            name = target.replace('"', "")
            try:
                if ntpath.basename(name).lower() == "nul":
                    opened: Empty | None = Empty()
                else:
                    mode = {"<": "read", ">": "write", ">>": "append"}[redirection.operator]
                    opened = None
                    file = self.machine.open(self.state.full_path(name), mode)
                    stack.callback(file.close)
            except MachineError as error:
                self.error(str(error), streams)
                self.state.error_level = 1
                return None
            if redirection.operator == "<":
                reading = opened or file
            else:
                writing[redirection.handle] = opened or file
        return Streams(reading, writing[1], writing[2])

    # commands

    def command(self, text: str, streams: Streams) -> int:
        """Run one command: built-in, change of drive, batch file or program."""
        text = text.lstrip(DELIMITERS)
        if not text:
            return 0
        name, rest = split_name(text)
        builtin = BUILTINS.get(name.lower())
        if builtin is not None:
            code = builtin(self, rest, streams)
            if code is None:
                return 0
            self.state.error_level = code
            return code
        if len(name) == 2 and name[1] == ":" and name[0].isalpha():
            return self._change_drive(name[0], streams)
        return self.external(text, streams, called=False)

    def _change_drive(self, letter: str, streams: Streams) -> int:
        folder = self.state.folders.get(letter.upper(), letter.upper() + ":\\")
        if self.machine.entry(folder) is None:
            self.error("The system cannot find the drive specified.", streams)
            self.state.error_level = 1
            return 1
        self.state.enter(folder)
        return 0

    def find_program(self, name: str) -> str | None:
        """The full path of a program or batch file: present folder first, then PATH, with PATHEXT."""
        if any(character in name for character in '*?"<>|'):
            return None
        extensions = (self.state.variable("PATHEXT") or PATHEXT).split(";")
        known = ntpath.splitext(name)[1].upper() in [item.upper() for item in extensions]
        folders = [""]
        if "\\" not in name and "/" not in name and ":" not in name:
            folders += (self.state.variable("PATH") or "").split(";")
        for folder in folders:
            base = ntpath.join(folder.strip('"'), name) if folder else name
            for extension in [""] if known else extensions:
                path = self.state.full_path(base + extension.lower())
                entry = self.machine.entry(path)
                if entry is not None and not entry.directory:
                    return ntpath.join(ntpath.dirname(path), entry.name)
        return None

    def external(self, text: str, streams: Streams, called: bool) -> int:
        """Run a batch file (ending the present one unless called) or a program; text is its command line."""
        name, rest = split_name(text)
        path = self.find_program(name)
        if path is None:
            self.error(
                f"'{name}' is not recognized as an internal or external command,\r\n"
                "operable program or batch file.",
                streams,
            )
            self.state.error_level = 9009 if self.batch is not None else 1
            return self.state.error_level
        if path.lower().endswith((".bat", ".cmd")):
            self.run_batch(path, name, rest, streams)
            if self.batch is not None and not called:
                raise EndBatch
            return self.state.error_level
        try:
            code = self.machine.run(self.launch(path, text, streams))
        except MachineError as error:
            self.error(str(error), streams)
            code = 1 if error.code != 2 else 9009
        self.state.error_level = code
        return code

    def launch(self, path: str, command_line: str, streams: Streams) -> Launch:
        """A program with this shell's environment and folder."""
        environment: Environment = self.state.environment.copy()
        return Launch(path, command_line.rstrip(" "), self.state.directory, environment, streams)
