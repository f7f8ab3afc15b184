"""Holds task XML to the published schema, whose rules are data (tests/data/task/schema.yml)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

RULES: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "task" / "schema.yml").read_text("utf-8")
)
NAMESPACE = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


def schema_faults(xml: str) -> list[str]:
    """Where the XML breaks the schema; empty: nowhere."""
    root = ElementTree.fromstring(xml)
    faults = list(_element(root, "taskType", "Task"))
    parts = [
        *root.findall(f"{NAMESPACE}Principals/*"),
        *root.findall(f"{NAMESPACE}Triggers/*"),
        *root.findall(f"{NAMESPACE}Actions/*"),
    ]
    ids = [node.get("id") for node in parts if node.get("id")]
    faults += [f"the id {name} is there twice" for name, times in Counter(ids).items() if times > 1]
    principals = {node.get("id") for node in root.findall(f"{NAMESPACE}Principals/*")}
    for actions in root.findall(f"{NAMESPACE}Actions"):
        if actions.get("Context") not in (None, *principals):
            faults.append(f"Context {actions.get('Context')} names no principal")
    version = _number(root.get("version", "1.0"))
    for node in root.iter():
        needed = RULES["versions"].get(_bare(node))
        if needed and version < _number(needed):
            faults.append(f"{_bare(node)} needs version {needed}")
    return faults


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _bare(node: ElementTree.Element) -> str:
    return node.tag.removeprefix(NAMESPACE)


def _element(node: ElementTree.Element, kind: str, where: str) -> Iterator[str]:
    if kind == "any":
        return
    if kind in RULES["simple"]:
        if len(node):
            yield f"{where} holds elements"
        yield from _text(node.text or "", kind, where)
        return
    rule = RULES["complex"][kind]
    yield from _attributes(node, rule, where)
    if "text" in rule:
        yield from _text(node.text or "", rule["text"], where)
        return
    if (node.text or "").strip():
        yield f"{where} holds text"
    yield from _children(node, rule, where)


def _attributes(node: ElementTree.Element, rule: dict[str, Any], where: str) -> Iterator[str]:
    known = {**_inherited(rule, "attributes"), **rule.get("attributes", {})}
    for name, value in node.attrib.items():
        if name not in known:
            yield f"{where} has the attribute {name}"
        else:
            yield from _text(value, known[name].rstrip("!"), f"{where}@{name}")
    for name, kind in known.items():
        if kind.endswith("!") and name not in node.attrib:
            yield f"{where} lacks the attribute {name}"


def _inherited(rule: dict[str, Any], part: str) -> dict[str, Any]:
    base = RULES["complex"].get(rule.get("base"), {})
    return dict(base.get(part, {}))


def _children(node: ElementTree.Element, rule: dict[str, Any], where: str) -> Iterator[str]:
    known = {**_inherited(rule, "children"), **rule["children"]}
    names = [_bare(child) for child in node]
    counted = Counter(names)
    for child in node:
        if _bare(child) not in known:
            yield f"{where} holds {child.tag}"
            continue
        kind = str(known[_bare(child)]).partition(" ")[0]
        yield from _element(child, kind, f"{where}/{_bare(child)}")
    if rule["order"] == "choice":
        if not rule.get("least", 0) <= len(names) <= rule["most"]:
            yield f"{where} holds {len(names)} elements"
        return
    for name, spec in known.items():
        often = str(spec).partition(" ")[2]
        least, most = (0, 1) if often == "maybe" else (1, int(often or 1))
        if not least <= counted[name] <= most:
            yield f"{where} holds {name} {counted[name]} times"
    if rule["order"] == "sequence":
        places = [list(known).index(name) for name in names if name in known]
        if places != sorted(places):
            yield f"{where}: {', '.join(names)} are not in order"
    if "one_of" in rule and sum(counted[name] for name in rule["one_of"]) != 1:
        yield f"{where} holds not one of {', '.join(rule['one_of'])}"


def _text(text: str, kind: str, where: str) -> Iterator[str]:
    rule = RULES["simple"][kind]
    if "pattern" in rule and not re.fullmatch(rule["pattern"], text):
        yield f"{where}: {text!r} is no {kind}"
    if "integer" in rule:
        low, high = rule["integer"]
        if not re.fullmatch(r"\d+", text) or not low <= int(text) <= high:
            yield f"{where}: {text!r} is no {kind}"
    if "duration" in rule:
        low, high = rule["duration"]
        found = _DURATION.fullmatch(text)
        if found is None or not any(found.groups()):
            yield f"{where}: {text!r} is no duration"
            return
        days, hours, minutes, rest = (int(part or 0) for part in found.groups())
        length = ((days * 24 + hours) * 60 + minutes) * 60 + rest
        if length < low or (high is not None and length > high):
            yield f"{where}: {text!r} is no {kind}"
