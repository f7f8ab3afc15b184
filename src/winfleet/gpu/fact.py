"""Graphics cards."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.gpu import model as gpu


class Gpu(BoxFact[gpu.Gpu]):
    """All cards: memory, display, driver, multiprocessors."""

    @staticmethod
    def call() -> Call:
        """The box command of this fact."""
        return Call("Get-BoxGpu")

    parse = staticmethod(gpu.Gpu.parse)
