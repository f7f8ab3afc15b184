"""One program of the PowerShell files of all nouns and of the wire, ready to be sent to a box.

The files keep to Windows PowerShell 5.1 and ASCII; docs/box-commands.md says what they answer.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_WINFLEET = _HERE.parent
_BOOTSTRAP = "bootstrap.ps1"


class NotSendable(ValueError):
    """A PowerShell file breaks a rule that sending it relies on."""


@dataclass(frozen=True)
class Program:
    """What the loader on the box runs.

    Attributes: text (PowerShell), sha256 (hex, of its UTF-8 bytes), packed (base64 of gzip of them: one line).
    """

    text: str
    sha256: str
    packed: bytes


@functools.cache
def build_program() -> Program:
    """All files but the loader, in the order of their paths, comments left out. Raises NotSendable."""
    files = sorted(path for path in _WINFLEET.glob("*/*.ps1") if path.name != _BOOTSTRAP)
    text = "".join(_statements(path) for path in files)
    data = text.encode("ascii")
    packed = base64.b64encode(gzip.compress(data, 9, mtime=0))
    return Program(text, hashlib.sha256(data).hexdigest(), packed)


def bootstrap_line(nonce: str, sha256: str) -> str:
    """The one line that PowerShell's own reader gets; it ends without a line feed.

    Args:
        nonce: of the session, 32 hex digits.
        sha256: of the program, hex.
    """
    return f"$WF='{nonce}:{sha256}'; " + " ".join(_statements(_HERE / _BOOTSTRAP).splitlines())


def _statements(path: Path) -> str:
    """The lines of a file without indentation, blank lines and lines that are only a comment.

    Here-strings stay as they are.
    """
    text = path.read_text("utf-8")
    if not text.isascii():
        raise NotSendable(
            f"{path.name} is not ASCII: Windows PowerShell 5.1 would read it in the box's code page"
        )
    if "<#" in text:
        raise NotSendable(f"{path.name} has a block comment; lines are cut from the program one by one")
    kept = []
    end: str | None = None
    for raw in text.splitlines():
        line = raw.strip()
        if end is not None:
            kept.append(raw)
            if raw.startswith(end):
                end = None
        elif line and not line.startswith("#"):
            kept.append(line)
            end = {"@'": "'@", '@"': '"@'}.get(line[-2:])
    return "".join(f"{line}\n" for line in kept)
