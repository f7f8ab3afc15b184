"""Version texts as numbers that compare."""

from __future__ import annotations

import re


def version_numbers(value: str | None) -> tuple[int, ...]:
    """The leading dotted number of a version text, as numbers: "13.3" -> (13, 3)."""
    found = re.match(r"\s*(\d+(?:\.\d+)*)", value or "")
    return tuple(int(part) for part in found[1].split(".")) if found else ()
