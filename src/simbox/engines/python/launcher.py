"""Starts any program of a box: cmd.exe and batch files as a shell, Windows' own programs, the program
table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from simbox import programs
from simbox.cmd.machine import Sink, Streams
from simbox.engines.python import systemprograms
from simbox.engines.python.commandline import split_argv
from simbox.engines.python.pipes import HostFile
from simbox.errors import WindowsError
from simbox.programs.invocation import Invocation, RunningProgram

if TYPE_CHECKING:
    from simbox.box import Box


class Child(Protocol):
    """A started process."""

    @property
    def pid(self) -> int: ...

    @property
    def exit_code(self) -> int | None: ...

    def wait(self, timeout_s: float | None = None) -> int | None: ...

    def kill(self, exit_code: int = 1) -> None: ...

    def kill_root(self) -> None: ...

    def kill_tree(self) -> None: ...


def win32_error(code: int, message: str, category: str = "InvalidOperation") -> WindowsError:
    """A failed CreateProcess."""
    return WindowsError(
        "System.ComponentModel.Win32Exception", message, 0x80070000 | code, category, "Win32Exception"
    )


def launch(
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
) -> Child:
    """Start a program with the given handles; files among them stay open until it has ended.

    Args: path: full Windows path; code_page: of the console (None: the OEM one); others see ProcessStarter.
    Raises: WindowsError 2 (no such file), 193 (no program), 267 (no such folder).
    """
    host = box.filesystem.host(path)
    if not host.is_file():
        raise win32_error(2, "The system cannot find the file specified", "ObjectNotFound")
    if not box.filesystem.host(working_directory).is_dir():
        raise win32_error(267, "The directory name is invalid")
    full = box.filesystem.normalise(path)
    if full.lower() == systemprograms.CMD.lower() or full.lower().endswith((".bat", ".cmd")):
        from simbox.engines.python.shell import ShellProcess

        return ShellProcess.of_command_line(
            box,
            full,
            command_line,
            working_directory,
            environment,
            streams,
            parent_pid=parent_pid,
            priority_class=priority_class,
            session_id=session_id,
            code_page=code_page,
        )
    program = systemprograms.PROGRAMS.get(full.lower()) or programs.lookup(full)
    if program is None:
        raise win32_error(193, f"{full} is not a valid Win32 application")
    invocation = Invocation(
        box=box,
        path=full,
        argv=split_argv(command_line),
        command_line=command_line,
        cwd=working_directory,
        pid=0,
        environment=dict(environment),
        stdout=_writer(streams.stdout),
        stderr=_writer(streams.stderr),
        stdin=cast(BinaryIO, streams.stdin),
    )
    child = RunningProgram(invocation, _with_files(program, streams))
    entry = box.windows.process.add(
        full, child.kill, parent_pid=parent_pid, priority_class=priority_class, session_id=session_id
    )
    invocation.pid = child.pid = entry.pid
    box.events.append("program_start", pid=entry.pid, program=invocation.name)
    return child.begin()


def _writer(sink: Sink) -> Callable[[bytes], None]:
    def write(data: bytes) -> None:
        sink.write(data)

    return write


def _with_files(program: Callable[[Invocation], int], streams: Streams) -> Callable[[Invocation], int]:
    """The program as an owner of the files among its handles, from now until it has returned."""
    files = {id(handle): handle for handle in (streams.stdin, streams.stdout, streams.stderr)}
    owned = [handle for handle in files.values() if isinstance(handle, HostFile)]
    for file in owned:
        file.retain()

    def run(invocation: Invocation) -> int:
        try:
            return program(invocation)
        except (OSError, WindowsError) as error:
            if not invocation.stopping.is_set():
                invocation.err(f"{invocation.name}: {error}")
            return 1
        finally:
            for file in owned:
                file.close()

    return run
