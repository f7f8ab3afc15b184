"""Windows Firewall."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.firewall import model as firewall


class Firewall(BoxFact[firewall.Firewall]):
    """All rules of all stores, profiles and connections."""

    @staticmethod
    def call() -> Call:
        """The box command of this fact."""
        return Call("Get-BoxFirewall")

    parse = staticmethod(firewall.Firewall.parse)
