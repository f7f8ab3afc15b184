"""Commands that a script calls: which, with which parameters, and whether 5.1 has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from powershell51.builtin import COMMON
from powershell51.tables import Command, Tables
from powershell51.tree import Node

_PROGRAM = re.compile(r"\.(exe|com|bat|cmd)$", re.IGNORECASE)
_FULL_PATH = re.compile(r"^([A-Za-z]:\\|\\\\)")


@dataclass
class Call:
    """One call of a command.

    Attributes: node, name (as written; empty when computed), parameters (lower-case name -> its value, None for a
    switch), positional (values without a name), spellings (the parameters as written), unknown_splat (a table that is
    splatted and not to be resolved).
    """

    node: Node
    name: str
    parameters: dict[str, Node | None] = field(default_factory=dict)
    positional: list[Node] = field(default_factory=list)
    spellings: list[str] = field(default_factory=list)
    unknown_splat: str | None = None

    @property
    def key(self) -> str:
        """Lower-case name without a module before it."""
        return self.name.lower().rpartition("\\")[2] if not _PROGRAM.search(self.name) else self.name.lower()

    def argument(self, parameter: str, position: int) -> Node | None:
        """The value of a parameter that may also be given by position."""
        if parameter in self.parameters:
            return self.parameters[parameter]
        return self.positional[position] if position < len(self.positional) else None


def calls(root: Node, tables: Tables) -> list[Call]:
    """Every call of a script, splatted tables resolved."""
    return [_call(node, tables) for node in root.find("Command")]


def _call(node: Node, tables: Tables) -> Call:
    elements = node.all("CommandElements")
    call = Call(node, elements[0].value if elements[0].kind == "StringConstantExpression" else "")
    known = tables.commands.get(call.key)
    waiting: str | None = None
    for element in elements[1:]:
        if element.kind == "CommandParameter":
            call.spellings.append(str(element.attributes["ParameterName"]))
            waiting = call.spellings[-1].lower()
            call.parameters[waiting] = element.get("Argument")
            if call.parameters[waiting] is not None or (known and not known.parameters.get(waiting, True)):
                waiting = None
        elif element.kind == "VariableExpression" and element.attributes.get("Splatted"):
            _splat(call, element)
            waiting = None
        elif waiting is not None:
            call.parameters[waiting] = element
            waiting = None
        else:
            call.positional.append(element)
    return call


def _splat(call: Call, variable: Node) -> None:
    """Add the keys that the function of a call gives a table, by literals and by one name at a time."""
    name, function = variable.variable, variable.function
    found = False
    for assignment in function.find("AssignmentStatement"):
        left, right = assignment.get("Left"), assignment.get("Right")
        if left is None or right is None:
            continue
        if left.kind == "VariableExpression" and left.variable == name:
            table = next(right.find("Hashtable"), None)
            if table is None or table.text.strip() != right.text.strip():
                call.unknown_splat = variable.text
                return
            found = True
            for key, value in zip(table.all("KeyValuePairs.0"), table.all("KeyValuePairs.1"), strict=True):
                call.spellings.append(key.value or key.text)
                call.parameters.setdefault(call.spellings[-1].lower(), value)
        elif left.kind in ("IndexExpression", "MemberExpression"):
            target = left.get("Target", "Expression")
            index = left.get("Index", "Member")
            if target is None or target.variable != name or index is None:
                continue
            if not index.is_constant:
                call.unknown_splat = variable.text
                return
            call.spellings.append(index.value)
            call.parameters.setdefault(index.value.lower(), right)
    if not found:
        call.unknown_splat = variable.text


def faults(call: Call, own: dict[str, frozenset[str]], tables: Tables) -> Iterator[tuple[str, str]]:
    """(kind, text) of what 5.1 does not have: alias, program, command, parameter."""
    if not call.name:
        return
    if call.key in own:
        if call.unknown_splat is None:
            extra = call.parameters.keys() - own[call.key] - COMMON.keys()
            yield from (
                ("parameter", f"{call.name} is ours and has no parameter -{name}") for name in sorted(extra)
            )
        return
    known = tables.commands.get(call.key)
    if known is None:
        yield _unknown(call, tables)
        return
    if call.unknown_splat is not None:
        yield (
            "parameter",
            f"{call.name} {call.unknown_splat}: write the table beside the call, so that it can be checked",
        )
    for name in call.parameters:
        if name not in known.parameters:
            yield "parameter", f"{call.name} has no parameter -{name} in Windows PowerShell 5.1"


def _unknown(call: Call, tables: Tables) -> tuple[str, str]:
    if call.key in tables.aliases:
        return "alias", f"{call.name} is an alias; write the command's name"
    if _FULL_PATH.match(call.name):
        return "none", ""
    verb_noun = re.fullmatch(r"[A-Za-z]+-[A-Za-z]+", call.name)
    if _PROGRAM.search(call.name) or not verb_noun:
        return "program", f"{call.name}: programs are started by their full path"
    return "command", f"{call.name} is no command of Windows PowerShell 5.1"


def used(call: Call, own: dict[str, frozenset[str]], tables: Tables) -> Command | None:
    """The command of 5.1 that a call means; None for our own functions and programs."""
    return None if call.key in own else tables.commands.get(call.key)
