"""What a case expects of an answer, as YAML tags, and how a found value differs from it.

A plain mapping wants its own properties and lets others be; a plain list wants as many items in that order; any
other plain value wants an equal one. The tags:

    !any                    whatever it is, as long as it is there
    !text                   text that is not empty          !int     a whole number (no bool)
    !bool                   true or false                   !time    UTC in the `o` form
    !match 'REGEX'          text that the whole expression matches
    !contains 'TEXT'        text that holds this one
    !folded 'TEXT'          the same text but for upper and lower case
    !exactly {...}          a mapping with these properties and no others
    !has [...]              a list with an item for each of these, and perhaps others
    !each VALUE             a list, empty or not, of which every item is so
    !some VALUE             the same, and not empty
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import yaml

Kind = Literal[
    "any", "text", "int", "bool", "time", "match", "contains", "folded", "exactly", "has", "each", "some"
]
_PLAIN: tuple[Kind, ...] = ("any", "text", "int", "bool", "time")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z")
_SHOWN_CHARACTERS = 120


@dataclass(frozen=True)
class Wanted:
    """One tag with its value."""

    kind: Kind
    value: Any = None

    def filled(self, fill: Callable[[Any], Any]) -> Wanted:
        """The same with its texts filled in; what goes into an expression stands for itself there."""
        if self.kind != "match":
            return replace(self, value=fill(self.value))
        return replace(self, value=_fill_expression(self.value, fill))

    def __str__(self) -> str:
        return f"!{self.kind}" if self.value is None else f"!{self.kind} {_shown(self.value)}"


class CaseLoader(yaml.SafeLoader):
    """YAML with the tags of this module."""


def _construct(kind: Kind) -> Callable[[CaseLoader, yaml.Node], Wanted]:
    def construct(loader: CaseLoader, node: yaml.Node) -> Wanted:
        if kind in _PLAIN:
            return Wanted(kind)
        if isinstance(node, yaml.MappingNode):
            return Wanted(kind, loader.construct_mapping(node, deep=True))
        if isinstance(node, yaml.SequenceNode):
            return Wanted(kind, loader.construct_sequence(node, deep=True))
        if kind in ("match", "contains", "folded"):
            return Wanted(kind, str(loader.construct_scalar(node)))  # type: ignore[arg-type]
        # The item of !each and !some may itself be a plain scalar.
        return Wanted(kind, yaml.load(str(node.value), CaseLoader))

    return construct


for _kind in Kind.__args__:  # type: ignore[attr-defined]
    CaseLoader.add_constructor(f"!{_kind}", _construct(_kind))


def differences(found: Any, wanted: Any, where: str) -> list[str]:
    """Every place where found is not as wanted, one readable line each; empty when all is well."""
    if isinstance(wanted, Wanted):
        return _tagged(found, wanted, where)
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return [_line(where, "a mapping", found)]
        return _properties(found, wanted, where)
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return [_line(where, f"{len(wanted)} items {_shown(wanted)}", found)]
        return [
            line
            for at, (one, item) in enumerate(zip(found, wanted, strict=True))
            for line in differences(one, item, f"{where}[{at}]")
        ]
    # True is 1 in Python and not on the wire.
    same = found == wanted and isinstance(found, bool) == isinstance(wanted, bool)
    return [] if same else [_line(where, _shown(wanted), found)]


def _properties(found: dict[str, Any], wanted: dict[str, Any], where: str) -> list[str]:
    lines = []
    for name, item in wanted.items():
        if name in found:
            lines += differences(found[name], item, f"{where}.{name}")
        else:
            lines.append(f"{where}.{name}: wanted {_shown(item)}; there is no such property")
    return lines


def _tagged(found: Any, wanted: Wanted, where: str) -> list[str]:
    value = wanted.value
    if wanted.kind == "exactly":
        lines = differences(found, value, where)
        extra = sorted(set(found) - set(value)) if isinstance(found, dict) else []
        return lines + [f"{where}.{name}: nothing wanted, found {_shown(found[name])}" for name in extra]
    if wanted.kind in ("has", "each", "some"):
        if not isinstance(found, list) or (wanted.kind == "some" and not found):
            return [_line(where, str(wanted), found)]
        if wanted.kind != "has":
            return [
                line for at, one in enumerate(found) for line in differences(one, value, f"{where}[{at}]")
            ]
        return [
            _line(where, f"an item {_shown(item)}", found)
            for item in value
            if all(differences(one, item, where) for one in found)
        ]
    return [] if _fits(found, wanted) else [_line(where, str(wanted), found)]


def _fits(found: Any, wanted: Wanted) -> bool:
    if wanted.kind == "any":
        return found is not None
    if wanted.kind == "bool":
        return isinstance(found, bool)
    if wanted.kind == "int":
        return isinstance(found, int) and not isinstance(found, bool)
    if not isinstance(found, str):
        return False
    if wanted.kind == "text":
        return bool(found)
    if wanted.kind == "time":
        return _TIME.fullmatch(found) is not None
    if wanted.kind == "match":
        return re.fullmatch(str(wanted.value), found, re.DOTALL) is not None
    if wanted.kind == "contains":
        return str(wanted.value) in found
    return found.casefold() == str(wanted.value).casefold()


def _fill_expression(text: str, fill: Callable[[Any], Any]) -> str:
    return re.sub(
        r"\{[A-Za-z][\w.]*\}",
        lambda match: match[0] if fill(match[0]) == match[0] else re.escape(str(fill(match[0]))),
        text,
    )


def _line(where: str, wanted: str, found: Any) -> str:
    return f"{where}: wanted {wanted}, found {_shown(found)}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        text = "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    elif isinstance(value, list):
        text = "[" + ", ".join(_shown(item) for item in value) + "]"
    else:
        text = str(value) if isinstance(value, Wanted) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
