"""The syntax trees that PowerShell's parser makes, as Python objects."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from powershell51.parser import powershell


@dataclass(eq=False)
class Node:
    """One node.

    Attributes: kind (class of System.Management.Automation.Language without Ast), line (from 1), text (its source),
    role (the property of the parent that holds it; of a pair Name.0 and Name.1), attributes (its plain properties).
    """

    kind: str
    line: int
    text: str
    parent: Node | None
    role: str
    attributes: dict[str, Any]
    children: list[Node] = field(default_factory=list)

    def get(self, *roles: str) -> Node | None:
        """The first child in the first of these roles that is filled."""
        return next((child for role in roles for child in self.children if child.role == role), None)

    def all(self, role: str) -> list[Node]:
        """The children in a role."""
        return [child for child in self.children if child.role == role]

    def walk(self) -> Iterator[Node]:
        """Itself and all below, in the order of the source."""
        yield self
        for child in self.children:
            yield from child.walk()

    def find(self, *kinds: str) -> Iterator[Node]:
        """Itself and all below that are of these kinds."""
        return (node for node in self.walk() if node.kind in kinds)

    def ancestors(self) -> Iterator[Node]:
        """Parent, its parent, and so on."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def function(self) -> Node:
        """The function that it is in, else the root."""
        last = self
        for node in self.ancestors():
            if node.kind == "FunctionDefinition":
                return node
            last = node
        return last

    @property
    def value(self) -> str:
        """The text of a constant; empty for anything else."""
        return str(self.attributes.get("Value", ""))

    @property
    def variable(self) -> str:
        """Lower-case name of a variable without its scope; empty for anything else."""
        name = (
            str(self.attributes.get("VariablePath", "")).lower() if self.kind == "VariableExpression" else ""
        )
        scope, colon, rest = name.partition(":")
        return rest if colon and scope in ("global", "script", "local", "private") else name

    @property
    def member(self) -> str:
        """The name after the dot of a member expression; empty when it is computed."""
        found = self.get("Member")
        return found.value if found is not None and found.kind == "StringConstantExpression" else ""

    @property
    def is_constant(self) -> bool:
        return self.kind in ("StringConstantExpression", "ConstantExpression")


@dataclass
class Script:
    """One parsed file.

    Attributes: path, text, root, errors (line, message, id), tokens (kind, line, text).
    """

    path: Path
    text: str
    root: Node
    errors: list[tuple[int, str, str]]
    tokens: list[tuple[str, int, str]]

    @property
    def functions(self) -> dict[str, frozenset[str]]:
        """Lower-case name -> lower-case parameter names of the functions that the file defines."""
        return {
            str(node.attributes["Name"]).lower(): frozenset(parameters(node))
            for node in self.root.find("FunctionDefinition")
        }


def parameters(function: Node) -> dict[str, Node]:
    """Lower-case name -> Parameter node of a function or script."""
    body = function.get("Body") if function.kind == "FunctionDefinition" else function
    block = body.get("ParamBlock") if body is not None else None
    found = function.all("Parameters") + (block.all("Parameters") if block is not None else [])
    return {name.variable: node for node in found if (name := node.get("Name")) is not None}


def parse(files: Iterable[Path]) -> list[Script]:
    """Parse each file. Raises parser.NoPowerShell."""
    paths = list(files)
    script = Path(__file__).with_name("tree.ps1")
    command = [str(powershell()), "-NoLogo", "-NoProfile", "-NonInteractive", "-File", str(script)]
    done = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(found) == len(paths), done.stderr
    return [_script(path, one) for path, one in zip(paths, found, strict=True)]


def _script(path: Path, found: dict[str, Any]) -> Script:
    text = path.read_bytes().decode("utf-8")
    # Offsets count UTF-16 units.
    units = text.encode("utf-16-le")
    nodes: list[Node] = []
    for kind, line, start, end, parent, role, attributes in found["nodes"]:
        above = nodes[parent] if parent >= 0 else None
        source = units[2 * start : 2 * end].decode("utf-16-le", "replace")
        node = Node(kind.removesuffix("Ast"), line, source, above, role, attributes)
        nodes.append(node)
        if above is not None:
            above.children.append(node)
    errors = [(line, message, kind) for line, message, kind in found["errors"]]
    return Script(
        path, text, nodes[0], errors, [(kind, line, token) for kind, line, token in found["tokens"]]
    )
