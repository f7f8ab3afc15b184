"""Registry values."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.registry.model import RegistryKey


class Registry(BoxFact[RegistryKey]):
    """The values of a key (``HKLM:\\...``); only those in names when given."""

    @staticmethod
    def call(key: str, names: list[str] | None = None) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxRegistry", Key=key, Name=names)

    parse = staticmethod(RegistryKey.parse)
