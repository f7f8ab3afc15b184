"""Typed reading of the JSON that box commands answer (docs/box-commands.md section 2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


class ModelError(ValueError):
    """Raw material of a box does not have the documented shape."""


class Model:
    """Base of all models: a frozen dataclass that JSON output (``pyinfra --json fact``) can print."""

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values; bytes and secrets are not shown."""
        if not dataclasses.is_dataclass(self):
            raise TypeError(f"{type(self).__name__} is no dataclass")
        return {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


def plain(value: Any) -> Any:
    """A JSON-like value of a model or of anything inside one."""
    if isinstance(value, Model):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """value as an object. Raises ModelError."""
    if not isinstance(value, Mapping):
        raise ModelError(f"{what}: an object was expected, not {type(value).__name__}")
    return value


def items(value: Any, what: str) -> list[Any]:
    """value as a list; null is an empty one. Raises ModelError."""
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise ModelError(f"{what}: a list was expected, not {type(value).__name__}")
    return list(value)


def text(value: Mapping[str, Any], key: str) -> str:
    """A text that must be there. Raises ModelError."""
    found = value.get(key)
    if not isinstance(found, str):
        raise ModelError(f"{key}: text was expected, not {found!r}")
    return found


def optional_text(value: Mapping[str, Any], key: str) -> str | None:
    """A text or None. Raises ModelError when it is something else."""
    return None if value.get(key) is None else text(value, key)


def integer(value: Mapping[str, Any], key: str) -> int:
    """A whole number that must be there. Raises ModelError."""
    found = value.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or int(found) != found:
        raise ModelError(f"{key}: a whole number was expected, not {found!r}")
    return int(found)


def optional_integer(value: Mapping[str, Any], key: str) -> int | None:
    """A whole number or None. Raises ModelError when it is something else."""
    return None if value.get(key) is None else integer(value, key)


@dataclasses.dataclass(frozen=True)
class BoxFault(Model):
    """An error that a box answered.

    Attributes: type (.NET exception type or one of ours), message, hresult ("0x80070002" or None), command,
    category and id (FullyQualifiedErrorId).
    """

    type: str
    message: str
    hresult: str | None = None
    command: str | None = None
    category: str | None = None
    id: str | None = None

    @classmethod
    def parse(cls, value: Any) -> BoxFault:
        """From an error object of docs/box-commands.md; a bare text is its message."""
        if not isinstance(value, Mapping):
            return cls("Unknown", str(value))
        named = {
            key: None if value.get(key) is None else str(value[key])
            for key in ("hresult", "command", "category", "id")
        }
        return cls(str(value.get("type") or "Unknown"), str(value.get("message") or ""), **named)

    def __str__(self) -> str:
        code = f" ({self.hresult})" if self.hresult else ""
        return f"{self.type}{code}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Difference(Model):
    """One field that is not as declared.

    Attributes: field (its name, dotted), found and wanted (as text; None: nothing there), secret (values not
    shown).
    """

    field: str
    found: str | None
    wanted: str | None
    secret: bool = False
