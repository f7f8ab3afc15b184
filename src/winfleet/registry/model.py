"""Registry values of a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, items, mapping, text


@dataclass(frozen=True)
class RegistryValue(Model):
    """One value. Attributes: name, kind (String, ExpandString, DWord, QWord, MultiString, Binary), data."""

    name: str
    kind: str
    data: Any


@dataclass(frozen=True)
class RegistryKey(Model):
    """Answer of Get-BoxRegistry. Attributes: exists, values."""

    exists: bool
    values: tuple[RegistryValue, ...]

    @classmethod
    def parse(cls, value: Any) -> RegistryKey:
        """From the JSON value. Raises ModelError."""
        data = mapping(value, "Get-BoxRegistry")
        entries = [mapping(entry, "Values") for entry in items(data.get("Values"), "Values")]
        return cls(
            bool(data.get("Exists")),
            tuple(RegistryValue(text(one, "Name"), text(one, "Kind"), one.get("Data")) for one in entries),
        )

    def get(self, name: str) -> RegistryValue | None:
        """The value of that name (case does not count), or None."""
        return next((one for one in self.values if one.name.lower() == name.lower()), None)
