"""Windows Firewall."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.firewall.model import FirewallState


class Firewall(BoxFact[FirewallState]):
    """All rules of all stores, profiles and connections."""

    @staticmethod
    def call() -> Call:
        """The box command of this fact."""
        return Call("Get-BoxFirewall")

    parse = staticmethod(FirewallState.parse)
