"""Sets of IP addresses as intervals: equal sets are equal, however they were written.

Windows rewrites addresses (docs/facts/windows.md#how-windows-writes-addresses): 100.64.0.0/10 reads back as
100.64.0.0/255.192.0.0, overlapping entries are merged, the order of a list changes. So nothing here compares
text.
"""

from __future__ import annotations

import bisect
import ipaddress
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from winfleet.answer import Model, ModelError

Span: TypeAlias = tuple[int, int]
_BITS = {4: 32, 6: 128}
# Words that stand for addresses only Windows knows at run time; the spelling of their case varies, and the
# registry has names of its own for two of them.
KEYWORDS = frozenset(
    {
        "localsubnet", "localsubnet4", "localsubnet6", "dns", "dhcp", "wins", "defaultgateway", "internet",
        "intranet", "intranetremoteaccess", "playtodevice", "captiveportal",
    }
)  # fmt: skip
_REGISTRY_WORDS = {"rmtintranet": "intranetremoteaccess", "ply2renders": "playtodevice"}
_ALL_V4: tuple[Span, ...] = ((0, 2**32 - 1),)
_ALL_V6: tuple[Span, ...] = ((0, 2**128 - 1),)


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    result: list[Span] = []
    for first, last in sorted(spans):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return tuple(result)


def _minus(left: tuple[Span, ...], right: tuple[Span, ...]) -> tuple[Span, ...]:
    result: list[Span] = []
    index = 0
    for first, last in left:
        start = first
        while index < len(right) and right[index][1] < start:
            index += 1
        at = index
        while at < len(right) and right[at][0] <= last:
            if right[at][0] > start:
                result.append((start, right[at][0] - 1))
            start = right[at][1] + 1
            at += 1
        if start <= last:
            result.append((start, last))
    return tuple(result)


def _shared(left: tuple[Span, ...], right: tuple[Span, ...]) -> tuple[Span, ...]:
    result: list[Span] = []
    one = other = 0
    while one < len(left) and other < len(right):
        first, last = max(left[one][0], right[other][0]), min(left[one][1], right[other][1])
        if first <= last:
            result.append((first, last))
        if left[one][1] < right[other][1]:
            one += 1
        else:
            other += 1
    return tuple(result)


def _meet(left: tuple[Span, ...], right: tuple[Span, ...]) -> bool:
    few, many = (left, right) if len(left) < len(right) else (right, left)
    for first, last in few:
        at = bisect.bisect_right(many, last, key=lambda span: span[0])
        if at and many[at - 1][1] >= first:
            return True
    return False


def _number(text: str) -> tuple[int, int]:
    """IP version and number of an address. Faster than the ipaddress module, which matters for a thousand
    rules."""
    try:
        return 4, int.from_bytes(socket.inet_pton(socket.AF_INET, text), "big")
    except OSError:
        pass
    try:
        return 6, int.from_bytes(socket.inet_pton(socket.AF_INET6, text), "big")
    except OSError:
        raise ValueError("not an address") from None


def _network(text: str) -> tuple[int, Span]:
    """IP version and interval of an address, or of a network by prefix length or mask."""
    address, slash, mask = text.partition("/")
    version, number = _number(address)
    bits = _BITS[version]
    if not slash:
        return version, (number, number)
    if mask.isdigit():
        length = int(mask)
    else:
        kind, value = _number(mask)
        length = value.bit_count()
        if kind != 4 or version != 4 or value != (2**length - 1) << (bits - length):
            raise ValueError("not a mask")
    if length > bits:
        raise ValueError("the prefix is too long")
    hosts = 2 ** (bits - length) - 1
    return version, (number & ~hosts, number | hosts)


@dataclass(frozen=True)
class NetworkSet(Model):
    """A set of IPv4 and IPv6 addresses, and keywords (LocalSubnet, ...) in lower case.

    Attributes: v4 and v6 (ordered intervals of address numbers that neither touch nor overlap), keywords.
    """

    v4: tuple[Span, ...] = ()
    v6: tuple[Span, ...] = ()
    keywords: frozenset[str] = frozenset()

    @classmethod
    def any(cls) -> NetworkSet:
        """Every address."""
        return cls(_ALL_V4, _ALL_V6)

    @classmethod
    def family(cls, version: int) -> NetworkSet:
        """Every address of IP version 4 or 6."""
        return cls(v4=_ALL_V4) if version == 4 else cls(v6=_ALL_V6)

    @classmethod
    def parse(cls, entries: Iterable[str]) -> NetworkSet:
        """From addresses, networks (prefix or mask), ranges (a-b), keywords, ``any`` and ``*``. Raises
        ModelError."""
        return cls.union(cls._one(entry.strip()) for entry in entries)

    @classmethod
    def union(cls, sets: Iterable[NetworkSet]) -> NetworkSet:
        """Everything that is in any of sets."""
        given = list(sets)
        if len(given) == 1:
            return given[0]
        return cls(
            _merged(span for one in given for span in one.v4),
            _merged(span for one in given for span in one.v6),
            frozenset().union(*(one.keywords for one in given)),
        )

    @classmethod
    def _one(cls, entry: str) -> NetworkSet:
        if entry.lower() in {"any", "*"}:
            return cls.any()
        word = _REGISTRY_WORDS.get(entry.lower(), entry.lower())
        if word in KEYWORDS:
            return cls(keywords=frozenset({word}))
        try:
            if "-" in entry:
                low, _, high = entry.partition("-")
                version, first = _number(low.strip())
                kind, last = _number(high.strip())
                if version != kind or first > last:
                    raise ValueError("the range ends before it begins")
                span = (first, last)
            else:
                version, span = _network(entry)
        except ValueError as error:
            raise ModelError(f"no address, network or range: {entry!r} ({error})") from error
        return cls(v4=(span,)) if version == 4 else cls(v6=(span,))

    def __or__(self, other: NetworkSet) -> NetworkSet:
        return NetworkSet.union((self, other))

    def __sub__(self, other: NetworkSet) -> NetworkSet:
        return NetworkSet(
            _minus(self.v4, other.v4), _minus(self.v6, other.v6), self.keywords - other.keywords
        )

    def __and__(self, other: NetworkSet) -> NetworkSet:
        return NetworkSet(
            _shared(self.v4, other.v4), _shared(self.v6, other.v6), self.keywords & other.keywords
        )

    def meets(self, other: NetworkSet) -> bool:
        """True when some address, or keyword, is in both."""
        return _meet(self.v4, other.v4) or _meet(self.v6, other.v6) or bool(self.keywords & other.keywords)

    def __bool__(self) -> bool:
        return bool(self.v4 or self.v6 or self.keywords)

    def __contains__(self, address: str) -> bool:
        version, number = _number(address)
        span = ((number, number),)
        return _meet(span, self.v4 if version == 4 else self.v6)

    @property
    def is_any(self) -> bool:
        """True for every address of both versions."""
        return self.v4 == _ALL_V4 and self.v6 == _ALL_V6

    @property
    def is_wide(self) -> bool:
        """True when it holds every address of either version, or the word Internet, which is as much."""
        return self.v4 == _ALL_V4 or self.v6 == _ALL_V6 or "internet" in self.keywords

    def of_family(self, version: int) -> NetworkSet:
        """The addresses of one IP version, without keywords."""
        return NetworkSet(v4=self.v4) if version == 4 else NetworkSet(v6=self.v6)

    def _texts(self) -> Iterator[str]:
        for spans, kind in ((self.v4, ipaddress.IPv4Address), (self.v6, ipaddress.IPv6Address)):
            for first, last in spans:
                if first == 0 and last == 2 ** _BITS[4 if kind is ipaddress.IPv4Address else 6] - 1:
                    yield "any IPv4" if kind is ipaddress.IPv4Address else "any IPv6"
                    continue
                networks = list(ipaddress.summarize_address_range(kind(first), kind(last)))
                if len(networks) == 1:
                    yield str(kind(first)) if first == last else str(networks[0])
                else:
                    yield f"{kind(first)}-{kind(last)}"
        yield from sorted(self.keywords)

    def __str__(self) -> str:
        if self.is_any and not self.keywords:
            return "any"
        return ", ".join(self._texts()) or "none"
