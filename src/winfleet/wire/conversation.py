"""The conversation with the loop in one shell: start it, send requests, collect their answers.

The grammar is docs/box-commands.md section 1; the rules for doubt and loss are
docs/facts/winrm.md#lost-connections and docs/facts/winrm.md#bootstrap-line.
A request carries a number that the loop never runs twice, so after any doubt the same request is sent again.
A conversation ends with its shell; winfleet.wire.session makes the next one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from winfleet.call import Call
from winfleet.wire.errors import (
    ConnectionLost,
    DeadlineExceeded,
    InputDoubtful,
    InputRefused,
    ShellLost,
    StartFailed,
    Unreachable,
    WireError,
    one_line,
)
from winfleet.wire.exchange import Answer, Exchange
from winfleet.wire.frames import MARK, Frame, FrameReader, Request, encode_request
from winfleet.wire.shells import Output, Shell

COMMAND_LINE = "powershell.exe -NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command -"
RECONNECT_PAUSES_S = (0.0, 1.0, 3.0)
"""Pauses before each attempt to go on after a lost connection; after the last one the shell counts as gone.
"""
DOUBT_GRACE_S = 10.0
"""How long a doubtful Send may take to show its effect before the request is sent again."""
MAX_RESENDS = 5
STDERR_TAIL_BYTES = 4096
DRAIN_S = 5.0

FrameListener = Callable[[Frame], None]
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x1f\x7f]")


class Program(Protocol):
    """What runs on the box; winfleet.wire.program builds it."""

    @property
    def sha256(self) -> str:
        """Hash of the program text, hex."""

    @property
    def packed(self) -> bytes:
        """base64(gzip(text)) on one line."""


@dataclass(frozen=True)
class Surroundings:
    """What a conversation needs from outside: where to report, the time, a pause. Replaced in tests."""

    log: Callable[[str], None] = lambda text: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class RequestFailed(Exception):
    """A request got no answer. Attributes: reason, delivered (the box may have run it)."""

    def __init__(self, reason: WireError, delivered: bool) -> None:
        super().__init__(str(reason))
        self.reason, self.delivered = reason, delivered


class Conversation:
    """The loop in one open shell. Not for several threads: its session holds the lock."""

    def __init__(self, shell: Shell, nonce: str, surroundings: Surroundings) -> None:
        self.shell = shell
        self._around = surroundings
        self._reader = FrameReader(nonce)
        self._seq = 0
        self._losses = 0
        self._stderr = bytearray()
        self._damaged = False
        self._broken_line = False

    def start(
        self, program: Program, bootstrap: Callable[[str, str], str], timeout_s: float
    ) -> dict[str, Any]:
        """Start PowerShell and load the program; return the READY data (Get-BoxSession).

        Raises: StartFailed, and the WireError kinds of opening a shell.
        """
        self.shell.open(COMMAND_LINE)
        deadline = self._around.clock() + timeout_s
        line = bootstrap(self._reader.nonce, program.sha256).rstrip("\n")
        # The empty line ends the statement for the host's reader, which collects lines until one
        # (docs/facts/winrm.md#powershell-on-standard-input).
        self.shell.write(line.encode("ascii") + b"\n\n")
        self._await("loaded", deadline, timeout_s)
        # Only now: the host's reader and the loader's reader have separate buffers
        # (docs/facts/winrm.md#bootstrap-line).
        self.shell.write(program.packed.strip() + b"\n")
        return self._await("ready", deadline, timeout_s).data

    def ask(
        self,
        calls: Sequence[Call],
        mode: Literal["read", "change"],
        timeout_s: float,
        on_frame: FrameListener | None = None,
    ) -> list[Answer]:
        """Send calls in one request and return their answers. Raises RequestFailed."""
        request = self._request(calls, mode, reply=True, timeout_s=timeout_s)
        pending = _Pending(request, Exchange(request.seq, [call.command for call in calls]))
        self._stderr.clear()
        try:
            self._converse(pending, timeout_s, on_frame)
        except WireError as error:
            raise RequestFailed(error, pending.touched) from error
        return pending.exchange.answers()

    def tell(self, call: Call, timeout_s: float) -> None:
        """Send a changing call that gets no answer. Raises RequestFailed."""
        request = self._request([call], "change", reply=False, timeout_s=timeout_s)
        pending = _Pending(request, Exchange(request.seq, [call.command]))
        try:
            for _ in range(MAX_RESENDS):
                self._deliver(pending)
                if pending.arrived:
                    return
                self._broken_line = True
            raise ShellLost(
                self.shell.endpoint,
                f"the box did not take {call.command} in {MAX_RESENDS} attempts; it may be stuck",
            )
        except WireError as error:
            raise RequestFailed(error, pending.touched) from error

    def _request(self, calls: Sequence[Call], mode: Any, *, reply: bool, timeout_s: float) -> Request:
        if len(calls) > 1 and any(call.payload for call in calls):
            raise ValueError("only a request with one call may carry a payload")
        self._seq += 1
        payload = calls[0].payload if len(calls) == 1 else b""
        plain = [call.request() for call in calls]
        return Request(self._reader.nonce, self._seq, mode, plain, payload, reply, timeout_s)

    def _converse(self, pending: _Pending, timeout_s: float, on_frame: FrameListener | None) -> None:
        deadline = self._around.clock() + timeout_s
        exchange = pending.exchange
        self._deliver(pending)
        sent_at = self._around.clock()
        while True:
            left = deadline - self._around.clock()
            if left <= 0:
                raise self._too_late(exchange, timeout_s)
            again = ""
            try:
                output = self.shell.read(left if pending.arrived else min(left, DOUBT_GRACE_S))
            except (ConnectionLost, Unreachable) as lost:
                self._recover(lost)
                if not getattr(lost, "delivered", False):
                    continue
                again = lost.found  # The lost reply may have held the answer.
            else:
                self._losses = 0
                for frame in self._frames(output):
                    pending.arrived = pending.arrived or frame.seq == exchange.seq
                    for ready in exchange.take(frame):
                        if on_frame is not None and ready.kind in ("output", "progress"):
                            on_frame(ready)
                if exchange.complete:
                    return
                if output.exit_code is not None:
                    raise self._ended(output.exit_code)
                if self._damaged or exchange.lacks_frames:
                    again = "a frame is damaged or missing"
                elif not pending.arrived and self._around.clock() - sent_at >= DOUBT_GRACE_S:
                    again = "it may not have arrived"
            if again:
                pending.repetitions += 1
                if pending.repetitions > MAX_RESENDS:
                    raise ShellLost(
                        self.shell.endpoint, f"no whole answer after {MAX_RESENDS} repetitions: {again}"
                    )
                self._around.log(f"{self.shell.endpoint}: request {exchange.seq} is sent again: {again}")
                self._damaged, self._broken_line = False, True
                self._deliver(pending)
                sent_at = self._around.clock()

    def _deliver(self, pending: _Pending) -> None:
        """Write the request line, over as many connections as it takes."""
        while True:
            # A line that broke off must not swallow the next one: an empty line is nothing to the loop.
            line = (b"\n" if self._broken_line else b"") + pending.line()
            try:
                self.shell.write(line)
            except InputDoubtful as doubt:
                pending.touched = True
                self._around.log(str(doubt))
                return
            except InputRefused as refused:
                raise self._ended(None, refused.found) from refused
            except (ConnectionLost, Unreachable) as lost:
                pending.touched = pending.touched or getattr(lost, "delivered", False)
                self._broken_line = True
                self._recover(lost)
            else:
                pending.touched = pending.arrived = True
                self._broken_line = False
                self._losses = 0
                return

    def _recover(self, lost: WireError) -> None:
        """Get ready for another attempt over a new connection; raises ShellLost when there were enough."""
        if self._losses >= len(RECONNECT_PAUSES_S):
            raise ShellLost(lost.endpoint, f"{lost.found}; {self._losses} attempts to go on failed") from lost
        self._around.log(f"{lost}; going on over a new connection")
        self.shell.reset()
        self._around.sleep(RECONNECT_PAUSES_S[self._losses])
        self._losses += 1

    def _frames(self, output: Output) -> list[Frame]:
        if output.stderr:
            self._around.log(f"{self.shell.endpoint}: on stderr: {output.stderr[:200]!r}")
        self._stderr += output.stderr
        frames = self._reader.feed(output.stdout)
        for line in self._reader.take_noise():
            if not self._seq:
                # A PowerShell that does not get as far as the loop tells why on whatever stream it may use.
                self._stderr += line + b"\n"
            self._damaged = self._damaged or line.startswith(MARK)
            self._around.log(f"{self.shell.endpoint}: not part of the conversation: {line[:200]!r}")
        del self._stderr[:-STDERR_TAIL_BYTES]
        return frames

    def _await(self, kind: str, deadline: float, timeout_s: float) -> Frame:
        while (left := deadline - self._around.clock()) > 0:
            output = self.shell.read(left)
            for frame in self._frames(output):
                if frame.kind == kind:
                    return frame
                if frame.kind == "result":
                    detail = one_line(str(frame.data.get("answers", frame.data)))
                    raise StartFailed(self.shell.endpoint, f"the box refused the program: {detail}")
            if output.exit_code is not None:
                raise StartFailed(
                    self.shell.endpoint,
                    f"PowerShell ended with exit code {output.exit_code} before it was {kind}{self._said()}",
                    "PowerShell 5.1 in FullLanguage mode, allowed over WinRM",
                    "read that message; look at AppLocker and WDAC policies and at the user's rights",
                )
        raise StartFailed(
            self.shell.endpoint,
            f"PowerShell was not {kind} within {timeout_s:.0f} s{self._said()}",
            "an answer of the loop",
            "look for a policy that limits PowerShell or a starved box; or raise winrm_start_timeout_s",
        )

    def _ended(self, exit_code: int | None, found: str = "") -> ShellLost:
        """The process is gone: read what it still said and tell how it ended."""
        deadline = self._around.clock() + DRAIN_S
        while exit_code is None and self._around.clock() < deadline:
            try:
                output = self.shell.read(1.0)
            except WireError:
                break
            self._frames(output)
            exit_code = output.exit_code
        ending = f"PowerShell ended with exit code {exit_code}" if exit_code is not None else found
        hint = "raise MaxMemoryPerShellMB or run it as a job" if b"OutOfMemory" in self._stderr else ""
        return ShellLost(self.shell.endpoint, f"{ending or 'PowerShell ended'}{self._said()}", "", hint)

    def _too_late(self, exchange: Exchange, timeout_s: float) -> DeadlineExceeded:
        names = ", ".join(dict.fromkeys(exchange.commands))
        return DeadlineExceeded(
            self.shell.endpoint, f"{names} did not end within {timeout_s:.0f} s and was stopped{self._said()}"
        )

    def _said(self) -> str:
        text = one_line(_CONTROL.sub(" ", bytes(self._stderr).decode("utf-8", "replace")))
        return f"; it said: {text[-300:]}" if text else ""


@dataclass
class _Pending:
    """A request under way: touched (the box may have it), arrived (it surely has)."""

    request: Request
    exchange: Exchange
    touched: bool = False
    arrived: bool = False
    repetitions: int = 0

    def line(self) -> bytes:
        """The line to send. What surely arrived is known to the box by its number, so calls and payload stay
        home.
        """
        return encode_request(replace(self.request, calls=[], payload=b"") if self.arrived else self.request)
