"""The machine and its Windows."""

from __future__ import annotations

from winfleet.account import model as account
from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.system import model as system


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
