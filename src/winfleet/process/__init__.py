"""Processes, their tokens, and how one is stopped."""

from winfleet.process.fact import Processes, ProcessTokens
from winfleet.process.model import Process

__all__ = ["Process", "ProcessTokens", "Processes"]
