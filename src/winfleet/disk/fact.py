"""Disks under paths."""

from __future__ import annotations

from typing import Any

from winfleet.answer import items
from winfleet.call import Call
from winfleet.disk.model import DiskPlace
from winfleet.fact import BoxFact


class Disks(BoxFact[dict[str, DiskPlace]]):
    """For each path (as asked): where it lies and whether that is NVMe."""

    @staticmethod
    def call(paths: list[str]) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxDisk", Path=paths)

    @staticmethod
    def parse(value: Any) -> dict[str, DiskPlace]:
        """Places by path. Raises ModelError."""
        places = [DiskPlace.parse(item) for item in items(value, "Get-BoxDisk")]
        return {place.path: place for place in places}
