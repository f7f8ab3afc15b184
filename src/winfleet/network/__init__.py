"""Addresses, ports and who listens."""

from winfleet.network.fact import Listeners
from winfleet.network.model import Listener

__all__ = ["Listener", "Listeners"]
