"""The machine and its Windows."""

from __future__ import annotations

from winfleet.calls import Call
from winfleet.facts import BoxFact
from winfleet.models import account, system


class System(BoxFact[system.System]):
    """Windows version, memory, pending reboot, reserved ports, machine environment."""

    @staticmethod
    def call() -> Call:
        """The box command of this fact."""
        return Call("Get-BoxSystem")

    command = call
    parse = staticmethod(system.System.parse)


class Accounts(BoxFact[account.Accounts]):
    """The SIDs of account names."""

    @staticmethod
    def call(names: list[str]) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxAccount", Name=names)

    command = call
    parse = staticmethod(account.Accounts.parse)
