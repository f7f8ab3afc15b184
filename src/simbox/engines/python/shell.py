"""One cmd.exe process of a box: an interpreter on a thread, in the process table, that can be killed at any
point."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from simbox.cmd.interpreter import Interpreter
from simbox.cmd.machine import Interrupted, Launch, MachineError, Streams
from simbox.engines.python import launcher, systemprograms
from simbox.engines.python.commandline import parse_shell_line, split_argv
from simbox.engines.python.hostpaths import win32_code
from simbox.engines.python.machine import BoxMachine
from simbox.engines.python.pipes import HostFile, InputPipe
from simbox.errors import WindowsError, signed

if TYPE_CHECKING:
    from simbox.box import Box

Work = Callable[[Interpreter], int]


class ShellProcess:
    """A running cmd.exe. Implements simbox.task.starter.StartedProcess and launcher.Child.

    Killing it ends the interpreter where it stands; its children go on, as on Windows.
    """

    def __init__(
        self,
        box: Box,
        work: Work,
        working_directory: str,
        environment: Mapping[str, str],
        streams: Streams,
        *,
        parent_pid: int = 0,
        priority_class: str | None = None,
        session_id: int | None = None,
        code_page: int | None = None,
    ) -> None:
        self._box = box
        self._work = work
        self._streams = streams
        self._killed: int | None = None
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._done = threading.Event()
        self.exit_code: int | None = None
        self.interpreter = Interpreter(
            BoxMachine(box, self, code_page), environment, working_directory, streams
        )
        entry = box.windows.process.add(
            systemprograms.CMD,
            self.kill,
            parent_pid=parent_pid,
            priority_class=priority_class,
            session_id=session_id,
        )
        self.pid = entry.pid
        box.events.append("program_start", pid=self.pid, program="cmd.exe")
        self._files = [
            handle
            for handle in {
                id(item): item for item in (streams.stdin, streams.stdout, streams.stderr)
            }.values()
            if isinstance(handle, HostFile)
        ]
        for file in self._files:
            file.retain()
        self._thread = threading.Thread(target=self._run, name=f"cmd.exe {self.pid}", daemon=True)
        self._thread.start()

    @classmethod
    def of_command_line(
        cls,
        box: Box,
        path: str,
        command_line: str,
        working_directory: str,
        environment: Mapping[str, str],
        streams: Streams,
        *,
        parent_pid: int = 0,
        priority_class: str | None = None,
        session_id: int | None = None,
        code_page: int | None = None,
    ) -> ShellProcess:
        """Start cmd.exe with its switches, or a batch file as CreateProcess does (by cmd.exe /c)."""
        if path.lower().endswith((".bat", ".cmd")):
            rest = command_line[len(_program_part(command_line)) :]

            def work(shell: Interpreter) -> int:
                shell.run_batch(path, path, rest, shell.streams)
                return shell.state.error_level

        else:
            arguments = command_line[len(_program_part(command_line)) :]

            def work(shell: Interpreter) -> int:
                line = parse_shell_line(arguments, lambda name: shell.find_program(name) is not None)
                shell.state.delayed = line.delayed
                shell.state.echo = not line.quiet
                return _from_stdin(shell) if line.text is None else shell.run_line(line.text)

        return cls(
            box,
            work,
            working_directory,
            environment,
            streams,
            parent_pid=parent_pid,
            priority_class=priority_class,
            session_id=session_id,
            code_page=code_page,
        )

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Its exit code (0..0xFFFFFFFF) once it has ended, None after the timeout."""
        self._done.wait(timeout_s)
        return self.exit_code

    def kill(self, exit_code: int = 1) -> None:
        """TerminateProcess."""
        if not self._done.is_set():
            self._killed = exit_code
            self._stopping.set()
            self._wake.set()
            if isinstance(self._streams.stdin, InputPipe):
                self._streams.stdin.break_off()

    def kill_root(self) -> None:
        """See StartedProcess."""
        self.kill()

    def kill_tree(self) -> None:
        """See StartedProcess."""
        self._box.windows.process.kill_tree(self.pid)

    # what the interpreter asks

    def check(self) -> None:
        """Raises Interrupted once killed."""
        if self._stopping.is_set():
            raise Interrupted

    def sleep(self, seconds: float) -> None:
        """Wait; raises Interrupted once killed."""
        if self._stopping.wait(seconds):
            raise Interrupted

    def run_child(self, launch: Launch) -> int:
        """Run a program to its end; raises Interrupted once killed (the program goes on)."""
        self.check()
        child = self._child(launch)

        def wait() -> None:
            child.wait()
            self._wake.set()

        threading.Thread(target=wait, name=f"wait for {child.pid}", daemon=True).start()
        while True:
            self._wake.wait()
            self._wake.clear()
            self.check()
            if child.exit_code is not None:
                return signed(child.exit_code)

    def start_child(self, launch: Launch) -> None:
        """Start a program and leave it alone."""
        self.check()
        self._child(launch)

    def _child(self, launch: Launch) -> launcher.Child:
        try:
            return launcher.launch(
                self._box,
                launch.path,
                launch.command_line,
                launch.working_directory,
                launch.environment,
                launch.streams,
                parent_pid=self.pid,
            )
        except WindowsError as error:
            raise MachineError(win32_code(error)) from error

    def _run(self) -> None:
        code = 1
        try:
            code = self._work(self.interpreter)
        except Interrupted:
            pass
        except (OSError, WindowsError) as error:
            if not self._stopping.is_set():
                self._box.events.append("program_fault", program="cmd.exe", fault=str(error))
        except Exception:
            self._box.events.append("program_fault", program="cmd.exe", fault=traceback.format_exc())
        for file in self._files:
            file.close()
        self.exit_code = (code if self._killed is None else self._killed) & 0xFFFFFFFF
        self._box.windows.process.exited(self.pid, self.exit_code)
        self._box.events.append("program_exit", pid=self.pid, program="cmd.exe", code=self.exit_code)
        self._done.set()


def _program_part(command_line: str) -> str:
    """The text of argv[0], with its quotes."""
    if command_line.startswith('"'):
        end = command_line.find('"', 1)
        return command_line if end < 0 else command_line[: end + 1]
    return command_line[: len(split_argv(command_line)[0])] if command_line.strip() else ""


def _from_stdin(shell: Interpreter) -> int:
    """cmd.exe without /C: commands come line by line on stdin until it ends."""
    while line := shell.streams.stdin.readline():
        text = line.decode(shell.machine.encoding, "replace").rstrip("\r\n")
        if text.strip():
            shell.run_line(text)
            if shell.ended:
                break
    return shell.state.error_level
