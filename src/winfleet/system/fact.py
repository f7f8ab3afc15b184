"""The machine and its Windows."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.system.model import SystemState


class System(BoxFact[SystemState]):
    """Windows version, memory, pending reboot, reserved ports, machine environment."""

    @staticmethod
    def call() -> Call:
        """The box command of this fact."""
        return Call("Get-BoxSystem")

    parse = staticmethod(SystemState.parse)
