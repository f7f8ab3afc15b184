"""Standard handles of a process of the python engine: an input pipe, an output that one reader drains, and
files."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import ClassVar

from simbox.engines.engine import Chunk, StreamName
from simbox.engines.python import handles
from simbox.engines.python.handles import Access, Handles
from simbox.errors import WindowsError

CAPACITY_BYTES = 64 << 10
"""How much a writer may be ahead of the reader; a Windows anonymous pipe holds a few KiB, OpenSSH's more."""


class InputPipe:
    """A process's stdin: bytes in from one thread, out to another."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._data = bytearray()
        self._ended = False
        self._broken = False

    def write(self, data: bytes, end: bool = False) -> None:
        """Add bytes, waiting for the reader to take them; `end` closes. Raises BrokenPipeError."""
        with self._changed:
            if self._ended or self._broken:
                raise BrokenPipeError("stdin is closed")
            view = memoryview(data)
            while view:
                self._changed.wait_for(lambda: self._broken or len(self._data) < CAPACITY_BYTES)
                if self._broken:
                    raise BrokenPipeError("the process has ended")
                room = CAPACITY_BYTES - len(self._data)
                self._data += view[:room]
                view = view[room:]
                self._changed.notify_all()
            if end:
                self._ended = True
                self._changed.notify_all()

    def break_off(self) -> None:
        """The process has ended: readers see the end, writers fail."""
        with self._changed:
            self._broken = True
            self._changed.notify_all()

    def read(self, size: int = -1, /) -> bytes:
        """Up to size bytes, at least one unless at the end; everything until the end when size is
        negative."""
        with self._changed:
            if size < 0:
                parts = []
                while piece := self._take(CAPACITY_BYTES):
                    parts.append(piece)
                return b"".join(parts)
            return self._take(size) if size else b""

    def readline(self) -> bytes:
        """One line with its line feed; what is left at the end; empty at the end."""
        line = bytearray()
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._data or self._ended or self._broken)
                end = self._data.find(b"\n")
                if self._broken or not self._data:
                    return bytes(line)
                count = len(self._data) if end < 0 else end + 1
                line += self._data[:count]
                del self._data[:count]
                self._changed.notify_all()
                if end >= 0:
                    return bytes(line)

    def _take(self, size: int) -> bytes:
        self._changed.wait_for(lambda: self._data or self._ended or self._broken)
        if self._broken:
            return b""
        piece = bytes(self._data[:size])
        del self._data[:size]
        self._changed.notify_all()
        return piece


class OutputPipe:
    """stdout and stderr of a process: written by its threads, drained by one reader."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._chunks: deque[Chunk] = deque()
        self._closed = False

    def write(self, stream: StreamName, data: bytes) -> None:
        """Add bytes; nothing is kept once closed."""
        if data:
            with self._changed:
                if not self._closed:
                    self._chunks.append((stream, bytes(data)))
                    self._changed.notify_all()

    def close(self) -> None:
        """No more output; the reader stops waiting."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def read(self, timeout_s: float) -> list[Chunk]:
        """What is there, waiting at most timeout_s for the first of it; empty on timeout or at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._chunks or self._closed, timeout_s)
            taken = list(self._chunks)
            self._chunks.clear()
            return taken


class OutputHandle:
    """One stream of an OutputPipe, as a Sink."""

    def __init__(self, pipe: OutputPipe, stream: StreamName) -> None:
        self._pipe = pipe
        self._stream = stream

    def write(self, data: bytes, /) -> int:
        self._pipe.write(self._stream, data)
        return len(data)


class HostFile:
    """A file opened by a redirection. Counts its owners (the shell, its children), so that it stays open and
    locked until the last of them is gone."""

    _SHARES: ClassVar[dict[str, tuple[frozenset[Access], frozenset[Access]]]] = {
        # cmd.exe opens a redirection for writing so that others may only read
        "write": (frozenset({"write"}), handles.READ),
        "append": (frozenset({"write"}), handles.READ),
        # a log that others follow: append, others may read and write
        "log": (frozenset({"write"}), handles.READ_WRITE),
        "read": (handles.READ, handles.EVERYTHING),
    }

    def __init__(self, table: Handles, host: Path, mode: str) -> None:
        """Raises WindowsError for a sharing violation, OSError otherwise."""
        access, share = self._SHARES[mode]
        handle = table.open(host, access, share)
        try:
            self._file = host.open(
                {"write": "wb", "append": "ab", "log": "ab", "read": "rb"}[mode], buffering=0
            )
        except OSError:
            table.close(handle)
            raise
        self._table, self._handle = table, handle
        self._owners = 1
        self._lock = threading.Lock()

    def retain(self) -> None:
        """A child process inherits the handle."""
        with self._lock:
            self._owners += 1

    def close(self) -> None:
        """One owner is gone."""
        with self._lock:
            self._owners -= 1
            if self._owners == 0:
                self._file.close()
                self._table.close(self._handle)

    def write(self, data: bytes, /) -> int:
        with self._lock:
            if self._owners <= 0:
                raise WindowsError("System.IO.IOException", "The handle is invalid.", 0x80070006)
            self._file.write(data)
        return len(data)

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(size) or b""

    def readline(self) -> bytes:
        line: bytes = self._file.readline()
        return line
