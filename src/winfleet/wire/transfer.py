"""Files to and from a box over its session: skipped when already there, checked by hash, replaced at once.

Sizes and methods: docs/facts/winrm.md#file-transfer. A file that fits in one message costs two requests (its hash
there, then its content); a larger one goes in parts that are not answered one by one, then one request checks
the hash and puts it in place.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import secrets
from collections.abc import Callable
from typing import IO, Any

from winfleet.call import Call
from winfleet.redaction import MASK
from winfleet.wire.errors import TransferFailed, WireError
from winfleet.wire.exchange import Answer
from winfleet.wire.session import Session

READ_BYTES = 1 << 20
DOWNLOAD_PART_BYTES = 512 << 10
PACK_FACTOR = 4
"""How many messages' worth of content is tried in one compressed message."""
WORTHWHILE = 0.9
"""Compressed content is sent when it is at most this part of the plain content."""
PLACING_TIMEOUT_S = 1800.0
"""Hashing and moving a file of many GB on a slow disk."""
ATTEMPTS = 2

Progress = Callable[[int, int], None]


def put(session: Session, where: str, file: IO[bytes], path: str, progress: Progress) -> bool:
    """Make the file on the box equal to a local one.

    Args: where (the box's name for messages), file (seekable), path (Windows path), progress (called with
    bytes done and bytes in all).

    Returns: True when something was sent, False when the box had the same content.

    Raises: TransferFailed, WireError kinds.
    """
    size_bytes, sha256 = _digest(file, where, path)
    there = _entry(session, where, path)
    if there["Kind"] == "file" and there.get("Sha256") == sha256:
        return False
    if there["Kind"] in ("directory", "junction"):
        raise TransferFailed(where, f"{path} is a {there['Kind']}", "a file or nothing", "correct the path")
    with session.hold():
        for attempt in range(1, ATTEMPTS + 1):
            answer = _send(session, file, size_bytes, path, sha256, progress)
            if answer.ok:
                return True
            if answer.error_type != "HashMismatch" or attempt == ATTEMPTS:
                raise _failed(where, f"{path} was not written", answer)
    raise AssertionError("unreachable")


def get(session: Session, where: str, path: str, file: IO[bytes], progress: Progress) -> None:
    """Copy a file of the box to a local one and check its hash. Raises TransferFailed, WireError kinds."""
    there = _entry(session, where, path)
    if there["Kind"] not in ("file", "symboliclink"):
        raise TransferFailed(where, f"{path} is {there['Kind']}", "a file", "correct the path")
    digest = hashlib.sha256()
    size_bytes, done_bytes = int(there["SizeBytes"]), 0
    with session.hold():
        while done_bytes < size_bytes:
            call = Call(
                "Get-BoxFilePart",
                volatile=True,
                Path=path,
                OffsetBytes=done_bytes,
                LengthBytes=DOWNLOAD_PART_BYTES,
            )
            answer = session.run([call])[0]
            if not answer.ok:
                raise _failed(where, f"{path} was not read", answer)
            if not answer.payload:
                break
            digest.update(answer.payload)
            file.write(answer.payload)
            done_bytes += len(answer.payload)
            progress(done_bytes, size_bytes)
    if done_bytes != size_bytes or digest.hexdigest() != there["Sha256"]:
        raise TransferFailed(
            where,
            f"{path} changed while it was read",
            f"SHA-256 {there['Sha256']}",
            "run again when it is at rest",
        )


def _entry(session: Session, where: str, path: str) -> dict[str, Any]:
    """Kind, size and hash of one path on the box."""
    answer = session.run([Call("Get-BoxFile", Path=[path], Hash=True, timeout_s=PLACING_TIMEOUT_S)])[0]
    if not answer.ok:
        raise _failed(where, f"{path} was not looked at", answer)
    entry: dict[str, Any] = answer.value[0]
    if entry.get("Error"):
        raise _failed(where, f"{path} was not looked at", Answer(False, error=entry["Error"]))
    return entry


def _send(
    session: Session, file: IO[bytes], size_bytes: int, path: str, sha256: str, progress: Progress
) -> Answer:
    limit = session.max_payload_bytes
    file.seek(0)
    if size_bytes <= PACK_FACTOR * limit:
        encoding, payload = _packed(file.read())
        if len(payload) <= limit:
            placing = Call("Set-BoxFile", payload=payload, Path=path, Sha256=sha256, Encoding=encoding)
            return session.run([placing])[0]
        file.seek(0)
    temporary = f"{path}.{secrets.token_hex(4)}.part"
    try:
        _send_parts(session, file, size_bytes, temporary, progress)
        placing = Call(
            "Set-BoxFile", Path=path, Sha256=sha256, TemporaryPath=temporary, timeout_s=PLACING_TIMEOUT_S
        )
        answer = session.run([placing])[0]
    except WireError:
        with contextlib.suppress(WireError):
            session.run([Call("Remove-BoxItem", Path=[temporary])])
        raise
    if not answer.ok:
        session.run([Call("Remove-BoxItem", Path=[temporary])])
    return answer


def _send_parts(
    session: Session, file: IO[bytes], size_bytes: int, temporary: str, progress: Progress
) -> None:
    offset = 0
    while block := file.read(PACK_FACTOR * session.max_payload_bytes):
        # The limit may sink on the way, when the box turns out to take smaller messages.
        limit = session.max_payload_bytes
        encoding, payload = _packed(block)
        parts = (
            [block]
            if len(payload) <= limit
            else [block[at : at + limit] for at in range(0, len(block), limit)]
        )
        for part in parts:
            encoding, payload = _packed(part)
            session.tell(
                Call(
                    "Write-BoxFilePart",
                    payload=payload,
                    TemporaryPath=temporary,
                    OffsetBytes=offset,
                    Encoding=encoding,
                )
            )
            offset += len(part)
            progress(offset, size_bytes)


def _packed(content: bytes) -> tuple[str, bytes]:
    """Encoding and bytes to send: compressed when that helps."""
    small = gzip.compress(content, 6, mtime=0)
    return ("gzip", small) if len(small) <= WORTHWHILE * len(content) else ("none", content)


def _digest(file: IO[bytes], where: str, path: str) -> tuple[int, str]:
    """Size and SHA-256; refuses content that holds a masked secret."""
    digest, size_bytes, tail = hashlib.sha256(), 0, b""
    mask = MASK.encode()
    file.seek(0)
    while block := file.read(READ_BYTES):
        if mask in tail + block:
            raise TransferFailed(
                where,
                f"the content for {path} holds the literal {MASK}",
                "the secret itself",
                "a HiddenValue was put into text, which hides it: unmask it where content is built",
            )
        tail = block[-len(mask) + 1 :]
        digest.update(block)
        size_bytes += len(block)
    return size_bytes, digest.hexdigest()


def _failed(where: str, what: str, answer: Answer) -> TransferFailed:
    error = answer.error or {}
    return TransferFailed(where, f"{what}: {error.get('type')}: {error.get('message')}")
