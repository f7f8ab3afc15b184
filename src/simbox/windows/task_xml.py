"""Task XML: read with positions, validated with the service's codes, written in the shape that the service
stores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from simbox.windows import task_schema as schema
from simbox.windows.errors import WindowsError, com_error

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


def validate(root: Node) -> None:
    """Check a document against the schema. Raises WindowsError with the code of the first fault."""
    if root.name != "Task":
        raise fault(0x80041316, root)
    if root.attributes.get("version", "1.0") not in schema.VERSIONS:
        raise fault(0x80041318, root, root.attributes["version"])
    seen: set[str] = set()
    for node in root.children:
        if node.name not in ("RegistrationInfo", "Triggers", "Principals", "Settings", "Data", "Actions"):
            raise fault(0x80041316, node)
        if node.name in seen:
            raise fault(0x80041316, node)
        seen.add(node.name)
    if (actions := root.child("Actions")) is None:
        raise fault(0x80041319, root, "Actions")
    _check_children(root.child("RegistrationInfo"), schema.REGISTRATION)
    _check_children(root.child("Settings"), schema.SETTINGS)
    restart = root.find("Settings/RestartOnFailure")
    for name in ("Interval", "Count") if restart else ():
        if restart and restart.child(name) is None:
            raise fault(0x80041319, restart, name)
    triggers = root.child("Triggers")
    for trigger in triggers.children if triggers else ():
        _check_trigger(trigger)
    if triggers and len(triggers.children) > schema.MAXIMUM_TRIGGERS:
        raise fault(0x80041316, triggers)
    _check_principals(root, actions)
    _check_actions(actions)
    if root.value("Settings/DeleteExpiredTaskAfter") not in ("", "PT0S") and not any(
        trigger.child("EndBoundary") for trigger in (triggers.children if triggers else ())
    ):
        raise fault(0x80041319, root.find("Settings/DeleteExpiredTaskAfter") or root, "EndBoundary")


def _check_children(parent: Node | None, specs: dict[str, Any]) -> None:
    if parent is None or "any" in specs:
        return
    seen: set[str] = set()
    for node in parent.children:
        if node.name not in specs or node.name in seen:
            raise fault(0x80041316, node)
        seen.add(node.name)
        _check_content(node, specs[node.name])


def _check_content(node: Node, spec: object) -> None:
    if spec == "any":
        return
    if isinstance(spec, dict):
        _check_children(node, spec)
        return
    if node.children:
        raise fault(0x80041316, node.children[0])
    assert callable(spec)
    if not spec(node.text):
        raise fault(0x80041318, node, node.text.strip())


def _check_trigger(trigger: Node) -> None:
    if trigger.name not in schema.TRIGGERS:
        raise fault(0x80041316, trigger)
    _check_children(trigger, schema.TRIGGERS[trigger.name])
    if trigger.name in ("TimeTrigger", "CalendarTrigger") and trigger.child("StartBoundary") is None:
        raise fault(0x80041319, trigger, "StartBoundary")
    if (
        trigger.name == "CalendarTrigger"
        and sum(node.name in schema.SCHEDULES for node in trigger.children) != 1
    ):
        raise fault(0x80041319, trigger, "ScheduleByDay")
    if trigger.name == "EventTrigger" and not trigger.value("Subscription"):
        raise fault(0x80041319, trigger, "Subscription")
    repetition = trigger.child("Repetition")
    if repetition is None:
        return
    if repetition.child("Interval") is None:
        raise fault(0x80041319, repetition, "Interval")
    duration = schema.seconds(repetition.value("Duration"))
    if duration is not None and duration < (schema.seconds(repetition.value("Interval")) or 0):
        raise fault(0x80041318, repetition.child("Duration") or repetition, repetition.value("Duration"))


def _check_principals(root: Node, actions: Node) -> None:
    principals = root.child("Principals")
    known: list[str] = []
    for principal in principals.children if principals else ():
        if principal.name != "Principal" or len(known) == 1:
            raise fault(0x80041316, principal)
        _check_children(principal, schema.PRINCIPAL)
        if principal.child("UserId") and principal.child("GroupId"):
            raise fault(0x80041316, principal.child("GroupId") or principal)
        known.append(principal.attributes.get("id", ""))
    context = actions.attributes.get("Context")
    if context is not None and context not in known:
        raise fault(0x80041318, actions, context)


def _check_actions(actions: Node) -> None:
    if not actions.children:
        raise fault(0x80041319, actions, "Exec")
    if len(actions.children) > schema.MAXIMUM_ACTIONS:
        raise fault(0x80041316, actions.children[schema.MAXIMUM_ACTIONS])
    for action in actions.children:
        if action.name not in schema.ACTIONS:
            raise fault(0x80041316, action)
        _check_children(action, schema.ACTIONS[action.name])
        if action.name == "Exec" and not action.value("Command"):
            raise fault(0x80041319, action, "Command")


def stored(root: Node, sid_of: Callable[[str], str]) -> Node:
    """The document as the service keeps it: sections and settings in its order, defaults left out, SIDs
    for names.

    Args:
        root: a validated document.
        sid_of: resolves an account name; its WindowsError passes through.
    """
    made = Node("Task", {"version": _version(root)})
    made.children.append(_registration(root.child("RegistrationInfo")))
    made.children.append(_principals(root.child("Principals"), sid_of))
    made.children.append(_settings(root.child("Settings")))
    triggers = Node("Triggers")
    for trigger in (root.child("Triggers") or triggers).children:
        triggers.children.append(
            _ordered(trigger, list(schema.TRIGGERS[trigger.name]), schema.TRIGGER_DEFAULTS)
        )
    made.children.append(triggers)
    given = root.child("Actions")
    assert given is not None
    actions = Node("Actions", {"Context": given.attributes.get("Context", "Author")})
    actions.children = [_plain(action) for action in given.children]
    made.children.append(actions)
    if data := root.child("Data"):
        made.children.append(_plain(data))
    return made


def _version(root: Node) -> str:
    needed = root.attributes.get("version", "1.2")
    if root.flag("Settings/UseUnifiedSchedulingEngine", False):
        needed = max(needed, "1.3")
    if root.find("Settings/MaintenanceSettings") or root.flag("Settings/Volatile", False):
        needed = max(needed, "1.4")
    return max(needed, "1.2")


def _registration(given: Node | None) -> Node:
    made = Node("RegistrationInfo")
    for name in schema.REGISTRATION:
        if given and (text := given.value(name)):
            made.put(name, text)
    return made


def _principals(given: Node | None, sid_of: Callable[[str], str]) -> Node:
    made = Node("Principals")
    principal = given.children[0] if given and given.children else Node("Principal", {"id": "Author"})
    result = Node("Principal", dict(principal.attributes) or {"id": "Author"})
    for name in schema.PRINCIPAL:
        node = principal.child(name)
        if node is None:
            continue
        text = node.text.strip()
        if name in ("UserId", "GroupId") and text:
            text = sid_of(text)
        if name == "RunLevel" and text == "LeastPrivilege":
            continue
        if name == "LogonType" and result.value("UserId") in ("S-1-5-18", "S-1-5-19", "S-1-5-20"):
            continue
        if name == "LogonType" and text == "Group":
            continue
        result.children.append(_plain(node) if node.children else Node(name, {}, text))
    made.children.append(result)
    return made


def _settings(given: Node | None) -> Node:
    source = given or Node("Settings")
    for name, text in schema.ALWAYS_STORED.items():
        if source.child(name) is None:
            source.put(name, text)
    for name, text in schema.IDLE_ALWAYS_STORED.items():
        if source.find(f"IdleSettings/{name}") is None:
            source.put(f"IdleSettings/{name}", text)
    return _ordered(source, list(schema.SETTINGS), schema.SETTING_DEFAULTS)


def _ordered(given: Node, order: list[str], defaults: dict[str, str]) -> Node:
    made = Node(given.name, dict(given.attributes))
    children = sorted(given.children, key=lambda node: order.index(node.name) if node.name in order else 99)
    for node in children:
        if node.children:
            nested = {
                "RestartOnFailure": ["Count", "Interval"],
                "IdleSettings": ["Duration", "WaitTimeout", "StopOnIdleEnd", "RestartOnIdle"],
                "Repetition": ["Interval", "Duration", "StopAtDurationEnd"],
            }.get(node.name)
            made.children.append(_ordered(node, nested, defaults) if nested else _plain(node))
        elif node.name in schema.SCHEDULES or given.name in schema.SCHEDULES:
            made.children.append(_plain(node))
        elif text := _normal(node.name, node.text.strip()):
            default = defaults.get(node.name)
            if default is None or not _same(text, default):
                made.children.append(Node(node.name, {}, text))
    return made


def _same(text: str, default: str) -> bool:
    length = schema.seconds(text)
    return text == default or (length is not None and length == schema.seconds(default))


def _normal(name: str, text: str) -> str:
    """Booleans as true and false; a whole number of hours in minutes becomes hours (PT60M is stored as
    PT1H).
    """
    if name in schema.BOOLEANS:
        return {"1": "true", "0": "false"}.get(text, text.lower())
    minutes = re.fullmatch(r"PT(\d+)M", text)
    if minutes and int(minutes[1]) >= 60 and int(minutes[1]) % 60 == 0:
        return f"PT{int(minutes[1]) // 60}H"
    return text


def _plain(node: Node) -> Node:
    children = [_plain(child) for child in node.children]
    return Node(node.name, dict(node.attributes), "" if children else node.text.strip(), children)


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
