"""The python engine: starts command lines on a box whose PowerShell and cmd.exe are imitated."""

from __future__ import annotations

import ntpath
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from simbox.account import environment as account
from simbox.cmd.machine import Streams
from simbox.engines.engine import Chunk
from simbox.engines.python import launcher, systemprograms
from simbox.engines.python.commandline import split_argv
from simbox.engines.python.loop import BOOTSTRAP, Loop
from simbox.engines.python.pipes import InputPipe, OutputHandle, OutputPipe
from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box

CONTROL_C_EXIT = 0xC000013A
_UTF8 = 65001


class PythonEngine:
    """Implements simbox.engines.engine.Engine for one box."""

    def __init__(self, box: Box) -> None:
        self._box = box
        systemprograms.install(box)

    def start(
        self,
        command_line: str,
        environment: dict[str, str],
        working_directory: str | None,
        skip_cmd_shell: bool,
    ) -> PythonProcess:
        """See simbox.engines.engine.Engine."""
        box = self._box
        variables = account.environment(box)
        variables.update(environment)
        folder = working_directory or account.profile_folder(box)
        try:
            if not box.filesystem.host(folder).is_dir():
                raise FileNotFoundError(f"no folder {folder}")
        except WindowsError as error:
            raise FileNotFoundError(error.message) from error
        argv = split_argv(command_line)
        name = ntpath.basename(argv[0]).lower() if argv else ""
        if name in ("powershell", "powershell.exe"):
            # By cmd.exe /c the search path finds it; without, a name alone is looked for in System32 only.
            return PythonProcess.of_work(box, systemprograms.POWERSHELL, _powershell(box, argv))
        if skip_cmd_shell:
            path = argv[0] if argv else ""
            if not ntpath.isabs(path) or not box.filesystem.host(path).is_file():
                raise FileNotFoundError(f"no program {path}")
            line = command_line
        else:
            path, line = systemprograms.CMD, f"cmd.exe /c {command_line}"

        def begin(streams: Streams) -> launcher.Child:
            # A remote shell's console has the code page its client asked for; UTF-8 is what ours ask for.
            return launcher.launch(box, path, line, folder, variables, streams, code_page=_UTF8)

        try:
            return PythonProcess.of_program(box, begin)
        except WindowsError as error:
            raise FileNotFoundError(error.message) from error


def _powershell(box: Box, argv: list[str]) -> Callable[[PythonProcess], int]:
    """What powershell.exe with these arguments does: `-Command -` serves the loop, all else is refused."""
    lowered = [argument.lower() for argument in argv[1:]]
    interactive = len(lowered) >= 2 and lowered[-1] == "-" and lowered[-2] in ("-command", "-c", "/command")

    def work(process: PythonProcess) -> int:
        if interactive:
            line = b"\n"
            while line and not line.strip():
                line = process.stdin.readline()
            if BOOTSTRAP.match(line):
                loop = Loop(
                    box,
                    process.stdin,
                    process.write_stdout,
                    process.write_stderr,
                    process.pid,
                    process.stopping.is_set,
                )
                return loop.run(line)
            if not line:
                return 0
        process.write_stderr((systemprograms.NO_POWERSHELL + "\r\n").encode())
        return 1

    return work


class PythonProcess:
    """Implements simbox.engines.engine.Process over a thread of this program or over a program of the box."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self.stdin = InputPipe()
        self._output = OutputPipe()
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._ended: int | None = None
        self._left = False
        self._path = ""
        self.pid = 0

    @classmethod
    def of_work(cls, box: Box, path: str, work: Callable[[PythonProcess], int]) -> PythonProcess:
        """A process whose program is a function; killing it makes its stdin end."""
        process = cls(box)
        process._path = path
        process.pid = box.windows.process.add(path, process.kill).pid
        box.events.append("program_start", pid=process.pid, program=ntpath.basename(path).lower())

        def run() -> None:
            code = 1
            try:
                code = work(process)
            except BrokenPipeError:
                pass
            except Exception:
                box.events.append("program_fault", program=path, fault=traceback.format_exc())
            process._leave(code)

        threading.Thread(target=run, name=f"{ntpath.basename(path)} {process.pid}", daemon=True).start()
        return process

    @classmethod
    def of_program(cls, box: Box, begin: Callable[[Streams], launcher.Child]) -> PythonProcess:
        """A process that is a program of the box. Raises WindowsError when it cannot start."""
        process = cls(box)
        streams = Streams(
            process.stdin,
            OutputHandle(process._output, "stdout"),
            OutputHandle(process._output, "stderr"),
        )
        child = begin(streams)
        process.pid = child.pid

        def wait() -> None:
            process._finish(child.wait() or 0)

        threading.Thread(target=wait, name=f"wait for {child.pid}", daemon=True).start()
        return process

    @property
    def exit_code(self) -> int | None:
        """See simbox.engines.engine.Process."""
        with self._lock:
            return self._ended

    def write_stdin(self, data: bytes, end: bool) -> None:
        """See simbox.engines.engine.Process."""
        self.stdin.write(data, end)

    def read(self, timeout_s: float) -> list[Chunk]:
        """See simbox.engines.engine.Process."""
        return self._output.read(timeout_s)

    def signal(self, ctrl_c: bool) -> None:
        """Ctrl+C and Ctrl+Break end cmd.exe, batch files and PowerShell's reading of stdin alike."""
        self._end(CONTROL_C_EXIT)

    def terminate(self) -> None:
        """See simbox.engines.engine.Process."""
        self._end(1)

    def kill(self, exit_code: int = 1) -> None:
        """TerminateProcess on this process alone. A command that is being answered ends unheard."""
        self.stopping.set()
        self._leave(exit_code)

    def write_stdout(self, data: bytes) -> None:
        """For the function that is the program."""
        self._output.write("stdout", data)

    def write_stderr(self, data: bytes) -> None:
        """For the function that is the program."""
        self._output.write("stderr", data)

    def _end(self, exit_code: int) -> None:
        self.stdin.break_off()
        self._box.windows.process.kill_tree(self.pid, exit_code)

    def _leave(self, exit_code: int) -> None:
        """The function has returned or was killed, whichever comes first: out of the process table."""
        with self._lock:
            if self._ended is not None or self._left:
                return
            self._left = True
        self._box.windows.process.exited(self.pid, exit_code & 0xFFFFFFFF)
        self._box.events.append("program_exit", pid=self.pid, program=self._path, code=exit_code & 0xFFFFFFFF)
        self._finish(exit_code)

    def _finish(self, exit_code: int) -> None:
        """Nothing more will be written: everything the process wrote is in the pipe by now."""
        self.stdin.break_off()
        with self._lock:
            self._ended = exit_code & 0xFFFFFFFF
        self._output.close()
