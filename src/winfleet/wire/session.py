"""One persistent PowerShell on one box, across everything that the network does in between.

A session makes a shell when it needs one, drops it when it is unusable, and decides what may be asked a
second time: reads always, changes only when the box certainly did not get them. What cannot be settled ends
as OutcomeUnknown, never as a silent second run.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from winfleet.call import Call
from winfleet.wire.cache import AnswerCache
from winfleet.wire.conversation import (
    RECONNECT_PAUSES_S,
    Conversation,
    FrameListener,
    Program,
    RequestFailed,
    Surroundings,
)
from winfleet.wire.errors import (
    ConnectionLost,
    DeadlineExceeded,
    OutcomeUnknown,
    ShellLost,
    Unreachable,
    WireError,
)
from winfleet.wire.exchange import Answer
from winfleet.wire.shells import Shell


@dataclass(frozen=True)
class SessionSettings:
    """How a session behaves.

    Attributes: start_timeout_s (from the open shell to READY), timeout_s (one request, when its calls name
    none), max_age_s (a shell older than this is replaced between two requests: old hosts end shells after 8
    h), per_command (a shell and a PowerShell for each request).
    """

    start_timeout_s: float = 90.0
    timeout_s: float = 600.0
    max_age_s: float = 7 * 3600.0
    per_command: bool = False


class Session:
    """The connection to one box. Calls from several threads or greenlets take turns.

    Attributes: read_only (changing calls are refused, here and by the box), ready (what the box said about
    itself).

    Example::

        session = Session(lambda: WinRSShell(settings), build_program(), bootstrap_line)
        session.open()["PSVersion"]
        session.ask(Call("Get-BoxSystem")).value
        session.close()
    """

    def __init__(
        self,
        new_shell: Callable[[], Shell],
        program: Program,
        bootstrap: Callable[[str, str], str],
        settings: SessionSettings | None = None,
        surroundings: Surroundings | None = None,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.read_only = True
        self.ready: dict[str, Any] = {}
        self._settings = settings or SessionSettings()
        self._around = surroundings or Surroundings()
        self._new_shell, self._program, self._bootstrap, self._warn = new_shell, program, bootstrap, warn
        self._cache = AnswerCache(self._around.clock)
        self._lock = threading.RLock()
        self._talk: Conversation | None = None
        self._opened_at = 0.0
        self._interrupted = False
        self._held = 0

    def open(self) -> dict[str, Any]:
        """Start PowerShell on the box unless it runs; return what it says about itself (Get-BoxSession).

        Raises: WireError kinds of connecting, StartFailed.
        """
        with self._lock:
            self._conversation()
            self._end_if_per_command()
            return self.ready

    def close(self) -> None:
        """End PowerShell and remove the shell. Never raises a WireError; harmless when repeated."""
        with self._lock:
            self._drop()

    def forget(self) -> None:
        """Drop all cached answers."""
        with self._lock:
            self._cache.clear()

    def run(
        self, calls: Sequence[Call], on_frame: FrameListener | None = None, timeout_s: float | None = None
    ) -> list[Answer]:
        """Send calls in one request; return one answer per call, in order.

        Args: on_frame is handed the output and progress frames, each once and in order; timeout_s is for all
        calls together (None: the longest of the calls' own and the session's).

        Raises: DeadlineExceeded, OutcomeUnknown (a change whose fate is open), and the WireError kinds of
        connecting.
        """
        with self._lock:
            reads = all(call.reads for call in calls)
            if self.read_only and not reads:
                return [_refused_in_read_only(call) for call in calls]
            if not reads:
                self._cache.clear()
            limit_s = timeout_s or max(call.timeout_s or self._settings.timeout_s for call in calls)
            last_attempt = False
            while True:
                talk = self._conversation()
                try:
                    with self._cleaning_up(talk):
                        answers = talk.ask(calls, "read" if reads else "change", limit_s, on_frame)
                        _require_kept_answers(talk, answers, reads)
                except RequestFailed as failed:
                    again = (reads or not failed.delivered) and not isinstance(
                        failed.reason, DeadlineExceeded
                    )
                    if again and not last_attempt:
                        self._around.log(f"{failed.reason}; asking again in a new shell")
                        last_attempt = True
                        continue
                    raise self._final(failed, calls, reads) from failed
                self._end_if_per_command()
                return answers

    def ask(self, call: Call) -> Answer:
        """The answer to one reading call, from the cache when it is there. Raises as `run`."""
        with self._lock:
            kept = self._cache.take(call)
            if kept is not None:
                return kept
            answer = self.run([call])[0]
            self._cache.put(call, answer, ahead=False)
            return answer

    def prefetch(self, calls: Sequence[Call]) -> int:
        """Ask for all reading calls that are not in the cache, in one request; return how many. Raises as
        `run`.
        """
        with self._lock:
            wanted = {call.key(): call for call in calls if call.reads and not self._cache.holds(call)}
            if wanted:
                missing = list(wanted.values())
                for call, answer in zip(missing, self.run(missing), strict=True):
                    self._cache.put(call, answer, ahead=True)
            return len(wanted)

    def tell(self, call: Call) -> None:
        """Send a changing call without waiting for an answer: a part of an upload, whose end is checked by
        its hash.

        Raises: PermissionError in a read-only session, OutcomeUnknown and other WireError kinds.
        """
        with self._lock:
            if self.read_only:
                raise PermissionError((_refused_in_read_only(call).error or {})["message"])
            self._cache.clear()
            talk = self._conversation()
            try:
                with self._cleaning_up(talk):
                    talk.tell(call, call.timeout_s or self._settings.timeout_s)
            except RequestFailed as failed:
                raise self._final(failed, [call], False) from failed

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the turn, and with a shell per command the shell, until the end of the block."""
        with self._lock:
            self._held += 1
            try:
                yield
            finally:
                self._held -= 1
                self._end_if_per_command()

    @property
    def max_payload_bytes(self) -> int:
        """How many payload bytes of one call fit in one message to the box, beside 2 KB of line and
        parameters.
        """
        with self._lock:
            return max((self._conversation().shell.max_write_bytes - 2048) * 3 // 4, 4096)

    def _conversation(self) -> Conversation:
        """The running conversation, or a new one when there is none or it is no longer fit."""
        if self._talk is not None and self._interrupted:
            self._drop()
        too_old = self._around.clock() - self._opened_at > self._settings.max_age_s
        if self._talk is not None and too_old and not self._held:
            self._around.log(f"{self._talk.shell.endpoint}: the shell is replaced because of its age")
            self._drop()
        if self._talk is None:
            self._talk = self._started()
        return self._talk

    def _started(self) -> Conversation:
        """A new conversation, tried anew with pauses when the connection is lost on the way; Unreachable at
        the end."""
        give_up_at = self._around.clock() + self._settings.start_timeout_s
        for attempt, pause_s in enumerate((*RECONNECT_PAUSES_S, None), 1):
            try:
                return self._start()
            except ConnectionLost as lost:
                if pause_s is None or self._around.clock() + pause_s >= give_up_at:
                    raise Unreachable(
                        lost.endpoint,
                        f"{lost.found}; {attempt} attempts to start failed",
                        "a connection that lasts",
                        "look for what cuts it off (VPN, proxy, firewall); on the box: does the listener have a"
                        " certificate (winrm enumerate winrm/config/listener), is the port that of winrm_scheme?",
                    ) from lost
                self._around.log(f"{lost}; starting again in {pause_s:g} s")
                self._around.sleep(pause_s)
        raise AssertionError("unreachable")

    def _start(self) -> Conversation:
        self._cache.clear()
        self._interrupted = False
        talk = Conversation(self._new_shell(), secrets.token_hex(16), self._around)
        try:
            ready = talk.start(self._program, self._bootstrap, self._settings.start_timeout_s)
        except BaseException:
            talk.shell.close()
            raise
        self._opened_at = self._around.clock()
        before = self.ready.get("BootTimeUtc")
        if before and ready.get("BootTimeUtc") != before:
            self._warn(f"{talk.shell.endpoint}: the box was restarted at {ready.get('BootTimeUtc')}")
        self.ready = ready
        return talk

    def _drop(self) -> None:
        talk, self._talk = self._talk, None
        self._cache.clear()
        if talk is not None:
            talk.shell.close()

    def _end_if_per_command(self) -> None:
        if self._settings.per_command and not self._held and not self._interrupted:
            kept, self._cache = self._cache, AnswerCache(self._around.clock)
            self._drop()
            self._cache = kept

    @contextmanager
    def _cleaning_up(self, talk: Conversation) -> Iterator[None]:
        """No half-used shell stays behind, whatever goes wrong inside."""
        try:
            yield
        except RequestFailed as failed:
            if isinstance(failed.reason, DeadlineExceeded):
                talk.shell.cancel()
            self._drop()
            raise
        except BaseException:
            # Ctrl-C, or a gevent.Timeout of pyinfra: no network traffic here; the next use or `close` clears
            # up.
            self._interrupted = True
            raise

    @staticmethod
    def _final(failed: RequestFailed, calls: Sequence[Call], reads: bool) -> WireError:
        """The error that the caller sees."""
        reason = failed.reason
        if reads or not failed.delivered or isinstance(reason, DeadlineExceeded):
            return reason
        names = ", ".join(dict.fromkeys(call.command for call in calls))
        return OutcomeUnknown(
            reason.endpoint,
            f"{names} may or may not have been carried out: {reason.found}",
            "",
            "run again; what is already in place stays as it is",
        )


def _refused_in_read_only(call: Call) -> Answer:
    message = (
        f"{call.command} changes the box; while a run is planned (or with --dry) only reading is allowed"
    )
    return Answer.failed("ReadOnlyRefused", message, call.command)


def _require_kept_answers(talk: Conversation, answers: Sequence[Answer], reads: bool) -> None:
    """An answer that was lost and that the box no longer holds is a failed request."""
    if any(answer.error_type == "AnswerForgotten" for answer in answers):
        lost = ShellLost(talk.shell.endpoint, "the answer was lost on the way and the box no longer holds it")
        raise RequestFailed(lost, delivered=not reads)
