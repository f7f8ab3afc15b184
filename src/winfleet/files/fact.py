"""Files and folders."""

from __future__ import annotations

from typing import Any

from winfleet.answer import items
from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.files.model import FileState, Listing


class Files(BoxFact[dict[str, FileState]]):
    """For each path (as asked) its state.

    Args: hash (also the SHA-256 of files), max_content_bytes (also the content of files not larger than
    this).
    """

    @staticmethod
    def call(paths: list[str], hash: bool = False, max_content_bytes: int | None = None) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxFile", Path=paths, Hash=True if hash else None, MaxContentBytes=max_content_bytes)

    @staticmethod
    def parse(value: Any) -> dict[str, FileState]:
        """States by path. Raises ModelError."""
        states = [FileState.parse(item) for item in items(value, "Get-BoxFile")]
        return {state.path: state for state in states}


class ChildItems(BoxFact[Listing]):
    """What a folder holds. Args: recurse, hash (also the SHA-256 of files)."""

    @staticmethod
    def call(path: str, recurse: bool = False, hash: bool = False) -> Call:
        """The box command of this fact."""
        return Call(
            "Get-BoxChildItem", Path=path, Recurse=True if recurse else None, Hash=True if hash else None
        )

    parse = staticmethod(Listing.parse)
