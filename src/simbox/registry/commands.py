"""The registry: values kept in the box's store, and those keys of Windows that its other services keep."""

from __future__ import annotations

import base64
import re
from typing import Any

from simbox.engines.python.answers import Call, Command, bad_request

_KEY = re.compile(r"(HKLM|HKEY_LOCAL_MACHINE|HKCU|HKEY_CURRENT_USER|HKU|HKEY_USERS):?\\(.+)", re.IGNORECASE)
_HIVES = {"HKEY_LOCAL_MACHINE": "HKLM", "HKEY_CURRENT_USER": "HKCU", "HKEY_USERS": "HKU"}
_KINDS = {
    kind.lower(): kind for kind in ("String", "ExpandString", "DWord", "QWord", "MultiString", "Binary")
}
ENVIRONMENT = r"HKLM\system\currentcontrolset\control\session manager\environment"
_CODE_PAGES = r"HKLM\system\currentcontrolset\control\nls\codepage"
_PRESENT_ON_EVERY_WINDOWS = (
    r"HKLM\software\microsoft\windows\currentversion",
    r"HKLM\software\microsoft\windows nt\currentversion",
    r"HKLM\software\policies\microsoft",
    r"HKLM\system\currentcontrolset\control\filesystem",
    r"HKLM\system\currentcontrolset\services\sharedaccess\parameters\firewallpolicy",
    r"HKCU\software\microsoft\windows\currentversion",
    r"HKCU\environment",
)

Values = dict[str, dict[str, Any]]


def _split(key: str) -> str:
    """A key's name in the store: short hive and path in lower case."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise bad_request(f"'{key}' is no key of HKLM:\\, HKCU:\\ or HKU:\\")
    hive = match[1].upper()
    return f"{_HIVES.get(hive, hive)}\\{match[2].rstrip(chr(92)).lower()}"


def _texts(values: dict[str, str]) -> Values:
    return {name.lower(): {"Name": name, "Kind": "String", "Data": text} for name, text in values.items()}


def _kept_by_services(call: Call, key: str) -> Values:
    """Values that another service of the box keeps."""
    box = call.box
    if key == ENVIRONMENT:
        found = _texts(box.store.get("environment", default={}))
        for value in found.values():
            value["Kind"] = "ExpandString" if "%" in value["Data"] else "String"
        return found
    if key == _CODE_PAGES:
        facts = box.windows.system.session()
        return _texts({"ACP": str(facts["AnsiCodePage"]), "OEMCP": str(facts["OemCodePage"])})
    for store in box.windows.firewall.snapshot()["Stores"]:
        if _split(store["Key"]) == key:
            return _texts({rule["Name"]: rule["Data"] for rule in store["Rules"]})
    return {}


def _values(call: Call, key: str) -> Values | None:
    """The values of a key by lower-case name, or None when there is no such key."""
    stored: dict[str, Values] = call.box.store.get("registry", default={})
    found = _kept_by_services(call, key) | stored.get(key, {})
    if found or key in stored or key in (ENVIRONMENT, _CODE_PAGES):
        return found
    known = (*stored, ENVIRONMENT, _CODE_PAGES, *_PRESENT_ON_EVERY_WINDOWS)
    return {} if any(f"{other}\\".startswith(f"{key}\\") for other in known) else None


def get(call: Call) -> dict[str, Any]:
    """Get-BoxRegistry."""
    values = _values(call, _split(call.text("Key")))
    if values is None:
        return {"Exists": False, "Values": []}
    wanted = call.get("Name")
    names = {str(name).lower() for name in wanted} if wanted is not None else None
    return {
        "Exists": True,
        "Values": [values[name] for name in sorted(values) if names is None or name in names],
    }


def _data(kind: str, data: Any) -> Any:
    """Data as the registry keeps it. Raises ValueError."""
    if kind in ("DWord", "QWord"):
        bits = 32 if kind == "DWord" else 64
        number = 0 if data is None else int(str(data), 0) if isinstance(data, str) else int(data)
        if not -(1 << (bits - 1)) <= number < 1 << bits:
            raise ValueError(f"{number} does not fit in {kind}")
        return number - (1 << bits) if number >= 1 << (bits - 1) else number
    if kind == "MultiString":
        return [str(item) for item in (data if isinstance(data, list) else [data])]
    if kind == "Binary":
        return base64.b64encode(base64.b64decode(str(data or ""), validate=True)).decode()
    return "" if data is None else str(data)


def set_value(call: Call) -> dict[str, Any]:
    """Set-BoxRegistryValue."""
    name, kind = call.text("Name"), _KINDS.get(call.text("Kind").lower())
    if kind is None:
        raise bad_request(f"'{call.text('Kind')}' is no kind of value")
    try:
        data = _data(kind, call.get("Data"))
    except ValueError as error:
        raise bad_request(f"{name} cannot hold that as {kind}: {error}") from error
    key = _split(call.text("Key"))
    present = (_values(call, key) or {}).get(name.lower())
    changed = present is None or (present["Kind"], present["Data"]) != (kind, data)
    if key == ENVIRONMENT:
        if changed:
            call.box.windows.system.set_environment(name, str(data))
        return {"Changed": changed}
    with call.box.store.change() as state:
        held = state.setdefault("registry", {}).setdefault(key, {})
        if changed:
            spelling = present["Name"] if present is not None else name
            held[name.lower()] = {"Name": spelling, "Kind": kind, "Data": data}
    return {"Changed": changed}


def remove_value(call: Call) -> dict[str, Any]:
    """Remove-BoxRegistryValue."""
    key, name = _split(call.text("Key")), call.text("Name")
    if name.lower() not in (_values(call, key) or {}):
        return {"Changed": False}
    if key == ENVIRONMENT:
        call.box.windows.system.set_environment(name, None)
    else:
        with call.box.store.change() as state:
            state["registry"].get(key, {}).pop(name.lower(), None)
    return {"Changed": True}


COMMANDS: dict[str, Command] = {
    "get-boxregistry": get,
    "set-boxregistryvalue": set_value,
    "remove-boxregistryvalue": remove_value,
}
