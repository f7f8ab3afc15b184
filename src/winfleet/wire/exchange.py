"""One request and the frames that answer it: pure, no I/O.

Frames may come twice (a request that was sent again is answered again) or be missing (a reply lost with its
connection). An Exchange puts them in order, hands each on once, and knows what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from winfleet.wire.frames import Frame


@dataclass(frozen=True)
class Answer:
    """What a box answered to one call.

    Attributes: ok, value (JSON, when ok), error (JSON object as in docs/box-commands.md section 1, when not),
    payload (raw bytes beside the value).
    """

    ok: bool
    value: Any = None
    error: dict[str, Any] | None = None
    payload: bytes = b""

    @staticmethod
    def failed(kind: str, message: str, command: str) -> Answer:
        """An answer that did not come from the box."""
        error = {"type": kind, "id": kind, "category": "NotSpecified", "message": message, "hresult": None}
        return Answer(False, error={**error, "command": command})

    @property
    def error_type(self) -> str:
        """The error's type, empty when there is none."""
        return str((self.error or {}).get("type", ""))


@dataclass
class Exchange:
    """The frames of request number seq, with as many calls as commands names.

    Example::

        for frame in exchange.take(frame_from_the_wire): show(frame)
        if exchange.complete: return exchange.answers()
    """

    seq: int
    commands: Sequence[str]
    _frames: dict[int, Frame] = field(default_factory=dict)
    _handed_on: int = 0
    _last: int | None = None

    def take(self, frame: Frame) -> list[Frame]:
        """Add a frame; return those that are now next in order. Frames of other requests and doubles give
        nothing.
        """
        if frame.seq != self.seq or frame.index < self._handed_on or frame.index in self._frames:
            return []
        self._frames[frame.index] = frame
        if frame.kind == "result":
            self._last = frame.index
        ready = []
        while self._handed_on in self._frames:
            ready.append(self._frames[self._handed_on])
            if self._handed_on != self._last:
                del self._frames[self._handed_on]
            self._handed_on += 1
        return ready

    @property
    def complete(self) -> bool:
        """True when the result and all frames before it have been handed on."""
        return self._last is not None and self._handed_on > self._last

    @property
    def lacks_frames(self) -> bool:
        """True when the result is here and a frame before it is not."""
        return self._last is not None and not self.complete

    def answers(self) -> list[Answer]:
        """One answer per call; of type BadAnswer when the result does not hold that many."""
        assert self._last is not None
        result = self._frames[self._last]
        raw = result.data.get("answers")
        if not isinstance(raw, list) or len(raw) != len(self.commands):
            count = len(raw) if isinstance(raw, list) else "no"
            message = f"the box sent {count} answers to {len(self.commands)} calls"
            return [Answer.failed("BadAnswer", message, command) for command in self.commands]
        payload = result.payload if len(raw) == 1 else b""
        return [
            self._answer(item, command, payload) for item, command in zip(raw, self.commands, strict=True)
        ]

    @staticmethod
    def _answer(item: Any, command: str, payload: bytes) -> Answer:
        if isinstance(item, dict) and item.get("ok") is True:
            return Answer(True, item.get("value"), None, payload)
        error = item.get("error") if isinstance(item, dict) else None
        if not isinstance(error, dict):
            return Answer.failed(
                "BadAnswer", f"the box sent an answer of an unknown shape: {item!r:.120}", command
            )
        return Answer(False, None, error, payload)
