"""Frames of the box loop: pure functions, bytes in and out, no I/O.

The grammar is docs/box-commands.md section 1. Both the controller and the simulator use this module, so neither
can drift from the other; the PowerShell side is held to it by the contract tests.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["loaded", "ready", "output", "progress", "result"]
MARK = b"~WF1 "
_FRAME = re.compile(
    rb"~WF1 ([0-9a-f]+) (\d+) (\d+) (loaded|ready|output|progress|result) (\d+) ([0-9a-f]{8}) ([A-Za-z0-9+/=.]*)\r?"
)


class FrameError(ValueError):
    """A line that claims to be a frame or a request but is damaged."""


@dataclass(frozen=True)
class Frame:
    """One reply frame of a box.

    Attributes: nonce (hex text of the session), seq (the request it answers), index (its place among the frames of
    that request, from 0), kind, data (the JSON object), payload (raw bytes, empty when there are none).
    """

    nonce: str
    seq: int
    index: int
    kind: Kind
    data: dict[str, Any]
    payload: bytes = b""


@dataclass(frozen=True)
class Request:
    """One request to a box; see docs/box-commands.md for the meaning of each field."""

    nonce: str
    seq: int
    mode: Literal["read", "change"]
    calls: list[dict[str, Any]]
    payload: bytes = b""
    reply: bool = True
    timeout_s: float | None = None


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:8].encode()


def _body(data: dict[str, Any], payload: bytes, separator: bytes) -> bytes:
    text = base64.b64encode(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return text + separator + base64.b64encode(payload) if payload else text


def encode_frame(frame: Frame) -> bytes:
    """The bytes of a frame, with the line feeds before and after it."""
    body = _body(frame.data, frame.payload, b".")
    head = f"~WF1 {frame.nonce} {frame.seq} {frame.index} {frame.kind} {len(body)} ".encode()
    return b"\n" + head + _sum(body) + b" " + body + b"\n"


def decode_frame(line: bytes) -> Frame:
    """Parse one line (without its line feed). Raises FrameError when it is cut, altered or no frame at all."""
    match = _FRAME.fullmatch(line)
    if match is None:
        raise FrameError(f"not a frame: {line[:80]!r}")
    nonce, seq, index, kind, length, checksum, body = match.groups()
    if len(body) != int(length) or _sum(body) != checksum:
        raise FrameError(f"damaged frame of request {int(seq)}: {len(body)} of {int(length)} bytes")
    text, _, payload = body.partition(b".")
    try:
        data = json.loads(base64.b64decode(text, validate=True))
        raw = base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FrameError(f"damaged frame of request {int(seq)}: {error}") from error
    if not isinstance(data, dict):
        raise FrameError(f"frame of request {int(seq)} holds no JSON object")
    return Frame(nonce.decode(), int(seq), int(index), kind.decode(), data, raw)  # type: ignore[arg-type]


def encode_request(request: Request) -> bytes:
    """The one line of a request, with its line feed."""
    header = {
        "nonce": request.nonce,
        "seq": request.seq,
        "mode": request.mode,
        "reply": request.reply,
        "timeout_s": request.timeout_s,
        "calls": request.calls,
        "payload_bytes": len(request.payload),
    }
    return _body(header, request.payload, b" ") + b"\n"


def decode_request(line: bytes) -> Request:
    """Parse a request line. Raises FrameError, also when its payload was cut on the way."""
    text, _, payload = line.strip().partition(b" ")
    try:
        header = json.loads(base64.b64decode(text, validate=True))
        request = Request(
            nonce=header["nonce"],
            seq=int(header["seq"]),
            mode="change" if header["mode"] == "change" else "read",
            calls=list(header["calls"]),
            payload=base64.b64decode(payload, validate=True),
            reply=bool(header.get("reply", True)),
            timeout_s=header.get("timeout_s"),
        )
        wanted_bytes = header.get("payload_bytes", len(request.payload))
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise FrameError(f"not a request: {error}") from error
    if len(request.payload) != wanted_bytes:
        raise FrameError(f"request {request.seq} holds {len(request.payload)} of {wanted_bytes} bytes")
    return request


@dataclass
class FrameReader:
    """Cuts a stream of bytes, split anywhere, into frames of one session and noise.

    Example::

        reader = FrameReader(nonce)
        for frame in reader.feed(chunk): ...
        for line in reader.take_noise(): log(line)
    """

    nonce: str
    _rest: bytearray = field(default_factory=bytearray)
    _noise: list[bytes] = field(default_factory=list)

    def feed(self, chunk: bytes) -> list[Frame]:
        """Add bytes; return the frames they complete. Damaged or foreign lines become noise."""
        start = len(self._rest)
        self._rest += chunk
        if b"\n" not in memoryview(self._rest)[start:].tobytes():
            return []
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        frames = []
        for line in lines:
            if line.startswith(MARK):
                try:
                    frame = decode_frame(line)
                except FrameError:
                    self._noise.append(line)
                    continue
                if frame.nonce == self.nonce:
                    frames.append(frame)
                    continue
            if line.strip():
                self._noise.append(line)
        return frames

    def take_noise(self) -> list[bytes]:
        """Return and forget the lines that were no frames of this session."""
        noise, self._noise = self._noise, []
        return noise
