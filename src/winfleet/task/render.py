"""Task XML written: the explicit shape, in the order of the schema (MS-TSCH 2.5)."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

from winfleet.task.action import TEXTS, Action, ComHandler, Exec, OtherAction, SendEmail, action_kind
from winfleet.task.model import Principal, Settings, Task
from winfleet.task.schema import (
    DEFAULT_PRINCIPAL_ID,
    LATER_EVENT_FIELDS,
    LATER_EVENT_VERSION,
    NAMESPACE,
    NEEDS_VERSION,
    REGISTRATION,
    SERVICE_SIDS,
    SETTINGS,
    TRIGGERS_NEED_VERSION,
)
from winfleet.task.trigger import EventTrigger
from winfleet.task.trigger_render import trigger_element, write_trigger
from winfleet.task.xml_write import add, add_content, add_duration, add_raw


def version_number(version: str) -> tuple[int, ...]:
    """A schema version for comparing: "1.10" is above "1.9"."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def required_version(task: Task) -> str:
    """The lowest schema version that knows what this task says; a higher one that was observed is kept."""
    return max(_versions(task), key=version_number)


def _versions(task: Task) -> Iterator[str]:
    yield "1.2"
    if task.schema_version:
        yield task.schema_version
    defaults = {name: default for name, _, _, default in SETTINGS}
    for name, version in NEEDS_VERSION.items():
        if getattr(task.settings, name) not in (None, defaults[name]):
            yield version
    if task.principal.process_token_sid_type or task.principal.required_privileges:
        yield "1.3"
    for trigger in task.triggers or ():
        yield TRIGGERS_NEED_VERSION.get(trigger_element(trigger), "1.2")
        if isinstance(trigger, EventTrigger) and any(
            getattr(trigger, name) not in (None, default) for name, default in LATER_EVENT_FIELDS.items()
        ):
            yield LATER_EVENT_VERSION


def render_task(task: Task) -> str:
    """Task XML without a declaration: as a string it has no encoding that could contradict it (W20)."""
    root = ElementTree.Element("Task", {"version": required_version(task), "xmlns": NAMESPACE})
    foreign = dict(task.foreign)
    registration = ElementTree.SubElement(root, "RegistrationInfo")
    for name, tag in REGISTRATION:
        add(registration, tag, getattr(task, name))
    add_raw(registration, foreign.get("RegistrationInfo", ""))
    triggers = ElementTree.SubElement(root, "Triggers")
    for trigger in task.triggers or ():
        write_trigger(triggers, trigger)
    context = task.principal.id or DEFAULT_PRINCIPAL_ID
    principals = ElementTree.SubElement(root, "Principals")
    _write_principal(principals, task.principal, context, foreign.get("Principals/Principal", ""))
    _write_settings(ElementTree.SubElement(root, "Settings"), task.settings, foreign)
    if task.data is None and "Data" in foreign:
        add_raw(ElementTree.SubElement(root, "Data"), foreign["Data"])
    add(root, "Data", task.data)
    actions = ElementTree.SubElement(root, "Actions", {"Context": context})
    for action in task.actions or ():
        _write_action(actions, action)
    add_raw(root, foreign.get("", ""))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode")


def _write_action(parent: ElementTree.Element, action: Action) -> None:
    node = ElementTree.SubElement(parent, action_kind(action), {"id": action.id} if action.id else {})
    if isinstance(action, OtherAction):
        add_raw(node, action.xml)
        return
    for name, tag in TEXTS[type(action)]:
        add(node, tag, getattr(action, name))
    if isinstance(action, Exec):
        add_raw(node, action.foreign)
    if isinstance(action, ComHandler):
        add_content(node, "Data", action.data)
    if isinstance(action, SendEmail):
        _write_mail(node, action)


def _write_mail(node: ElementTree.Element, action: SendEmail) -> None:
    if action.header_fields:
        fields = ElementTree.SubElement(node, "HeaderFields")
        for name, value in action.header_fields:
            field = ElementTree.SubElement(fields, "HeaderField")
            add(field, "Name", name)
            add(field, "Value", value)
    if action.attachments:
        files = ElementTree.SubElement(node, "Attachments")
        for path in action.attachments:
            add(files, "File", path)


def _write_principal(parent: ElementTree.Element, principal: Principal, context: str, foreign: str) -> None:
    node = ElementTree.SubElement(parent, "Principal", {"id": context})
    add(node, "UserId", principal.user)
    add(node, "GroupId", principal.group)
    if (principal.user or "").upper() not in SERVICE_SIDS and principal.group is None:
        add(node, "LogonType", principal.logon_type)
    add(node, "DisplayName", principal.display_name)
    add(node, "RunLevel", principal.run_level)
    add(node, "ProcessTokenSidType", principal.process_token_sid_type)
    if principal.required_privileges:
        privileges = ElementTree.SubElement(node, "RequiredPrivileges")
        for name in sorted(principal.required_privileges):
            add(privileges, "Privilege", name)
    add_raw(node, foreign)


def _write_settings(parent: ElementTree.Element, settings: Settings, foreign: dict[str, str]) -> None:
    for name, place, kind, default in SETTINGS:
        value = getattr(settings, name)
        if value is None or (name in NEEDS_VERSION and value == default):
            continue
        outer, _, inner = place.rpartition("/")
        node = _container(parent, outer) if outer else parent
        (add_duration if kind == "duration" else add)(node, inner, value)
    for place, xml in foreign.items():
        if place.startswith("Settings"):
            add_raw(_container(parent, place.removeprefix("Settings").lstrip("/")), xml)


def _container(parent: ElementTree.Element, tag: str) -> ElementTree.Element:
    if not tag:
        return parent
    found = parent.find(tag)
    return found if found is not None else ElementTree.SubElement(parent, tag)
