"""The session that this program has on a box."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.session.model import SessionState


class Session(BoxFact[SessionState]):
    """Whose session this is, and whether it is elevated."""

    @staticmethod
    def call() -> Call:
        """The box command of this fact."""
        return Call("Get-BoxSession")

    parse = staticmethod(SessionState.parse)
