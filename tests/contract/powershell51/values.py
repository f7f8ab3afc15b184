"""Of which .NET type a value is, where a script fixes it.

A type is written as in the tables: `System.String`, `System.Byte[]`, `System.Threading.Tasks.Task`1<System.Int32>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from powershell51.builtin import AUTOMATIC_TYPES, OUTPUTS
from powershell51.tables import Tables, Type
from powershell51.tree import Node, parameters

_TEXT_OPERATORS = frozenset({"Format", "Join"})
# In generic types of .NET these names stand for the first or second argument.
_SECOND = frozenset({"TValue"})
_NEUTRAL = "null"


@dataclass(frozen=True)
class Value:
    """Attributes: type (name), exact (False: declared so; the object may be of a derived type)."""

    type: str
    exact: bool = True


class Values:
    """Types of the values of one script.

    Args:
        root: of the script.
        tables: of 5.1.
    """

    def __init__(self, root: Node, tables: Tables) -> None:
        self._tables = tables
        self._bindings: dict[tuple[int, str], list[Node | str | None]] = {}
        self._busy: set[tuple[int, str]] = set()
        self._collect(root)

    def written(self, name: str) -> str | None:
        """A type as a script writes it, as the tables name it; None when they do not have it."""
        name = name.strip()
        array = re.search(r"(\[,*\])+$", name)
        found = self._tables.type(name)
        if found is None:
            return None
        bare = name[: array.start()] if array else name
        arguments = re.search(r"\[(.*)\]$", bare)
        text = found.name
        if arguments:
            inner = [self.written(one) or "System.Object" for one in arguments[1].split(",")]
            text += "<" + ",".join(inner) + ">"
        return text + (array[0] if array else "")

    def of(self, node: Node | None) -> Value | None:
        """What is known of the value of an expression or a pipeline of one."""
        if node is None:
            return None
        method = getattr(self, f"_{node.kind.lower()}", None)
        found: Value | None = method(node) if method else None
        return found

    def type_of(self, node: Node | None) -> Type | None:
        """The table's type of the value of an expression, arrays as System.Array."""
        value = self.of(node)
        return self.lookup(value.type) if value else None

    def lookup(self, name: str) -> Type | None:
        """The table's type of that name."""
        if name.endswith("]"):
            return self._tables.types["system.array"]
        return self._tables.types.get(re.sub(r"<.*>$", "", name).lower())

    # Bindings of variables

    def _collect(self, root: Node) -> None:
        for node in root.walk():
            if node.kind == "FunctionDefinition" or (node.kind == "ScriptBlock" and node.parent is None):
                for name, parameter in parameters(node).items():
                    constraint = parameter.get("Attributes")
                    kinds = [one for one in parameter.all("Attributes") if one.kind == "TypeConstraint"]
                    found = self.written(str(kinds[0].attributes["TypeName"])) if kinds else None
                    self._bind(node, name, found if constraint is not None else None)
            elif node.kind == "AssignmentStatement":
                self._collect_assignment(node)
            elif node.kind == "ForEachStatement":
                variable, source = node.get("Variable"), node.get("Condition")
                if variable is not None:
                    self._bind(node.function, variable.variable, self._element(self.of(source)))
            elif node.kind == "ScriptBlockExpression":
                block = node.get("ScriptBlock")
                for name in parameters(block) if block is not None else ():
                    self._bind(node.function, name, self._delegate_argument(node))

    def _collect_assignment(self, node: Node) -> None:
        left, right = node.get("Left"), node.get("Right")
        if left is None or (node.attributes["Operator"] != "Equals" and left.kind == "VariableExpression"):
            return
        if left.kind == "ConvertExpression":
            inner, kind = left.get("Child"), left.get("Type")
            if inner is not None and kind is not None:
                self._bind(node.function, inner.variable, self.written(str(kind.attributes["TypeName"])))
        elif left.kind == "VariableExpression":
            self._bind(node.function, left.variable, right)
        elif left.kind == "ArrayLiteral":
            for one in left.children:
                self._bind(node.function, one.variable, None)

    def _bind(self, owner: Node, name: str, value: Node | str | None) -> None:
        self._bindings.setdefault((id(owner), name), []).append(value)

    def _delegate_argument(self, block: Node) -> str | None:
        around = block.parent
        kind = around.get("Type") if around is not None and around.kind == "ConvertExpression" else None
        if kind is not None and str(kind.attributes["TypeName"]).endswith("MatchEvaluator"):
            return "System.Text.RegularExpressions.Match"
        return None

    # Expressions

    def _variableexpression(self, node: Node) -> Value | None:
        name = node.variable
        if name in ("null", "true", "false"):
            return None if name == "null" else Value("System.Boolean")
        if name.startswith("env:"):
            return Value("System.String")
        if name in ("_", "psitem"):
            return self._current(node)
        key = (id(node.function), name)
        if key not in self._bindings:
            known = AUTOMATIC_TYPES.get(name)
            return Value(known) if known else None
        if key in self._busy:
            return None
        self._busy.add(key)
        try:
            found = {self._bound(value) for value in self._bindings[key]} - {_NEUTRAL}
        finally:
            self._busy.discard(key)
        only = next(iter(found)) if len(found) == 1 else None
        return only if isinstance(only, Value) else None

    def _bound(self, value: Node | str | None) -> Value | str | None:
        if isinstance(value, Node):
            return _NEUTRAL if value.text.strip().lower() == "$null" else self.of(value)
        return Value(value) if value else None

    def _current(self, node: Node) -> Value | None:
        for above in node.ancestors():
            if above.kind == "CatchClause":
                return Value("System.Management.Automation.ErrorRecord")
            if above.kind in ("ScriptBlockExpression", "SwitchStatement", "FunctionDefinition"):
                return None
        return None

    def _pipeline(self, node: Node) -> Value | None:
        elements = node.all("PipelineElements")
        return self.of(elements[0]) if len(elements) == 1 else None

    def _commandexpression(self, node: Node) -> Value | None:
        return self.of(node.get("Expression"))

    def _command(self, node: Node) -> Value | None:
        elements = node.all("CommandElements")
        name = elements[0].value.lower() if elements else ""
        if name == "new-object":
            created = created_type(node)
            found = self.written(created) if created else None
            return Value(found) if found else None
        known = OUTPUTS.get(name)
        return Value(known) if known else None

    def _parenexpression(self, node: Node) -> Value | None:
        return self.of(node.get("Pipeline"))

    def _convertexpression(self, node: Node) -> Value | None:
        kind = node.get("Type")
        name = str(kind.attributes["TypeName"]) if kind is not None else ""
        if name.lower() in ("pscustomobject", "psobject", "object", "ref", "void"):
            return None
        found = self.written(name)
        return Value(found, self._sealed(found)) if found else None

    def _sealed(self, name: str) -> bool:
        return name.endswith("]") or not self._tables.derived_members.get(re.sub(r"<.*>$", "", name).lower())

    def _typeexpression(self, node: Node) -> Value | None:
        return Value("System.Type")

    def _stringconstantexpression(self, node: Node) -> Value | None:
        return Value("System.String")

    def _expandablestringexpression(self, node: Node) -> Value | None:
        return Value("System.String")

    def _constantexpression(self, node: Node) -> Value | None:
        if re.fullmatch(r"-?\d+", node.value):
            return Value("System.Int32" if abs(int(node.value)) < 2**31 else "System.Int64")
        return Value("System.Double")

    def _arrayexpression(self, node: Node) -> Value | None:
        return Value("System.Object[]")

    def _arrayliteral(self, node: Node) -> Value | None:
        return Value("System.Object[]")

    def _hashtable(self, node: Node) -> Value | None:
        return Value("System.Collections.Hashtable")

    def _scriptblockexpression(self, node: Node) -> Value | None:
        return Value("System.Management.Automation.ScriptBlock")

    def _binaryexpression(self, node: Node) -> Value | None:
        operator = str(node.attributes["Operator"])
        left = self.of(node.get("Left"))
        text = left is not None and left.type == "System.String"
        if operator in _TEXT_OPERATORS or (text and operator in ("Plus", "Ireplace", "Creplace", "Multiply")):
            return Value("System.String")
        if operator in ("Isplit", "Csplit"):
            return Value("System.String[]")
        return None

    def _indexexpression(self, node: Node) -> Value | None:
        target = self.of(node.get("Target"))
        if target is None:
            return None
        element = self._element(target)
        if element:
            return Value(element, target.exact and not target.type.endswith("]"))
        kind = self.lookup(target.type)
        if kind is None:
            return None
        if kind.name == "System.String":
            return Value("System.Char")
        member = self._tables.member(kind, "Item")
        return self._returned(target.type, member.returns) if member else None

    def _memberexpression(self, node: Node) -> Value | None:
        return self._member(node, None)

    def _invokememberexpression(self, node: Node) -> Value | None:
        return self._member(node, len(node.all("Arguments")))

    def _member(self, node: Node, count: int | None) -> Value | None:
        target = node.get("Expression")
        if target is None:
            return None
        if node.attributes["Static"]:
            written = self.written(str(target.attributes.get("TypeName", "")))
        else:
            value = self.of(target)
            written = value.type if value else None
        kind = self.lookup(written) if written else None
        if written is None or kind is None:
            return None
        if node.attributes["Static"] and node.member.lower() == "new":
            return Value(written)
        found = self._tables.member(kind, node.member)
        if found is None or (count is not None and not found.takes(count)):
            return None
        return self._returned(written, found.returns)

    def _returned(self, owner: str, returns: set[str]) -> Value | None:
        if len(returns) != 1:
            return None
        name = next(iter(returns))
        inner = re.search(r"<(.*)>$", owner)
        arguments = inner[1].split(",") if inner else []

        def fill(match: re.Match[str]) -> str:
            at = 1 if match[0] in _SECOND else 0
            return arguments[at] if at < len(arguments) else match[0]

        name = re.sub(r"\bT(?:Key|Value|Result|Source)?(?=$|[\[,>])", fill, name)
        if name in ("System.Object", "System.Void", "System.Object&") or self.lookup(name) is None:
            return None
        return Value(name, self._sealed(name))

    def _element(self, value: Value | None) -> str | None:
        """The type of what a loop over a value gives."""
        if value is None:
            return None
        if value.type.endswith("[]"):
            element = value.type[:-2]
            return None if element == "System.Object" else element
        generic = re.fullmatch(
            r"System\.Collections\.Generic\.(?:List|Queue|Stack|HashSet|IList)`1<(.*)>", value.type
        )
        return None if generic is None or generic[1] == "System.Object" else generic[1]


def created_type(command: Node) -> str | None:
    """The type that New-Object makes, as written; None for COM objects and computed names."""
    elements = command.all("CommandElements")[1:]
    for at, element in enumerate(elements):
        if element.kind == "CommandParameter":
            name = str(element.attributes["ParameterName"]).lower()
            if name == "comobject":
                return None
            if name == "typename" and at + 1 < len(elements):
                return elements[at + 1].value or None
        elif at == 0:
            return element.value or None
    return None
