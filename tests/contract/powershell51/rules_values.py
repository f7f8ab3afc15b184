"""Rules about values: types and members, JSON, numbers of elements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from powershell51.builtin import EXTENDED_MEMBERS
from powershell51.check import Subject, rule
from powershell51.tables import Type
from powershell51.tree import Node

Found = Iterator[tuple[Node | int, str]]

_ENUMS = frozenset(
    [
        "enabled",
        "action",
        "direction",
        "profile",
        "profiles",
        "bustype",
        "mediatype",
        "drivetype",
        "healthstatus",
        "operationalstatus",
        "networkcategory",
        "state",
        "status",
        "adminstatus",
        "addressfamily",
        "prefixorigin",
        "suffixorigin",
        "starttype",
        "usage",
    ]
)
_CIM = re.compile(
    r"get-(netfirewall\w+|net(adapter|ipaddress|route|connectionprofile|tcpconnection|ipinterface)|disk|partition"
    r"|physicaldisk|virtualdisk|volume|scheduledtask(info)?|ciminstance|service|mpcomputerstatus)"
)
_PASSES_ON = frozenset({"where-object", "select-object", "sort-object"})
_NO_CHECK = frozenset(
    {"system.object", "system.management.automation.psobject", "system.management.automation.pscustomobject"}
)
_OPEN = frozenset({"system.collections.hashtable", "system.collections.specialized.ordereddictionary"})
_OPEN_PREFIXES = ("system.xml.xml", "system.collections.generic.dictionary", "system.collections.idictionary")


# Types and members


@rule("PS24")
def known_types(subject: Subject) -> Found:
    for node in subject.root.find("TypeExpression", "TypeConstraint", "Attribute"):
        name = str(node.attributes["TypeName"])
        if subject.values.written(name) is None and not name.startswith("WinFleet."):
            yield node, f"no type [{name}] in .NET Framework 4.6.2 or PowerShell 5.1"
    from powershell51.values import created_type

    for call in subject.calls_of("new-object"):
        created = created_type(call.node)
        if created and subject.values.written(created) is None:
            yield call.node, f"no type [{created}] in .NET Framework 4.6.2 or PowerShell 5.1"


@rule("PS24")
def known_members(subject: Subject) -> Found:
    for node in subject.root.find("MemberExpression", "InvokeMemberExpression"):
        owner, exact = owner_of(subject, node)
        if owner is None or not node.member or owner.name.lower() in _NO_CHECK:
            continue
        count = len(node.all("Arguments")) if node.kind == "InvokeMemberExpression" else None
        if count is None and _is_open(subject, node, owner):
            continue
        found = subject.tables.member(owner, node.member)
        if found is None:
            if not exact and node.member.lower() in subject.tables.derived_members.get(
                owner.name.lower(), ()
            ):
                continue
            yield node, f"[{owner.name}] has no member {node.member} in 5.1 on .NET Framework 4.6.2"
        elif count is not None and not found.counts:
            yield node, f"[{owner.name}].{node.member} is no method in .NET Framework 4.6.2"
        elif count is not None and not found.takes(count):
            yield node, f"[{owner.name}].{node.member} takes no {count} arguments in .NET Framework 4.6.2"
        elif node.attributes["Static"] and not found.static and owner.kind != "enum":
            yield node, f"[{owner.name}]::{node.member} is not static in .NET Framework 4.6.2"


def owner_of(subject: Subject, node: Node) -> tuple[Type | None, bool]:
    """The type whose member an expression names, and whether the object is of exactly that type."""
    target = node.get("Expression")
    if target is None:
        return None, False
    if node.attributes["Static"]:
        if target.kind != "TypeExpression":  # a type in a variable: which, only the run tells
            return None, False
        written = subject.values.written(str(target.attributes["TypeName"]))
        return (subject.values.lookup(written) if written else None), True
    value = subject.values.of(target)
    return (subject.values.lookup(value.type) if value else None), bool(value and value.exact)


def _is_open(subject: Subject, node: Node, owner: Type) -> bool:
    """PowerShell gives it more properties than its type has: keys, XML elements, notes."""
    name = owner.name.lower()
    if name in _OPEN or name.startswith(_OPEN_PREFIXES):
        return True
    extended = {
        known for one in subject.tables.line(owner) for known in EXTENDED_MEMBERS.get(one.name.lower(), ())
    }
    return node.member.lower() in extended | EXTENDED_MEMBERS["system.object"]


@rule("PS24")
def split_at_a_text(subject: Subject) -> Found:
    """.NET Framework takes a text for the set of its characters."""
    for node in subject.root.find("InvokeMemberExpression"):
        first = next(iter(node.all("Arguments")), None)
        if first is None or node.member.lower() != "split" or node.attributes["Static"]:
            continue
        if first.kind == "StringConstantExpression" and len(first.value) > 1:
            yield node, f"Split({first.text}) splits at each of these characters; use -split"


@rule("PS24")
def constructors(subject: Subject) -> Found:
    """A splatted table of arguments or a comma list; what New-Object gets otherwise is one argument."""
    from powershell51.values import created_type

    for call in subject.calls_of("new-object"):
        created = created_type(call.node)
        written = subject.values.written(created) if created else None
        kind = subject.values.lookup(written) if written else None
        given = call.argument("argumentlist", 1)
        if kind is None or kind.kind == "struct" or given is None or given.kind == "ParenExpression":
            continue
        if str(written).endswith("]"):
            continue
        member = subject.tables.member(kind, "new")
        if given.kind == "ArrayExpression":
            continue
        count = len(given.children) if given.kind == "ArrayLiteral" else 1
        if member is None or not member.takes(count):
            yield (
                call.node,
                f"[{kind.name}] has no constructor with {count} arguments in .NET Framework 4.6.2",
            )


# JSON


def _json_parts(subject: Subject) -> Iterator[Node]:
    """Expressions whose values go into ConvertTo-Json, tables and arrays taken apart."""
    for call in subject.calls_of("convertto-json"):
        given = call.argument("inputobject", 0)
        pipeline = call.node.parent
        first = pipeline.all("PipelineElements")[0] if pipeline is not None else call.node
        start = given if given is not None else first if first is not call.node else None
        if start is not None:
            yield from _taken_apart(start, set())


def _taken_apart(node: Node, seen: set[int]) -> Iterator[Node]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if node.kind == "VariableExpression":
        for assignment in node.function.find("AssignmentStatement"):
            left, right = assignment.get("Left"), assignment.get("Right")
            if left is not None and right is not None and left.variable == node.variable:
                yield from _taken_apart(right, seen)
    if node.kind in ("Hashtable", "ArrayLiteral", "ArrayExpression", "StatementBlock", "Pipeline") or (
        node.kind in ("CommandExpression", "ParenExpression")
        or (
            node.kind == "ConvertExpression"
            and node.text.lower().startswith(("[pscustomobject]", "[ordered]"))
        )
    ):
        for child in node.children:
            if child.role != "KeyValuePairs.0":
                yield from _taken_apart(child, seen)
    else:
        yield node


@rule("PS09")
def times_in_json(subject: Subject) -> Found:
    for part in _json_parts(subject):
        value = subject.values.of(part)
        if value and value.type == "System.DateTime":
            yield part, "5.1 writes a time as /Date(...)/; use .ToUniversalTime().ToString('o')"


@rule("PS10")
def texts_in_json(subject: Subject) -> Found:
    for part in _json_parts(subject):
        if (
            any(_name(command) == "get-content" for command in part.find("Command"))
            and part.kind == "Command"
        ):
            yield part, "a text of Get-Content carries notes and becomes an object; cast it to [string]"
    for call in subject.calls_of("convertfrom-json"):
        pipeline = call.node.parent
        if pipeline is None:
            continue
        if pipeline.all("PipelineElements")[-1] is not call.node:
            yield call.node, "5.1 passes a JSON array on as one object; assign it first, then loop"
        elif pipeline.parent is not None and pipeline.parent.parent is not None:
            around = pipeline.parent.parent
            if around.kind == "ArrayExpression" and len(pipeline.parent.all("Statements")) == 1:
                yield call.node, "@(...) round it holds one array in 5.1; assign it first, then loop"


def _name(command: Node) -> str:
    return command.all("CommandElements")[0].value.lower()


# Numbers of elements, enums


def _sources(node: Node | None, seen: set[str]) -> Iterator[Node]:
    """The Command nodes whose output a value is."""
    if node is None:
        return
    if node.kind == "Pipeline":
        elements = node.all("PipelineElements")
        first = elements[0]
        if first.kind == "CommandExpression" and len(elements) == 1:
            yield from _sources(first.get("Expression"), seen)
        elif all(one.kind == "Command" and _name(one) in _PASSES_ON for one in elements[1:]):
            if first.kind == "Command":
                yield first
            else:
                yield from _sources(first.get("Expression"), seen)
        return
    if node.kind == "VariableExpression" and node.variable not in seen:
        seen.add(node.variable)
        for found in node.function.find("AssignmentStatement", "ForEachStatement"):
            left = found.get("Left", "Variable")
            if left is not None and left.variable == node.variable:
                yield from _sources(found.get("Right", "Condition"), seen)
        return
    if node.kind in (
        "ParenExpression",
        "ArrayExpression",
        "SubExpression",
        "IndexExpression",
        "StatementBlock",
    ):
        for child in node.children:
            if child.role in ("Pipeline", "SubExpression", "Target", "Statements"):
                yield from _sources(child, seen)


@rule("PS11")
def enums(subject: Subject) -> Found:
    for node in subject.root.find("MemberExpression"):
        if node.member.lower() not in _ENUMS or node.attributes["Static"] or node.parent is None:
            continue
        target = node.get("Expression")
        if not any(_CIM.fullmatch(_name(command)) for command in _sources(target, set())):
            continue
        assigned = node.parent.kind == "AssignmentStatement" and node.role == "Left"
        if node.parent.kind != "ConvertExpression" and not assigned:
            yield node, f"{node.text} is a number in one version and a name in another; cast it to [string]"


@rule("PS12")
def counts(subject: Subject) -> Found:
    for node in subject.root.find("MemberExpression"):
        target = node.get("Expression")
        if node.member.lower() != "count" or node.attributes["Static"] or target is None:
            continue
        if subject.values.of(target) is not None or target.kind == "IndexExpression":
            continue
        if any(True for _ in _sources(target, set())):
            yield node, f"{node.text}: one object has no Count in 5.1; write @(...).Count"
