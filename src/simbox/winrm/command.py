"""One command of a shell: output that waits to be fetched, input that waits to be taken."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from simbox.engines.engine import Chunk, Process
from simbox.winrm.refusals import ABORTED, BROKEN_PIPE, BUSY, OPERATION_TIMED_OUT, refusal

# The pump stops reading when this much output waits, so a process that writes faster than its client
# fetches is held up by its pipe, as on Windows.
_BUFFER_BYTES = 1024 * 1024
_PUMP_WAIT_S = 3600.0


class ClientGone(Exception):
    """The client closed its connection while its request waited; no output was taken."""


@dataclass(frozen=True)
class Output:
    """What one Receive fetches; exit_code is not None when the command is done and nothing is left."""

    chunks: list[Chunk]
    exit_code: int | None


@dataclass
class _Input:
    """Data on its way to the process."""

    data: bytes
    end: bool
    broken: bool = False


class Command:
    """A running command and its buffers.

    Attributes: command_id, last_reply (MessageID and reply of the last Receive, when the service keeps it).

    Args:
        command_id: as given to the client.
        process: what the engine started; `terminate` of this object ends it.
        shape: turns a piece of output into the pieces to be delivered.
    """

    def __init__(self, command_id: str, process: Process, shape: Callable[[Chunk], list[Chunk]]) -> None:
        self.command_id = command_id
        self.last_reply: tuple[str, bytes] | None = None
        self._process = process
        self._shape = shape
        self._changed = threading.Condition()
        self._waiting: deque[Chunk] = deque()
        self._waiting_bytes = 0
        self._exit_code: int | None = None
        self._aborted = False
        self._input: _Input | None = None
        self._input_broken = False
        self._writer: threading.Thread | None = None
        self._pump = threading.Thread(target=self._pump_output, name=f"output-{command_id}", daemon=True)
        self._pump.start()

    @property
    def running(self) -> bool:
        """Whether the process has not ended or output is still coming."""
        return self._exit_code is None

    def receive(self, timeout_s: float, limit_bytes: int, gone: Callable[[], bool]) -> Output:
        """Wait for output or the end, at most timeout_s seconds, and take up to limit_bytes of it.

        gone: asked just before output is taken; True leaves it for another request.

        Raises Refusal (timed out; aborted) or ClientGone.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not self._waiting and self._exit_code is None:
                remaining = deadline - time.monotonic()
                if self._aborted:
                    raise refusal(ABORTED)
                if remaining <= 0:
                    raise refusal(OPERATION_TIMED_OUT)
                self._changed.wait(remaining)
            if self._aborted:
                raise refusal(ABORTED)
            if gone():
                raise ClientGone
            chunks = self._take(limit_bytes)
            return Output(chunks, None if self._waiting else self._exit_code)

    def send(self, data: bytes, end: bool, timeout_s: float) -> None:
        """Write to the process and wait until it is in the pipe.

        Raises Refusal: broken pipe; timed out (the data stays on its way); busy (an earlier timed-out
        write still is); aborted.
        """
        with self._changed:
            if not self._changed.wait_for(self._input_free, timeout_s):
                raise refusal(BUSY)
            if self._aborted:
                raise refusal(ABORTED)
            if self._input_broken or self._exit_code is not None:
                raise refusal(BROKEN_PIPE)
            if self._writer is None:
                name = f"input-{self.command_id}"
                self._writer = threading.Thread(target=self._pump_input, name=name, daemon=True)
                self._writer.start()
            sent = self._input = _Input(data, end)
            self._changed.notify_all()
            if not self._changed.wait_for(self._input_free, timeout_s):
                raise refusal(OPERATION_TIMED_OUT)
            if sent.broken:
                raise refusal(BROKEN_PIPE)
            if self._input is sent:
                raise refusal(ABORTED)

    def signal(self, ctrl_c: bool) -> None:
        """Deliver Ctrl+C or Ctrl+Break."""
        self._process.signal(ctrl_c)

    def terminate(self, timeout_s: float = 5.0) -> None:
        """Kill the process tree; waiting requests are answered as aborted. Waits for the buffers' threads."""
        with self._changed:
            self._aborted = True
            self._changed.notify_all()
        self._process.terminate()
        for thread in (self._pump, self._writer):
            if thread is not None:
                thread.join(timeout_s)

    def kill_process(self, timeout_s: float = 5.0) -> None:
        """Kill the process as if it had ended by itself: its output and exit code are still to be fetched."""
        self._process.terminate()
        self._pump.join(timeout_s)

    def _take(self, limit_bytes: int) -> list[Chunk]:
        taken: list[Chunk] = []
        room = limit_bytes
        while self._waiting and room > 0:
            name, data = self._waiting.popleft()
            if len(data) > room:
                self._waiting.appendleft((name, data[room:]))
                data = data[:room]
            taken.append((name, data))
            # Each piece costs about this much markup in the envelope besides its content.
            room -= len(data) + 96
            self._waiting_bytes -= len(data)
        self._changed.notify_all()
        return taken

    def _input_free(self) -> bool:
        return self._input is None or self._aborted

    def _pump_output(self) -> None:
        while not self._aborted:
            chunks = self._process.read(_PUMP_WAIT_S)
            ended = self._process.exit_code is not None
            while ended and (rest := self._process.read(0)):
                chunks += rest
            with self._changed:
                for chunk in chunks:
                    pieces = self._shape(chunk)
                    self._waiting.extend(pieces)
                    self._waiting_bytes += sum(len(data) for _, data in pieces)
                if ended:
                    self._exit_code = self._process.exit_code
                self._changed.notify_all()
                if ended:
                    return
                self._changed.wait_for(lambda: self._waiting_bytes < _BUFFER_BYTES or self._aborted)

    def _pump_input(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._input is not None or self._aborted)
                if self._aborted or self._input is None:
                    return
                taken = self._input
            broken = True
            with contextlib.suppress(OSError):
                self._process.write_stdin(taken.data, taken.end)
                broken = False
            with self._changed:
                taken.broken = broken
                self._input = None
                self._input_broken = self._input_broken or broken
                self._changed.notify_all()


class PrintedProcess:
    """A process that has ended already, leaving a text on stderr; what cmd.exe does with a line it
    refuses.
    """

    def __init__(self, message: bytes, exit_code: int) -> None:
        self._chunks: list[Chunk] = [("stderr", message)]
        self.exit_code: int | None = exit_code

    def write_stdin(self, data: bytes, end: bool) -> None:
        """Nobody reads."""
        raise BrokenPipeError("the process has ended")

    def read(self, timeout_s: float) -> list[Chunk]:
        """The text, once."""
        chunks, self._chunks = self._chunks, []
        return chunks

    def signal(self, ctrl_c: bool) -> None:
        """Nothing is left to signal."""

    def terminate(self) -> None:
        """Nothing is left to kill."""
