"""Faults that a box's WinRM service can be made to show, each taken from reports of real hosts.

A FaultPlan is a list of armed faults; the service asks it at each stage of a request. Tests and the
simulator's RPC change it while the service runs. Sources: docs/facts/winrm.md#reports.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from simbox.engines.engine import Chunk, StreamName

Stage = Literal["connection", "request", "reply", "output"]
Kind = Literal[
    "drop", "mute",
    "close_before", "unauthorized", "http_status", "fault", "service_restart", "kill_process", "delay",
    "close_after", "delay_reply", "replace_reply", "truncate", "cut", "connection_close", "silence",
    "noise", "fragment", "two_states",
]  # fmt: skip
_STAGES: dict[Kind, Stage] = {
    "drop": "connection",
    "mute": "connection",
    "close_before": "request",
    "unauthorized": "request",
    "http_status": "request",
    "fault": "request",
    "service_restart": "request",
    "kill_process": "request",
    "delay": "request",
    "close_after": "reply",
    "delay_reply": "reply",
    "replace_reply": "reply",
    "truncate": "reply",
    "cut": "reply",
    "connection_close": "reply",
    "silence": "reply",
    "noise": "output",
    "fragment": "output",
    "two_states": "output",
}


@dataclass(frozen=True)
class Fault:
    """One armed fault.

    Kinds by stage:
        connection: drop (close at once), mute (accept, then never read or answer).
        request, before anything is done: close_before (break the connection), unauthorized (401 and the
        session
            forgotten), http_status (answer `code` without a body), fault (SOAP fault `code`), service_restart
            (every shell is gone, then go on), kill_process (end the shell's commands, then go on), delay
            (wait `seconds`, then go on).
        reply, after it was done: close_after (break the connection instead of answering), delay_reply (wait
            `seconds`, then answer), replace_reply (SOAP fault `code` although it was done), truncate (half
            the body, with a Content-Length to match), cut (half the body, then break the connection),
            connection_close (`Connection: close` as stale proxies do), silence (never answer, keep the
            connection open).
        output of commands: noise (`data_base64` on `stream` before the next output), fragment (every piece
        cut into
            pieces of `size` bytes), two_states (Done comes with a Running state before it).

    Attributes:
        on: the action it waits for: Create, Command, Send, Receive, Signal, Delete, Get, or any.
        times: how often it happens; None: always.
        after: matching requests to let pass first.
        seconds, code, size, stream, data_base64: see the kinds.
    """

    kind: Kind
    on: str = "any"
    times: int | None = 1
    after: int = 0
    seconds: float = 0.0
    code: int = 0
    size: int = 1
    stream: StreamName = "stdout"
    data_base64: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"unknown fault {self.kind!r}; known: {', '.join(get_args(Kind))}")
        if self.size < 1:
            raise ValueError(f"size must be at least 1 byte, not {self.size}")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Fault:
        """A fault from JSON values. Raises ValueError for an unknown kind or field."""
        known = {item.name for item in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(f"unknown fields of a fault: {unknown}; known: {sorted(known)}")
        return cls(**values)


class _Armed:
    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.skip = fault.after
        self.left = fault.times


class FaultPlan:
    """The armed faults of one box. Safe to use from any thread.

    Example::

        plan.add(Fault("close_after", on="Send"))
        plan.add(Fault("fault", on="Create", code=2147943418))
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: list[_Armed] = []
        self._injected: Callable[[Fault, str], None] = lambda fault, action: None

    def on_injected(self, callback: Callable[[Fault, str], None]) -> None:
        """Have callback(fault, action) called whenever a fault happens."""
        self._injected = callback

    def add(self, fault: Fault) -> None:
        """Arm a fault; faults of one stage happen in the order in which they were armed."""
        with self._lock:
            self._armed.append(_Armed(fault))

    def clear(self) -> None:
        """Disarm all faults."""
        with self._lock:
            self._armed.clear()

    def as_list(self) -> list[dict[str, Any]]:
        """The armed faults with what is left of them, fit for JSON and `Fault.from_dict`."""
        with self._lock:
            return [{**asdict(item.fault), "times": item.left, "after": item.skip} for item in self._armed]

    def take(self, stage: Stage, action: str, kind: Kind | None = None) -> list[Fault]:
        """The faults of a stage that happen now, in the order of arming, used up by this call.

        kind: consider only this one of the stage.
        """
        with self._lock:
            found = [item.fault for item in list(self._armed) if self._due(item, stage, action, kind)]
        for fault in found:
            self._injected(fault, action)
        return found

    def shape(self, chunk: Chunk) -> list[Chunk]:
        """The pieces in which a piece of output is to be delivered."""
        chunks = [chunk]
        for noise in self.take("output", "Receive", "noise"):
            chunks.insert(0, (noise.stream, base64.b64decode(noise.data_base64)))
        for cutting in self.take("output", "Receive", "fragment"):
            size = cutting.size
            chunks = [
                (name, data[start : start + size])
                for name, data in chunks
                for start in range(0, len(data), size)
            ]
        return chunks

    def _due(self, item: _Armed, stage: Stage, action: str, kind: Kind | None) -> bool:
        """Whether an armed fault happens now; counts it down."""
        fault = item.fault
        if _STAGES[fault.kind] != stage or fault.on not in ("any", action) or kind not in (None, fault.kind):
            return False
        if item.skip > 0:
            item.skip -= 1
            return False
        if item.left is not None:
            item.left -= 1
            if item.left <= 0:
                self._armed.remove(item)
        return True
