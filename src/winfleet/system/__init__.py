"""The machine and its Windows."""

from winfleet.system.fact import System
from winfleet.system.model import SystemState

__all__ = ["System", "SystemState"]
