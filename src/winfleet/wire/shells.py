"""What a session needs from a remote shell, whether over WinRS or SSH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Output:
    """What one read brought.

    Attributes: stdout and stderr (raw bytes, cut anywhere), exit_code (unsigned 32 bit; None while the
    process runs).
    """

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int | None = None


class Shell(Protocol):
    """One process on a box with its three streams.

    All methods raise WireError kinds only: ConnectionLost (drop the connection with `reset` and ask again),
    ShellLost (open a new one), InputDoubtful and InputRefused (write), BoxUnavailable, Unreachable,
    CertificateRefused and CredentialsRefused.
    """

    @property
    def endpoint(self) -> str:
        """The box's name and address as messages print them."""

    @property
    def max_write_bytes(self) -> int:
        """How many bytes fit in one message to the box; longer writes are cut."""

    def open(self, command_line: str) -> None:
        """Start the process. Its working directory is the user's home."""

    def write(self, data: bytes) -> None:
        """Send bytes to stdin; returns when the box has taken them."""

    def read(self, wait_s: float) -> Output:
        """Wait up to wait_s seconds for output; empty when none came."""

    def reset(self) -> None:
        """Drop the network connection; the next call makes a new one. The process lives on."""

    def cancel(self) -> None:
        """End the process from aside, also while another call hangs. Never raises WireError."""

    def close(self) -> None:
        """End the process and remove the shell. Never raises WireError; harmless when repeated."""
