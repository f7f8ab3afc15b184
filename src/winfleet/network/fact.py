"""Listening sockets."""

from __future__ import annotations

from typing import Any

from winfleet.answer import items
from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.network.model import Listener


class Listeners(BoxFact[list[Listener]]):
    """Who listens on the given TCP ports; on all when none is given."""

    @staticmethod
    def call(ports: list[int] | None = None) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxListener", volatile=True, Port=ports)

    @staticmethod
    def parse(value: Any) -> list[Listener]:
        """The listeners. Raises ModelError."""
        return [Listener.parse(item) for item in items(value, "Get-BoxListener")]
