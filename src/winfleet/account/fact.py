"""Accounts by name."""

from __future__ import annotations

from winfleet.account.model import AccountSids
from winfleet.call import Call
from winfleet.fact import BoxFact


class Accounts(BoxFact[AccountSids]):
    """The SIDs of account names."""

    @staticmethod
    def call(names: list[str]) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxAccount", Name=names)

    parse = staticmethod(AccountSids.parse)
