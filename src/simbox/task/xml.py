"""Task XML: read with positions, and written as the service writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from simbox.errors import WindowsError, com_error
from simbox.task import schema

_MESSAGES = {
    0x80041316: "The task XML contains an unexpected node.",
    0x80041317: "The task XML contains an element or attribute from an unexpected namespace.",
    0x80041318: "The task XML contains a value which is incorrectly formatted or out of range.",
    0x80041319: "The task XML is missing a required element or attribute.",
    0x8004131A: "The task XML is malformed.",
}


@dataclass
class Node:
    """An element: name without namespace, attributes, text, children, and where it stands (1-based)."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list[Node] = field(default_factory=list)
    line: int = 0
    column: int = 0

    def child(self, name: str) -> Node | None:
        """The first child of that name."""
        return next((node for node in self.children if node.name == name), None)

    def find(self, path: str) -> Node | None:
        """The element at `A/B/C` below this one."""
        node: Node | None = self
        for name in path.split("/"):
            node = node.child(name) if node else None
        return node

    def value(self, path: str, default: str = "") -> str:
        """Stripped text of the element at that path."""
        node = self.find(path)
        return node.text.strip() if node is not None else default

    def flag(self, path: str, default: bool) -> bool:
        """Boolean at that path."""
        return self.value(path, str(default)).lower() in ("true", "1")

    def put(self, path: str, text: str) -> None:
        """Set the text at that path, making the elements on the way."""
        node = self
        for name in path.split("/"):
            found = node.child(name)
            if found is None:
                found = Node(name)
                node.children.append(found)
            node = found
        node.text = text

    def drop(self, name: str) -> None:
        """Remove the children of that name."""
        self.children = [node for node in self.children if node.name != name]


def fault(hresult: int, node: Node, detail: str = "") -> WindowsError:
    """An error with the service's text and the position, as in `(12,6):Interval:PT5S`."""
    where = f"({node.line},{node.column}):{node.name}:{detail}"
    return com_error(hresult, f"{_MESSAGES[hresult]}\r\n{where} (Exception from HRESULT: 0x{hresult:08X})")


def read(text: str) -> Node:
    """Parse well-formed task XML. Raises WindowsError SCHED_E_MALFORMEDXML or SCHED_E_NAMESPACE."""
    declaration = re.match(r"\s*<\?xml[^>]*encoding=[\"']([^\"']+)[\"'][^>]*\?>", text)
    if declaration and declaration[1].lower() not in ("utf-16", "unicode", "utf-16le"):
        # A COM string is UTF-16; another declaration makes the reader give up at its end.
        raise com_error(
            0x8004131A,
            f"{_MESSAGES[0x8004131A]}\r\n(1,{declaration.end() + 1})::ERROR: unable to switch the encoding "
            "(Exception from HRESULT: 0x8004131A)",
        )
    body = text[declaration.end() :] if declaration else text
    skipped = text[: declaration.end()].count("\n") if declaration else 0
    parser = expat.ParserCreate(namespace_separator=" ")
    root: list[Node] = []
    stack: list[Node] = []

    def position() -> tuple[int, int]:
        return parser.CurrentLineNumber + skipped, parser.CurrentColumnNumber + 1

    def start(name: str, attributes: dict[str, str]) -> None:
        namespace, _, local = name.rpartition(" ")
        node = Node(local, dict(attributes), "", [], *position())
        if namespace != schema.NAMESPACE and not (stack and stack[-1].name in ("Data", "any")):
            raise fault(0x80041317, node)
        (stack[-1].children if stack else root).append(node)
        stack.append(node)

    def data(chunk: str) -> None:
        if stack:
            stack[-1].text += chunk

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: stack.pop()
    parser.CharacterDataHandler = data
    try:
        parser.Parse(body.strip() if not declaration else body.lstrip(), True)
    except expat.ExpatError as error:
        raise com_error(
            0x8004131A,
            f"{_MESSAGES[0x8004131A]}\r\n({error.lineno + skipped},{error.offset + 1})::"
            f"{expat.ErrorString(error.code)} (Exception from HRESULT: 0x8004131A)",
        ) from error
    return root[0]


def write(root: Node) -> str:
    """Text of a document as RegisteredTask.Xml gives it: UTF-16 declared, CRLF, two blanks a level."""
    lines = ['<?xml version="1.0" encoding="UTF-16"?>']
    root.attributes["xmlns"] = schema.NAMESPACE
    lines += _lines(root, 0)
    return "\r\n".join(lines)


def _lines(node: Node, depth: int) -> Iterator[str]:
    pad = "  " * depth
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in node.attributes.items())
    if node.children:
        yield f"{pad}<{node.name}{attributes}>"
        for child in node.children:
            yield from _lines(child, depth + 1)
        yield f"{pad}</{node.name}>"
    elif node.text:
        yield f"{pad}<{node.name}{attributes}>{escape(node.text)}</{node.name}>"
    else:
        yield f"{pad}<{node.name}{attributes} />"
