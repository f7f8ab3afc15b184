"""Registry values."""

from winfleet.registry.fact import Registry
from winfleet.registry.model import RegistryKey, RegistryValue

__all__ = ["Registry", "RegistryKey", "RegistryValue"]
