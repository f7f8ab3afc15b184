"""Task XML held to the schema, with the codes and places that the service tells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simbox.task import schema
from simbox.task.xml import Node, fault

_UNEXPECTED = 0x80041316
_VALUE = 0x80041318
_MISSING = 0x80041319
_SECTIONS = ("RegistrationInfo", "Triggers", "Principals", "Settings", "Data", "Actions")


def validate(root: Node) -> None:
    """Check a document against the schema. Raises WindowsError with the code of the first fault."""
    if root.name != "Task":
        raise fault(_UNEXPECTED, root)
    if root.attributes.get("version", "1.0") not in schema.VERSIONS:
        raise fault(_VALUE, root, root.attributes["version"])
    seen: set[str] = set()
    for node in root.children:
        if node.name not in _SECTIONS or node.name in seen:
            raise fault(_UNEXPECTED, node)
        seen.add(node.name)
    if (actions := root.child("Actions")) is None:
        raise fault(_MISSING, root, "Actions")
    _check(root.child("RegistrationInfo"), schema.REGISTRATION)
    _check(root.child("Settings"), schema.SETTINGS)
    triggers = root.child("Triggers")
    for trigger in triggers.children if triggers else ():
        _check_trigger(trigger)
    if triggers and len(triggers.children) > schema.MAXIMUM_TRIGGERS:
        raise fault(_UNEXPECTED, triggers)
    _check_principals(root, actions)
    _check_actions(actions)
    _check_ids(root)
    _check_settings(root)


def _check(parent: Node | None, specs: dict[str, Any]) -> None:
    """The children of an element: known, each at most once, and those that must be there."""
    if parent is None:
        return
    seen: set[str] = set()
    for node in parent.children:
        if node.name not in specs or node.name in seen:
            raise fault(_UNEXPECTED, node)
        seen.add(node.name)
        _check_content(node, specs[node.name])
    for name in schema.REQUIRED.get(parent.name, ()):
        if name not in seen:
            raise fault(_MISSING, parent, name)


def _check_content(node: Node, spec: object) -> None:
    if spec == "any":
        return
    if isinstance(spec, dict):
        _check(node, spec)
        return
    if isinstance(spec, schema.Many):
        for number, child in enumerate(node.children):
            if child.name != spec.name or number >= spec.most:
                raise fault(_UNEXPECTED, child)
            _check_content(child, spec.content)
        return
    if node.children:
        raise fault(_UNEXPECTED, node.children[0])
    assert callable(spec)
    if not spec(node.text):
        raise fault(_VALUE, node, node.text.strip())


def _check_trigger(trigger: Node) -> None:
    if trigger.name not in schema.TRIGGERS:
        raise fault(_UNEXPECTED, trigger)
    _check(trigger, schema.TRIGGERS[trigger.name])
    schedules = sum(node.name in schema.SCHEDULES for node in trigger.children)
    if trigger.name == "CalendarTrigger" and schedules != 1:
        raise fault(_MISSING, trigger, "ScheduleByDay")
    repetition = trigger.child("Repetition")
    if repetition is None:
        return
    duration = schema.seconds(repetition.value("Duration"))
    if duration is not None and duration < (schema.seconds(repetition.value("Interval")) or 0):
        raise fault(_VALUE, repetition.child("Duration") or repetition, repetition.value("Duration"))


def _check_principals(root: Node, actions: Node) -> None:
    principals = root.child("Principals")
    known: list[str] = []
    for principal in principals.children if principals else ():
        if principal.name != "Principal" or len(known) == 1:
            raise fault(_UNEXPECTED, principal)
        _check(principal, schema.PRINCIPAL)
        if principal.child("UserId") and principal.child("GroupId"):
            raise fault(_UNEXPECTED, principal.child("GroupId") or principal)
        known.append(principal.attributes.get("id", ""))
    context = actions.attributes.get("Context")
    if context is not None and context not in known:
        raise fault(_VALUE, actions, context)


def _check_actions(actions: Node) -> None:
    if not actions.children:
        raise fault(_MISSING, actions, "Exec")
    if len(actions.children) > schema.MAXIMUM_ACTIONS:
        raise fault(_UNEXPECTED, actions.children[schema.MAXIMUM_ACTIONS])
    for action in actions.children:
        if action.name not in schema.ACTIONS:
            raise fault(_UNEXPECTED, action)
        _check(action, schema.ACTIONS[action.name])
        if action.name == "Exec" and not action.value("Command"):
            raise fault(_MISSING, action, "Command")


def _check_ids(root: Node) -> None:
    seen: set[str] = set()
    sections: Iterable[Node | None] = (root.child(name) for name in ("Principals", "Triggers", "Actions"))
    for section in sections:
        for node in section.children if section else ():
            name = node.attributes.get("id")
            if name is None:
                continue
            if name in seen or not schema.ID(name):
                raise fault(_VALUE, node, name)
            seen.add(name)


def _check_settings(root: Node) -> None:
    expires = root.find("Settings/DeleteExpiredTaskAfter")
    triggers = root.child("Triggers")
    ends = any(trigger.child("EndBoundary") for trigger in (triggers.children if triggers else ()))
    if expires is not None and not ends:
        raise fault(_MISSING, expires, "EndBoundary")
    deadline = root.find("Settings/MaintenanceSettings/Deadline")
    period = schema.seconds(root.value("Settings/MaintenanceSettings/Period")) or 0
    if deadline is not None and (schema.seconds(deadline.text) or 0) <= period:
        raise fault(_VALUE, deadline, deadline.text.strip())
