"""How the task scheduler of a simulated box starts a real process: the seam to the engines.

The wine engine's implementation is `simbox.engines.wine.process.start_detached`, the python engine's
`simbox.engines.python.tasks.start`; both have the signature of `ProcessStarter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from simbox.box import Box


class StartedProcess(Protocol):
    """A root process started by the scheduler."""

    @property
    def pid(self) -> int:
        """The Windows process id on the box."""
        ...

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Block until it ended; its exit code (0..0xFFFFFFFF or signed), or None after the timeout."""
        ...

    def kill_root(self) -> None:
        """TerminateProcess on this process alone, exit code 1: its children go on
        (docs/facts/windows.md#ending-a-task)."""
        ...

    def kill_tree(self) -> None:
        """End this process and all of its descendants (the box is switched off)."""
        ...


class ProcessStarter(Protocol):
    """Start `command arguments` outside of any remote session.

    Args:
        command: a full path or a name for the search path; `%VAR%` already expanded by the scheduler.
        arguments: the rest of the command line, exactly as in the task, one string, possibly empty.
        working_directory: a Windows folder, or None (then C:\\Windows\\System32 as the real scheduler does).
        priority_class: Normal, BelowNormal, ...; children inherit it.
        session_id: 0 for services, 1 for the logged-on user.

    Raises: WindowsError with hresult 0x80070002 when the program does not exist, 0x8007010B when the
    working directory does not, 0x800700C1 when the file is no program.
    """

    def __call__(
        self,
        box: Box,
        command: str,
        arguments: str,
        working_directory: str | None,
        *,
        priority_class: str = "Normal",
        session_id: int = 0,
    ) -> StartedProcess: ...
