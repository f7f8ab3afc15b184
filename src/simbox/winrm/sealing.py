"""Bodies sealed with the session key of the authentication: multipart/encrypted. Pure, no I/O.

Shape: MS-WSMV 2.2.9.1 and measured clients (docs/facts/winrm.md#sealed-messages).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

SPNEGO = "application/HTTP-SPNEGO-session-encrypted"
_BOUNDARY = b"--Encrypted Boundary"
_LENGTH = re.compile(rb"OriginalContent:[^\r\n]*?Length=(\d+)", re.IGNORECASE)
_BINARY = re.compile(rb"Content-Type: *application/octet-stream\r\n", re.IGNORECASE)

Unwrap = Callable[[bytes, bytes], bytes]
Wrap = Callable[[bytes], tuple[bytes, bytes, int]]


class SealError(ValueError):
    """A sealed body that is damaged or was sealed with another key."""


def is_sealed(content_type: str) -> bool:
    """Whether a Content-Type announces a sealed body."""
    return content_type.strip().lower().startswith(("multipart/encrypted", "multipart/x-multi-encrypted"))


def unseal(body: bytes, unwrap: Unwrap) -> bytes:
    """The plain text of a sealed body of one or more parts.

    Cuts by the lengths written in it: the boundary text may occur inside ciphertext by chance.

    Args:
        unwrap: opens (signature, ciphertext); any exception of it means that the key does not fit.

    Raises SealError.
    """
    plain = bytearray()
    position = 0
    while True:
        length, binary = _LENGTH.search(body, position), _BINARY.search(body, position)
        if length is None or binary is None or binary.start() < length.end():
            raise SealError("no part with OriginalContent and application/octet-stream")
        size, start = int(length[1]), binary.end()
        if len(body) < start + 4:
            raise SealError("cut before the signature")
        (signature_size,) = struct.unpack_from("<I", body, start)
        data_start = start + 4 + signature_size
        end = data_start + size
        if len(body) < end:
            raise SealError(f"cut: {len(body)} of {end} bytes")
        try:
            plain += unwrap(body[start + 4 : data_start], body[data_start:end])
        except Exception as error:
            raise SealError(f"cannot be opened: {error}") from error
        if not body.startswith(_BOUNDARY, end) or body.startswith(_BOUNDARY + b"--", end):
            return bytes(plain)
        position = end


def seal(data: bytes, wrap: Wrap) -> tuple[str, bytes]:
    """Seal data as one part. Returns the Content-Type and the body.

    Args:
        wrap: seals a text and returns signature, ciphertext and the length of the padding in bytes.
    """
    signature, ciphertext, padding = wrap(data)
    head = (
        f"--Encrypted Boundary\r\n\tContent-Type: {SPNEGO}\r\n"
        f"\tOriginalContent: type=application/soap+xml;charset=UTF-8;Length={len(data) + padding}\r\n"
        "--Encrypted Boundary\r\n\tContent-Type: application/octet-stream\r\n"
    )
    size = struct.pack("<I", len(signature))
    body = b"".join([head.encode(), size, signature, ciphertext, _BOUNDARY, b"--\r\n"])
    return f'multipart/encrypted;protocol="{SPNEGO}";boundary="Encrypted Boundary"', body
