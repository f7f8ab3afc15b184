"""Files, folders and junctions of a box."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Literal

from winfleet.answer import BoxFault, Model, ModelError, items, mapping, optional_integer, optional_text, text

Kind = Literal["absent", "file", "directory", "junction", "symboliclink"]
_KINDS: tuple[Kind, ...] = ("absent", "file", "directory", "junction", "symboliclink")


@dataclass(frozen=True)
class FileState(Model):
    """One path.

    Attributes: path (as asked), kind, size_bytes, sha256 (lower case hex; only when asked), attributes
    (names), last_write_time_utc (ISO 8601 text), target (of a junction or link), content (only when asked and
    small enough), fault (why it could not be read, e.g. a sharing violation).
    """

    path: str
    kind: Kind
    size_bytes: int | None = None
    sha256: str | None = None
    attributes: frozenset[str] = frozenset()
    last_write_time_utc: str | None = None
    target: str | None = None
    content: bytes | None = None
    fault: BoxFault | None = None

    @property
    def exists(self) -> bool:
        """True for anything but absent."""
        return self.kind != "absent"

    @property
    def read_only(self) -> bool:
        """True when the attribute ReadOnly is set."""
        return "ReadOnly" in self.attributes

    @classmethod
    def parse(cls, value: Any) -> FileState:
        """From one item of Get-BoxFile. Raises ModelError."""
        data = mapping(value, "Get-BoxFile")
        content = optional_text(data, "ContentBase64")
        sha256 = optional_text(data, "Sha256")
        return cls(
            path=text(data, "Path"),
            kind=_kind(data.get("Kind")),
            size_bytes=optional_integer(data, "SizeBytes"),
            sha256=sha256.lower() if sha256 else None,
            attributes=frozenset(str(item) for item in items(data.get("Attributes"), "Attributes")),
            last_write_time_utc=optional_text(data, "LastWriteTimeUtc"),
            target=optional_text(data, "Target"),
            content=None if content is None else base64.b64decode(content),
            fault=None if data.get("Error") is None else BoxFault.parse(data["Error"]),
        )


@dataclass(frozen=True)
class ChildItem(Model):
    """One entry of a folder. Attributes: name (relative to the folder), kind, size_bytes,
    last_write_time_utc, sha256 (lower case hex; of files, only when asked)."""

    name: str
    kind: Kind
    size_bytes: int | None
    last_write_time_utc: str | None
    sha256: str | None = None


@dataclass(frozen=True)
class Listing(Model):
    """Answer of Get-BoxChildItem. Attributes: exists (the folder itself), items."""

    exists: bool
    items: tuple[ChildItem, ...]

    @classmethod
    def parse(cls, value: Any) -> Listing:
        """From the JSON value. Raises ModelError."""
        data = mapping(value, "Get-BoxChildItem")
        entries = [mapping(entry, "Items") for entry in items(data.get("Items"), "Items")]
        return cls(
            bool(data.get("Exists")),
            tuple(
                ChildItem(
                    text(entry, "Name"),
                    _kind(entry.get("Kind")),
                    optional_integer(entry, "SizeBytes"),
                    optional_text(entry, "LastWriteTimeUtc"),
                    (optional_text(entry, "Sha256") or "").lower() or None,
                )
                for entry in entries
            ),
        )


def _kind(value: Any) -> Kind:
    for kind in _KINDS:
        if value == kind:
            return kind
    raise ModelError(f"Kind: one of {', '.join(_KINDS)} was expected, not {value!r}")
