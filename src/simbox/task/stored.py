"""The shape in which the service keeps a task: sections and settings in its own order, most defaults left out."""

from __future__ import annotations

import re
from collections.abc import Callable

from simbox.task import schema
from simbox.task.xml import Node

_SERVICES = ("S-1-5-18", "S-1-5-19", "S-1-5-20")


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
        if name == "LogonType" and result.value("UserId") in _SERVICES:
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
