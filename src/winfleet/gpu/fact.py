"""Graphics cards."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.gpu.model import GpuState


class Gpu(BoxFact[GpuState]):
    """All cards: memory, display, driver, multiprocessors."""

    @staticmethod
    def call() -> Call:
        """The box command of this fact."""
        return Call("Get-BoxGpu", volatile=True)

    parse = staticmethod(GpuState.parse)
