"""The session that this program has on a box."""

from winfleet.session.fact import Session
from winfleet.session.model import SessionState

__all__ = ["Session", "SessionState"]
