"""A `simbox.engines.engine.Process` over a real process of this machine, with pipes and a process group as its
job object.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from simbox.engines.engine import Chunk, StreamName

_PIECE_BYTES = 65536
_CONTROL_C_EXIT = 0xC000013A
_TERMINATED_EXIT = 1


class HostProcess:
    """Start a process of this machine and speak to it through pipes.

    The process leads a group of its own, which `terminate` kills whole. It is not reaped before that, so
    the number of its group cannot pass to a stranger meanwhile: always end with `terminate`.

    Args:
        arguments: program and arguments.
        environment: the complete environment.
        directory: working directory on this machine.

    Raises FileNotFoundError or PermissionError as `subprocess` does.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=None if environment is None else dict(environment),
            cwd=directory,
            start_new_session=True,
        )
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        self._stdin = stdin
        self._outputs = {stdout.fileno(): stdout, stderr.fileno(): stderr}
        self._selector = selectors.DefaultSelector()
        # A child that fled the group may hold the pipes open for ever: terminate wakes the reader by
        # this pipe.
        self._wake_reader, self._wake_writer = os.pipe()
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        for descriptor, name in ((stdout.fileno(), "stdout"), (stderr.fileno(), "stderr")):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, name)
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._ending = threading.Lock()
        self._terminated = False
        self._interrupted = False
        self._exit_code: int | None = None

    @property
    def pid(self) -> int:
        """Its process id on this machine."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """See `simbox.engines.engine.Process`; a process ended by a signal has 1, by Ctrl+C 0xC000013A."""
        return self._exit_code

    def write_stdin(self, data: bytes, end: bool) -> None:
        """See `simbox.engines.engine.Process`."""
        with self._writing:
            try:
                view = memoryview(data)
                while view:
                    view = view[self._stdin.write(view) or 0 :]
            except ValueError as error:
                raise BrokenPipeError("stdin is closed") from error
            finally:
                if end or self._terminated:
                    self._stdin.close()

    def read(self, timeout_s: float) -> list[Chunk]:
        """See `simbox.engines.engine.Process`."""
        with self._reading:
            deadline = time.monotonic() + timeout_s
            while self._outputs:
                found = self._read_ready(max(0.0, deadline - time.monotonic()))
                if found or time.monotonic() >= deadline:
                    return found
            self._note_exit(deadline)
            return []

    def signal(self, ctrl_c: bool) -> None:
        """See `simbox.engines.engine.Process`: SIGINT or SIGQUIT to the group."""
        self._interrupted = True
        self._signal_group(signal.SIGINT if ctrl_c else signal.SIGQUIT)

    def terminate(self) -> None:
        """See `simbox.engines.engine.Process`."""
        with self._ending:
            if self._terminated:
                return
            self._terminated = True
            self._signal_group(signal.SIGKILL)
            self._process.wait()
            os.close(self._wake_writer)
        if self._writing.acquire(blocking=False):
            self._stdin.close()
            self._writing.release()

    def _read_ready(self, timeout_s: float) -> list[Chunk]:
        found: list[Chunk] = []
        ready = self._selector.select(timeout_s)
        for key, _ in ready:
            if key.data is not None and key.fd in self._outputs:
                found += self._read_stream(key.fd, key.data)
        if not found and any(key.data is None for key, _ in ready):
            for descriptor in list(self._outputs):
                self._drop(descriptor)
        return found

    def _read_stream(self, descriptor: int, name: StreamName) -> list[Chunk]:
        try:
            data = os.read(descriptor, _PIECE_BYTES)
        except BlockingIOError:
            return []
        if data:
            return [(name, data)]
        self._drop(descriptor)
        return []

    def _drop(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        self._outputs.pop(descriptor).close()
        if not self._outputs:
            self._selector.close()
            os.close(self._wake_reader)

    def _note_exit(self, deadline: float) -> None:
        """Learn the exit code, at the latest by the deadline, without reaping the process."""
        pause_s = 0.001
        while self._exit_code is None:
            with self._ending:
                status = self._process.returncode
                if status is None:
                    status = _exit_status(self._process.pid)
            if status is not None:
                self._exit_code = self._windows_code(status)
            elif time.monotonic() >= deadline:
                return
            else:
                # Its streams are at their end: all but a few processes end in the same moment.
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, 0.05)

    def _windows_code(self, status: int) -> int:
        if status >= 0:
            return status
        return _CONTROL_C_EXIT if self._interrupted else _TERMINATED_EXIT

    def _signal_group(self, number: int) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


def _exit_status(pid: int) -> int | None:
    """Exit status of a child that stays unreaped, negative for a signal; None while it runs."""
    result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if result is None:
        return None
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status
