"""Answers of a box that are still good: what was read in one request is not asked for again."""

from __future__ import annotations

import time
from collections.abc import Callable

from winfleet.call import Call
from winfleet.wire.exchange import Answer

MAX_AGE_S = 120.0
"""Longest use of an answer: a user may think about a plan for minutes while the box goes on."""


class AnswerCache:
    """Good answers by call. Whoever changes the box, sends a file or reconnects must call `clear`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: dict[str, tuple[float, Answer]] = {}

    def put(self, call: Call, answer: Answer, *, ahead: bool) -> None:
        """Keep the answer of a reading call; ahead: it was fetched before somebody asked."""
        if call.reads and answer.ok and not call.payload and (ahead or not call.volatile):
            self._answers[call.key()] = (self._clock(), answer)

    def take(self, call: Call) -> Answer | None:
        """The kept answer, or None. That of a volatile call is given out once, else a wait would never
        end."""
        if not self.holds(call):
            return None
        key = call.key()
        answer = self._answers[key][1]
        if call.volatile:
            del self._answers[key]
        return answer

    def holds(self, call: Call) -> bool:
        """True when `take` would find an answer."""
        kept = self._answers.get(call.key())
        return kept is not None and not call.payload and self._clock() - kept[0] <= MAX_AGE_S

    def clear(self) -> None:
        """Forget everything."""
        self._answers.clear()
