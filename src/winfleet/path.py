"""Windows paths as texts: which name the same place, which are full.

Nothing here asks a box; `ntpath` of the standard library knows neither ``\\\\?\\`` nor what Windows takes as the same.
"""

from __future__ import annotations


def same_path(one: str, other: str) -> bool:
    """True when two texts name the same place on a box: case, slashes, a final slash and ``\\\\?\\`` do not
    count."""
    return normal_path(one) == normal_path(other)


def normal_path(path: str) -> str:
    """The spelling under which paths compare."""
    plain = path.replace("/", "\\").removeprefix("\\\\?\\").removeprefix("\\??\\")
    return plain.rstrip("\\").casefold() if len(plain) > 3 else plain.casefold()


def absolute_path(path: str) -> bool:
    """True for ``C:\\...`` and ``\\\\server\\share``; not for ``\\x``, ``C:x`` or relative ones."""
    plain = path.replace("/", "\\")
    return (len(plain) >= 3 and plain[0].isalpha() and plain[1:3] == ":\\") or plain.startswith("\\\\")
