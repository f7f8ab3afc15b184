"""Graphics cards."""

from __future__ import annotations

from winfleet.calls import Call
from winfleet.facts import BoxFact
from winfleet.models import gpu


class Gpu(BoxFact[gpu.Gpu]):
    """All cards: memory, display, driver, multiprocessors."""

    @staticmethod
    def call() -> Call:
        """The box command of this fact."""
        return Call("Get-BoxGpu")

    command = call
    parse = staticmethod(gpu.Gpu.parse)
