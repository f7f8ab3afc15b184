"""Output of programs as lines of text, whatever code page they write."""

from __future__ import annotations

import codecs
from typing import Any


def code_page(number: Any) -> str:
    """The Python codec for a Windows code page number; UTF-8 when there is none."""
    name = f"cp{number}"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "utf-8"


class LineDecoder:
    """Cuts one stream, arriving in pieces split anywhere, into lines of text.

    Each line is UTF-8 if it is valid UTF-8, else it is read in the box's OEM code page, else with replacement
    characters: native tools choose for themselves (docs/facts/winrm.md#character-sets-of-programs). A line feed byte is
    never part of a longer character in these code pages, so lines are cut before they are decoded.
    """

    def __init__(self, oem_code_page: Any) -> None:
        self._fallback = code_page(oem_code_page)
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Add bytes; return the lines they complete, without line ends."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [self._decode(line) for line in lines]

    def finish(self) -> list[str]:
        """The last line, when it has no line end."""
        rest, self._rest = self._rest, b""
        return [self._decode(rest)] if rest else []

    def _decode(self, line: bytes) -> str:
        line = line.rstrip(b"\r").removeprefix(codecs.BOM_UTF8)
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            return line.decode(self._fallback, "replace")
