"""The registry: keys and values in the box's store, and Windows' own keys that its other services keep."""

from __future__ import annotations

import base64
import re
from typing import Any

from simbox.python.answers import Call, Command
from simbox.windows.errors import WindowsError

_KEY = re.compile(r"(?:HKLM|HKEY_LOCAL_MACHINE|HKCU|HKEY_CURRENT_USER):?\\(.+)", re.IGNORECASE)
_KINDS = {
    kind.lower(): kind for kind in ("String", "ExpandString", "DWord", "QWord", "MultiString", "Binary")
}
ENVIRONMENT = r"system\currentcontrolset\control\session manager\environment"


def _split(key: str) -> str:
    """A key's name in the store: hive and path in lower case."""
    match = _KEY.fullmatch(key.strip().rstrip("\\"))
    if match is None:
        raise WindowsError(
            "System.ArgumentException",
            f"'{key}' is no key of HKLM:\\ or HKCU:\\.",
            0x80070057,
            "InvalidArgument",
            "ArgumentException",
        )
    hive = "HKCU" if key.upper().startswith(("HKCU", "HKEY_CURRENT_USER")) else "HKLM"
    return f"{hive}\\{match[1].lower()}"


def _values(call: Call, key: str) -> dict[str, dict[str, Any]] | None:
    """The values of a key by lower-case name, or None when there is no such key."""
    if key == f"HKLM\\{ENVIRONMENT}":
        return {
            name.lower(): {
                "Name": name,
                "Kind": "ExpandString" if "%" in text else "String",
                "Data": text,
            }
            for name, text in call.box.store.get("environment", default={}).items()
        }
    stored: dict[str, Any] = call.box.store.get("registry", default={})
    if key in stored:
        return dict(stored[key])
    if any(other.startswith(key + "\\") for other in stored):
        return {}
    return None


def get(call: Call) -> dict[str, Any]:
    """Get-BoxRegistry."""
    values = _values(call, _split(call.text("Key")))
    if values is None:
        return {"Exists": False, "Values": []}
    wanted = call.get("Name")
    names = sorted(values) if wanted is None else [str(name).lower() for name in wanted]
    return {"Exists": True, "Values": [values[name] for name in names if name in values]}


def _data(kind: str, data: Any) -> Any:
    """Data as the registry keeps it. Raises ValueError."""
    if kind in ("DWord", "QWord"):
        bits = 32 if kind == "DWord" else 64
        number = int(data)
        if not -(1 << (bits - 1)) <= number < 1 << bits:
            raise ValueError(f"{number} does not fit in {kind}")
        return number - (1 << bits) if number >= 1 << (bits - 1) else number
    if kind == "MultiString":
        return [str(item) for item in (data if isinstance(data, list) else [data])]
    if kind == "Binary":
        return base64.b64encode(base64.b64decode(str(data), validate=True)).decode()
    return str(data)


def set_value(call: Call) -> dict[str, Any]:
    """Set-BoxRegistryValue."""
    key, name = _split(call.text("Key")), call.text("Name")
    kind = _KINDS.get(call.text("Kind").lower())
    try:
        if kind is None:
            raise ValueError(f"'{call.text('Kind')}' is no kind of value")
        value = {"Name": name, "Kind": kind, "Data": _data(kind, call.get("Data", ""))}
    except ValueError as error:
        raise WindowsError(
            "System.ArgumentException", str(error), 0x80070057, "InvalidArgument", "ArgumentException"
        ) from error
    present = (_values(call, key) or {}).get(name.lower())
    if present is not None and (present["Kind"], present["Data"]) == (kind, value["Data"]):
        return {"Changed": False}
    if key == f"HKLM\\{ENVIRONMENT}":
        call.box.windows.system.set_environment(name, str(value["Data"]))
    else:
        with call.box.store.change() as state:
            held = state.setdefault("registry", {}).setdefault(key, {})
            value["Name"] = held.get(name.lower(), value)["Name"]
            held[name.lower()] = value
    return {"Changed": True}


def remove_value(call: Call) -> dict[str, Any]:
    """Remove-BoxRegistryValue."""
    key, name = _split(call.text("Key")), call.text("Name")
    if name.lower() not in (_values(call, key) or {}):
        return {"Changed": False}
    if key == f"HKLM\\{ENVIRONMENT}":
        call.box.windows.system.set_environment(name, None)
    else:
        with call.box.store.change() as state:
            state["registry"][key].pop(name.lower(), None)
    return {"Changed": True}


COMMANDS: dict[str, Command] = {
    "get-boxregistry": get,
    "set-boxregistryvalue": set_value,
    "remove-boxregistryvalue": remove_value,
}
