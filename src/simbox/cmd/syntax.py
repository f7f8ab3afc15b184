"""The tree that a batch line (or several, in parentheses) is parsed into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Redirection:
    """``handle<target`` and so on; for ``n>&m`` the target is "&m"."""

    handle: int
    operator: Literal["<", ">", ">>"]
    target: str


@dataclass(frozen=True)
class Simple:
    """One command: its text without redirections, carets taken out."""

    text: str
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True)
class Block:
    """Commands in parentheses; redirections hold for all of them."""

    body: tuple[Node, ...]
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True)
class Chain:
    """Two commands joined by ``&``, ``&&`` or ``||``."""

    operator: Literal["&", "&&", "||"]
    left: Node
    right: Node


@dataclass(frozen=True)
class Pipe:
    """``left | right``."""

    left: Node
    right: Node


@dataclass(frozen=True)
class If:
    """Attributes: kind (exist, defined, errorlevel, cmdextversion, ==, EQU, ...), left and right operands."""

    negated: bool
    ignore_case: bool
    kind: str
    left: str
    right: str
    then: Node | None
    otherwise: Node | None = None


@dataclass(frozen=True)
class For:
    """Attributes: switch ("", "/l", "/f", "/d", "/r"), options (text after the switch), variable, items (text
    of the set), body."""

    switch: str
    options: str
    variable: str
    items: str
    body: Node | None


@dataclass(frozen=True)
class Quiet:
    """``@command``: not echoed."""

    body: Node


Node = Simple | Block | Chain | Pipe | If | For | Quiet


class SyntaxFault(Exception):
    """A line cmd.exe cannot parse; the message is what it prints."""


@dataclass
class Parsed:
    """One complete statement: its tree (None for a label, a comment or nothing) and its text for ECHO ON."""

    node: Node | None
    text: str = field(default="")
