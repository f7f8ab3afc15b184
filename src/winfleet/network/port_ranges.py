"""Sets of TCP or UDP ports, and the ports that Windows keeps for itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from winfleet.answer import Model, ModelError

# netsh's table is localised, but a line of it is always two numbers, and a star when an administrator made
# it.
_RANGE_LINE = re.compile(r"^\s*(\d{1,5})\s+(\d{1,5})\s*(\*?)\s*$")


@dataclass(frozen=True)
class PortRange(Model):
    """Ports first..last, both included, 0 to 65535."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.last <= 65535:
            raise ModelError(f"no port range: {self.first}-{self.last}")

    def __contains__(self, port: int) -> bool:
        return self.first <= port <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    @classmethod
    def parse(cls, value: str | int) -> PortRange:
        """``8080`` or ``7000-7010``. Raises ModelError."""
        found = re.fullmatch(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?", str(value))
        if found is None:
            raise ModelError(f"no port or port range: {value!r}")
        return cls(int(found[1]), int(found[2] or found[1]))


def merged(ranges: Iterable[PortRange]) -> tuple[PortRange, ...]:
    """The same ports as ordered ranges that neither touch nor overlap."""
    result: list[PortRange] = []
    for item in sorted(ranges, key=lambda one: (one.first, one.last)):
        if result and item.first <= result[-1].last + 1:
            result[-1] = PortRange(result[-1].first, max(result[-1].last, item.last))
        else:
            result.append(item)
    return tuple(result)


def excluded_ranges(netsh_text: str) -> tuple[PortRange, ...]:
    """The reserved ranges in the text of ``netsh interface ipv4 show excludedportrange``, in any display
    language.

    A listener on such a port fails with WSAEACCES although nobody listens there (Hyper-V and WinNAT reserve
    them).
    """
    found = []
    for line in netsh_text.splitlines():
        match = _RANGE_LINE.match(line)
        if match and int(match[1]) <= int(match[2]) <= 65535:
            found.append(PortRange(int(match[1]), int(match[2])))
    return merged(found)
