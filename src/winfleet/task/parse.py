"""Task XML read: both shapes that Windows gives.

Windows keeps a task in a "stored" shape that differs from what was submitted: other order, most defaults
dropped (docs/facts/windows.md#stored-shape-of-a-task). Reading fills the documented defaults, so both shapes of
one task give equal models. What no published schema has is kept as it was found.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

from winfleet.answer import ModelError
from winfleet.task.action import KINDS, TEXTS, Action, ComHandler, Exec, OtherAction, SendEmail
from winfleet.task.model import Principal, Settings, Task
from winfleet.task.schema import KNOWN_PLACES, REGISTRATION, SETTINGS
from winfleet.task.trigger_parse import parse_trigger
from winfleet.task.xml_read import foreign, inner, parsed, text_of, value_of


def parse_task(path: str, xml: str) -> Task:
    """The task of an XML in either shape, defaults filled in. Raises ModelError."""
    root = parsed(xml, f"task {path}")
    if root.tag != "Task":
        raise ModelError(f"task {path}: the XML is no task but <{root.tag}>")
    registration: dict[str, Any] = {
        name: text_of(root, f"RegistrationInfo/{tag}") for name, tag in REGISTRATION
    }
    triggers, actions, data = root.find("Triggers"), root.find("Actions"), root.find("Data")
    settings = root.find("Settings")
    unknown = {place: foreign(root.find(place or "."), known) for place, known in KNOWN_PLACES.items()}
    if data is not None and len(data):
        unknown["Data"] = foreign(data, frozenset())
    return Task(
        path=path,
        actions=tuple(_action(node) for node in actions) if actions is not None else (),
        triggers=tuple(parse_trigger(node) for node in triggers) if triggers is not None else (),
        principal=_principal(root.find("Principals/Principal")),
        settings=_settings(ElementTree.Element("Settings") if settings is None else settings),
        data=None if data is None or len(data) else (data.text or "").strip(),
        schema_version=root.get("version"),
        foreign=tuple((place, xml) for place, xml in unknown.items() if xml),
        **registration,
    )


def _settings(node: ElementTree.Element) -> Settings:
    return Settings(**{name: value_of(node, place, kind, default) for name, place, kind, default in SETTINGS})


def _principal(node: ElementTree.Element | None) -> Principal:
    if node is None:
        return Principal(run_level="LeastPrivilege")
    privileges = node.find("RequiredPrivileges")
    return Principal(
        user=text_of(node, "UserId"),
        group=text_of(node, "GroupId"),
        logon_type=text_of(node, "LogonType"),  # type: ignore[arg-type]
        run_level=text_of(node, "RunLevel") or "LeastPrivilege",  # type: ignore[arg-type]
        id=node.get("id"),
        display_name=text_of(node, "DisplayName"),
        process_token_sid_type=text_of(node, "ProcessTokenSidType"),
        required_privileges=None
        if privileges is None
        else frozenset((one.text or "").strip() for one in privileges),
    )


def _action(node: ElementTree.Element) -> Action:
    kind = KINDS.get(node.tag)
    if kind is None:
        return OtherAction(node.tag, foreign(node, frozenset()), node.get("id"))
    values: dict[str, Any] = {name: text_of(node, tag) or None for name, tag in TEXTS[kind]}
    # The first text of each kind but ShowMessage's title must be there; "" is what a broken one has.
    for required in ("command", "class_id", "server", *(() if kind is SendEmail else ("body",))):
        if required in values and values[required] is None:
            values[required] = ""
    if kind is Exec:
        values["foreign"] = foreign(node, frozenset(tag for _, tag in TEXTS[kind]))
    if kind is ComHandler:
        data = node.find("Data")
        values["data"] = None if data is None else inner(data)
    if kind is SendEmail:
        values["header_fields"] = tuple(
            (text_of(one, "Name") or "", text_of(one, "Value") or "")
            for one in node.findall("HeaderFields/HeaderField")
        )
        values["attachments"] = tuple((one.text or "").strip() for one in node.findall("Attachments/File"))
    return kind(id=node.get("id"), **values)
