"""Elements of task XML, for writers of tasks and of triggers."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

from winfleet.task.duration import iso, seconds


def add(parent: ElementTree.Element, tag: str, value: Any) -> None:
    """Append an element with that value; nothing for None."""
    if value is None:
        return
    shown = ("true" if value else "false") if isinstance(value, bool) else str(value)
    ElementTree.SubElement(parent, tag).text = shown.strip()


def add_duration(parent: ElementTree.Element, tag: str, value: int | str | None) -> None:
    """Append a duration; nothing for None."""
    if value is not None:
        add(parent, tag, iso(seconds(value)))


def add_raw(parent: ElementTree.Element, xml: str) -> None:
    """Append elements that were kept as they were found."""
    if xml:
        parent.extend(ElementTree.fromstring(f"<raw>{xml}</raw>"))


def add_content(parent: ElementTree.Element, tag: str, content: str | None) -> None:
    """Append an element that holds XML or, when content is none, text; nothing for None."""
    if content is None:
        return
    node = ElementTree.SubElement(parent, tag)
    try:
        node.extend(ElementTree.fromstring(f"<raw>{content}</raw>"))
    except ElementTree.ParseError:
        node.text = content.strip()
        return
    if not len(node):
        node.text = content.strip()
