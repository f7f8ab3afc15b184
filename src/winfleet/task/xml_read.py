"""Values of task XML elements, for readers of tasks and of triggers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

from winfleet.answer import ModelError
from winfleet.task.duration import seconds
from winfleet.task.schema import NAMESPACE

_TASK = f"{{{NAMESPACE}}}"


def parsed(xml: str, what: str) -> ElementTree.Element:
    """The root of an XML; elements of the task schema under their bare names. Raises ModelError."""
    body = re.sub(r"^\s*<\?xml[^>]*\?>", "", xml.lstrip("\ufeff"))
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise ModelError(f"{what}: no XML: {error}") from error
    for node in root.iter():
        node.tag = node.tag.removeprefix(_TASK)
    return root


def text_of(node: ElementTree.Element, path: str) -> str | None:
    """The text at path without blanks around it, or None."""
    found = node.findtext(path)
    return None if found is None else found.strip()


def value_of(node: ElementTree.Element, path: str, kind: str, default: Any) -> Any:
    """The value at path; default when there is none. kind: text, bool, int or duration. Raises ModelError."""
    found = node.findtext(path)
    if found is None or not (found := found.strip()):
        return default
    return _READERS[kind](found)


def _bool(value: str) -> bool:
    if value.lower() in {"true", "1"}:
        return True
    if value.lower() in {"false", "0"}:
        return False
    raise ModelError(f"neither true nor false: {value!r}")


def _int(value: str) -> int:
    try:
        return int(value)
    except ValueError as error:
        raise ModelError(f"no number: {value!r}") from error


_READERS: dict[str, Callable[[str], Any]] = {"text": str, "bool": _bool, "int": _int, "duration": seconds}


def foreign(node: ElementTree.Element | None, known: frozenset[str]) -> str:
    """The XML of the children that are not known, layout removed; "" when there are none."""
    if node is None:
        return ""
    parts = []
    for child in node:
        if child.tag in known:
            continue
        for one in child.iter():
            one.tail = None
            if len(one) and one.text is not None and not one.text.strip():
                one.text = None
        parts.append(ElementTree.tostring(child, encoding="unicode"))
    return "".join(parts)


def inner(node: ElementTree.Element) -> str | None:
    """What an element holds, text or XML; None when it holds nothing."""
    if len(node):
        return foreign(node, frozenset())
    return (node.text or "").strip() or None
