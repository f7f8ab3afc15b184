"""What runs a command on a simulated box: the seam between its network endpoints and its engines.

An endpoint (WinRM, SSH) receives a command line and hands it to the box's Engine; the Process it gets back is
all it knows of the command.
"""

from __future__ import annotations

from typing import Literal, Protocol

StreamName = Literal["stdout", "stderr"]
Chunk = tuple[StreamName, bytes]


class Process(Protocol):
    """One running command. Every method may be called from any thread; one thread reads, one writes."""

    @property
    def exit_code(self) -> int | None:
        """Unsigned 32-bit exit code of Windows, or None.

        It is set only when the process has ended and everything it wrote can be had from `read(0)` at once: a
        caller that sees it set and then reads until an empty list has the whole output.
        """
        ...

    def write_stdin(self, data: bytes, end: bool) -> None:
        """Write all of data to the process's stdin and, when end is true, close it.

        Blocks while the process does not read. Raises BrokenPipeError when it has ended or stdin is closed; a
        write that blocks is released in the same way by `terminate`.
        """
        ...

    def read(self, timeout_s: float) -> list[Chunk]:
        """Return the output that is there, waiting at most timeout_s seconds for the first of it.

        Returns as soon as there is any output (raw bytes as written, in order within each stream). Returns an
        empty list on timeout or, without waiting any longer, once the process has ended and nothing is left.
        """
        ...

    def signal(self, ctrl_c: bool) -> None:
        """Deliver Ctrl+C (True) or Ctrl+Break (False) to the process; it may ignore it."""
        ...

    def terminate(self) -> None:
        """Kill the process and its whole tree, as closing a job object does. Harmless when it has ended."""
        ...


class Engine(Protocol):
    """Starts commands on one box."""

    def start(
        self,
        command_line: str,
        environment: dict[str, str],
        working_directory: str | None,
        skip_cmd_shell: bool,
    ) -> Process:
        """Start a command with piped stdin, stdout and stderr.

        Args:
            command_line: as the client sent it, program and arguments in one text.
            environment: variables set on top of those of the box's account.
            working_directory: a Windows path, or None for the account's profile folder.
            skip_cmd_shell: True: create the process itself, whose program must be a full path; False: by
                `cmd.exe /c`.

        Raises FileNotFoundError when there is no such program (skip_cmd_shell) or folder, PermissionError
        when it may not be run.
        """
        ...
