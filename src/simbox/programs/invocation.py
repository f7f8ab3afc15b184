"""One run of a program on a box, and how it is started and killed."""

from __future__ import annotations

import io
import ntpath
import subprocess
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box

Writer = Callable[[bytes], None]


@dataclass
class Invocation:
    """What a program gets.

    Attributes:
        box, path (Windows path of its file), argv (argv[0] included), command_line (as given to
        CreateProcess),
        cwd (Windows folder), pid (on the box), environment, stdout and stderr (called with bytes), stdin,
        stopping (set when the process is killed: return soon; the exit code is then the killer's).
    """

    box: Box
    path: str
    argv: Sequence[str]
    command_line: str
    cwd: str
    pid: int
    environment: Mapping[str, str]
    stdout: Writer
    stderr: Writer
    stdin: BinaryIO = field(default_factory=io.BytesIO)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def name(self) -> str:
        """File name in lower case, such as ninfer-serve.exe."""
        return ntpath.basename(self.path).lower()

    @property
    def arguments(self) -> list[str]:
        """argv without argv[0]."""
        return list(self.argv[1:])

    def variable(self, name: str, default: str = "") -> str:
        """An environment variable, its name in any case."""
        for key, value in self.environment.items():
            if key.upper() == name.upper():
                return value
        return default

    def out(self, text: str = "") -> None:
        """Write one line to stdout (UTF-8, CRLF)."""
        self.stdout((text + "\r\n").encode())

    def err(self, text: str) -> None:
        """Write one line to stderr (UTF-8, CRLF)."""
        self.stderr((text + "\r\n").encode())


class RunningProgram:
    """A started program. Implements simbox.task.starter.StartedProcess."""

    def __init__(self, invocation: Invocation, program: Callable[[Invocation], int]) -> None:
        self.invocation = invocation
        self.pid = invocation.pid
        self.exit_code: int | None = None
        self._program = program
        self._killed: int | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{invocation.name} {self.pid}", daemon=True)

    def begin(self) -> RunningProgram:
        """Run it on a thread of its own."""
        self._thread.start()
        return self

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Its exit code when it has ended, None after the timeout."""
        self._done.wait(timeout_s)
        return self.exit_code

    def kill(self, exit_code: int = 1) -> None:
        """TerminateProcess: asks the program to return; its exit code becomes this one."""
        if not self._done.is_set():
            self._killed = exit_code
            self.invocation.stopping.set()

    def kill_root(self) -> None:
        """See StartedProcess."""
        self.kill()

    def kill_tree(self) -> None:
        """See StartedProcess; a program has no children here."""
        self.kill()

    def _run(self) -> None:
        box, code = self.invocation.box, 1
        try:
            code = self._program(self.invocation)
        except OSError as error:
            if not self.invocation.stopping.is_set():  # else its pipes went with it
                self.invocation.err(f"{self.invocation.name}: {error}")
        except WindowsError as error:
            self.invocation.err(f"{self.invocation.name}: {error.message}")
        except Exception:
            box.events.append("program_fault", program=self.invocation.name, fault=traceback.format_exc())
        self.exit_code = (code if self._killed is None else self._killed) & 0xFFFFFFFF
        box.windows.process.exited(self.pid, self.exit_code)
        box.events.append("program_exit", pid=self.pid, program=self.invocation.name, code=self.exit_code)
        self._done.set()


def start(
    box: Box,
    path: str,
    argv: Sequence[str],
    *,
    command_line: str | None = None,
    cwd: str = "C:\\",
    environment: Mapping[str, str] | None = None,
    stdout: Writer = lambda data: None,
    stderr: Writer = lambda data: None,
    stdin: BinaryIO | None = None,
    pid: int | None = None,
    parent_pid: int = 0,
) -> RunningProgram:
    """Start a program of the box.

    Args:
        path: Windows path of its exe; must exist. argv: argv[0] included.
        environment: None means the machine's. pid: given by Wine; None lets the box choose one.

    Raises: WindowsError 0x80070002 when the file is absent, 0x800700C1 when its name is no program known
    here.
    """
    from simbox import programs

    program = programs.lookup(path)
    if not box.filesystem.host(path, cwd).is_file():
        raise WindowsError(
            "System.ComponentModel.Win32Exception",
            f"The system cannot find the file specified: '{path}'",
            0x80070002,
            "ObjectNotFound",
            "Win32Exception",
        )
    if program is None:
        raise WindowsError(
            "System.ComponentModel.Win32Exception",
            f"'{path}' is not a valid Win32 application.",
            0x800700C1,
            "InvalidOperation",
            "Win32Exception",
        )
    full = box.filesystem.normalise(path, cwd)
    invocation = Invocation(
        box=box,
        path=full,
        argv=list(argv),
        command_line=command_line or subprocess.list2cmdline(list(argv)),
        cwd=cwd,
        pid=0,
        environment=dict(box.windows.system.environment() if environment is None else environment),
        stdout=stdout,
        stderr=stderr,
        stdin=stdin or io.BytesIO(),
    )
    running = RunningProgram(invocation, program)
    entry = box.windows.process.add(full, running.kill, pid=pid, parent_pid=parent_pid)
    invocation.pid = running.pid = entry.pid
    box.events.append("program_start", pid=entry.pid, program=invocation.name)
    return running.begin()
