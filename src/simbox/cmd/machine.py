"""What the interpreter needs from the machine it runs on, and the errors that machine may report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

MESSAGES = {
    2: "The system cannot find the file specified.",
    3: "The system cannot find the path specified.",
    5: "Access is denied.",
    15: "The system cannot find the drive specified.",
    32: "The process cannot access the file because it is being used by another process.",
    123: "The filename, directory name, or volume label syntax is incorrect.",
    145: "The directory is not empty.",
    183: "Cannot create a file when that file already exists.",
    193: "%1 is not a valid Win32 application.",
    206: "The filename or extension is too long.",
    267: "The directory name is invalid.",
}
"""Texts of the Win32 error codes that the commands print (en-US, winerror.h)."""


class MachineError(Exception):
    """A file or program request that Windows refused; `code` is the Win32 error."""

    def __init__(self, code: int, message: str | None = None) -> None:
        self.code = code
        super().__init__(message or MESSAGES.get(code, f"Unknown error {code}."))


class Interrupted(Exception):
    """The process that runs the interpreter was ended from outside."""


class Source(Protocol):
    """A standard input: bytes, in order."""

    def read(self, size: int = -1, /) -> bytes: ...

    def readline(self) -> bytes: ...


class Sink(Protocol):
    """A standard output or error."""

    def write(self, data: bytes, /) -> object: ...


class OpenFile(Source, Sink, Protocol):
    """A file opened by a redirection; it stays open for its command and that command's programs."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Streams:
    """The three standard handles of a command."""

    stdin: Source
    stdout: Sink
    stderr: Sink


@dataclass(frozen=True)
class Entry:
    """A file or folder: its name as stored, size in bytes, time of last write (seconds since 1970, UTC)."""

    name: str
    directory: bool
    size_bytes: int
    modified_s: float
    attributes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Launch:
    """A program to run: full path, command line as Windows passes it, folder, environment, handles."""

    path: str
    command_line: str
    working_directory: str
    environment: Mapping[str, str]
    streams: Streams


class Machine(Protocol):
    """Files, programs and time of one Windows machine. All paths are full Windows paths."""

    @property
    def encoding(self) -> str:
        """Python codec of the console code page, in which batch files are read and text is written."""

    @property
    def version(self) -> str:
        """Version of Windows as VER prints it, such as 10.0.22631.4317."""

    def entry(self, path: str) -> Entry | None:
        """The file or folder at path, or None. Wildcards are not meant here."""

    def names(self, directory: str) -> list[Entry]:
        """What a folder holds, sorted by name. Raises MachineError."""

    def read(self, path: str) -> bytes:
        """The content of a file. Raises MachineError."""

    def open(self, path: str, mode: str) -> OpenFile:
        """Open for "read", "write" (truncates) or "append". Raises MachineError."""

    def delete(self, path: str) -> None:
        """Remove a file. Raises MachineError."""

    def move(self, path: str, destination: str, replace: bool) -> None:
        """Rename a file or folder. Raises MachineError."""

    def make_directory(self, path: str) -> None:
        """Create a folder and its missing parents. Raises MachineError (183 when it is there)."""

    def remove_directory(self, path: str, recurse: bool) -> None:
        """Remove a folder; a junction is removed, not followed. Raises MachineError."""

    def run(self, launch: Launch) -> int:
        """Run a program to its end and return its exit code (signed). Raises MachineError when it cannot
        start, Interrupted when this process was ended meanwhile."""

    def start(self, launch: Launch) -> None:
        """Start a program and do not wait for it. Raises MachineError when it cannot start."""

    def sleep(self, seconds: float) -> None:
        """Wait. Raises Interrupted when this process is ended meanwhile."""

    def check(self) -> None:
        """Raises Interrupted when this process was ended; called between commands."""
