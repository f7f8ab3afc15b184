"""The text of a fleet.yml taken apart box by box, so that what is wrong with one entry is told of that box alone.

YAML itself lets a later key silently replace an earlier one, reads `yes` as true and `010` as 8: here a key that
stands there twice is a fault, and the name of a box is what was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pyinfra.api.exceptions import PyinfraError

PARTS = ("defaults", "boxes")
UNNAMED = "(unnamed)"


class InventoryError(PyinfraError):
    """fleet.yml as a whole cannot be used; the text says where and why."""


@dataclass(frozen=True)
class Entry:
    """One box as it stands in the file. Attributes: name, declared (whatever stands there), faults of its text."""

    name: str
    declared: Any
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Twice:
    """A key that stands more than once in one mapping. Attributes: path of the mapping, key, lines."""

    path: tuple[str, ...]
    key: str
    lines: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.key!r} stands there {len(self.lines)} times (lines {', '.join(map(str, self.lines))})"


def load(path: Path) -> tuple[dict[str, Any], list[Entry]]:
    """The defaults and the boxes of a fleet.yml.

    Raises: InventoryError when the file is no YAML, names no box, or is wrong in a part that all boxes share.
    """
    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        root = loader.get_single_node()
    except OSError as error:
        raise InventoryError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InventoryError(f"{path}: not YAML: {_said(error)}") from error
    parts = {key.value: value for key, value in root.value} if isinstance(root, yaml.MappingNode) else {}
    boxes = parts.get("boxes")
    if not isinstance(boxes, yaml.MappingNode) or not boxes.value:
        raise InventoryError(
            f"{path}: wanted: a mapping `boxes` with at least one box; see fleet.example.yml"
        )
    unknown = sorted(str(key) for key in parts if key not in PARTS)
    if unknown:
        raise InventoryError(f"{path}: unknown: {', '.join(unknown)}; known: boxes, defaults")
    twice = list(_repeated(root, (), set())) if root is not None else []
    for one in twice:
        if not one.path or one.path[0] == "defaults":
            where = one.path[0] if one.path else "the file"
            raise InventoryError(f"{path}: {one} in {where}; wanted: once; mend: remove all but one")
    return _defaults(path, loader, parts.get("defaults")), list(_entries(loader, boxes, twice))


def _defaults(path: Path, loader: yaml.SafeLoader, node: yaml.Node | None) -> dict[str, Any]:
    try:
        defaults = None if node is None else loader.construct_object(node, deep=True)
    except yaml.YAMLError as error:
        raise InventoryError(f"{path}: defaults: {_said(error)}") from error
    if not isinstance(defaults, dict | None):
        raise InventoryError(
            f"{path}: defaults is no mapping; wanted: settings of the form `name: value`; see fleet.example.yml"
        )
    return {str(key): value for key, value in (defaults or {}).items()}


def _entries(loader: yaml.SafeLoader, boxes: yaml.MappingNode, twice: list[_Twice]) -> Iterator[Entry]:
    loader.flatten_mapping(boxes)
    last: dict[str, yaml.Node] = {}
    for key, value in boxes.value:
        name = key.value.strip() if isinstance(key, yaml.ScalarNode) else ""
        last[name or UNNAMED] = value
    for name, value in last.items():
        faults = [] if name != UNNAMED else ["its name is empty or no text; wanted: a name; mend: name it"]
        for one in twice:
            if one.path == ("boxes",) and one.key == name:
                faults.append(f"the box {one}; wanted: one entry a box; mend: rename or remove the others")
            elif one.path[:2] == ("boxes", name):
                where = "".join(f" in {part}" for part in one.path[2:])
                faults.append(f"{one}{where}; wanted: once; mend: remove all but one")
        try:
            declared = loader.construct_object(value, deep=True)
        except (yaml.YAMLError, ValueError) as error:
            declared = {}
            faults.append(f"its entry cannot be read: {_said(error)}; mend: put texts in quotes")
        yield Entry(name, declared, tuple(faults))


def _repeated(node: yaml.Node, path: tuple[str, ...], seen: set[int]) -> Iterator[_Twice]:
    """Every key that stands twice, in mappings at any depth; an anchored one is looked at once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _repeated(value, path, seen)
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, list[int]] = {}
        for key, value in node.value:
            name = (
                key.value.strip() if isinstance(key, yaml.ScalarNode) else f"line {key.start_mark.line + 1}"
            )
            lines.setdefault(name, []).append(key.start_mark.line + 1)
            yield from _repeated(value, (*path, name), seen)
        yield from (_Twice(path, name, tuple(at)) for name, at in lines.items() if len(at) > 1)


def _said(error: Exception) -> str:
    """What is wrong and where, without the lines of the file itself: a password might stand there."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or type(error).__name__
    where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return " ".join(str(what).split()) + where
