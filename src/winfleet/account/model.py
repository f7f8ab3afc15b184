"""Accounts: one account has many spellings and one SID (dsccommunity/ComputerManagementDsc#350)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, items, mapping, optional_text, text

# Well-known SIDs (MS-DTYP 2.4.2.4) that are the same on every box, under their English names. Localised names
# are resolved by the box.
WELL_KNOWN = {
    "everyone": "S-1-1-0",
    "creator owner": "S-1-3-0",
    "owner rights": "S-1-3-4",
    "interactive": "S-1-5-4",
    "nt authority\\interactive": "S-1-5-4",
    "authenticated users": "S-1-5-11",
    "nt authority\\authenticated users": "S-1-5-11",
    "system": "S-1-5-18",
    "localsystem": "S-1-5-18",
    "nt authority\\system": "S-1-5-18",
    "local service": "S-1-5-19",
    "localservice": "S-1-5-19",
    "nt authority\\local service": "S-1-5-19",
    "nt authority\\localservice": "S-1-5-19",
    "network service": "S-1-5-20",
    "networkservice": "S-1-5-20",
    "nt authority\\network service": "S-1-5-20",
    "nt authority\\networkservice": "S-1-5-20",
    "administrators": "S-1-5-32-544",
    "builtin\\administrators": "S-1-5-32-544",
    "users": "S-1-5-32-545",
    "builtin\\users": "S-1-5-32-545",
}
_SID = re.compile(r"S-1(-\d+)+", re.IGNORECASE)


def is_sid(name: str) -> bool:
    """True for the text form of a SID."""
    return _SID.fullmatch(name.strip()) is not None


def known_sid(name: str) -> str | None:
    """The SID of a name that means the same on every box, or of a SID itself; else None (the box must be
    asked)."""
    plain = name.strip()
    return plain.upper() if is_sid(plain) else WELL_KNOWN.get(plain.lower())


@dataclass(frozen=True)
class AccountSids(Model):
    """Names and their SIDs on one box. Attributes: sids (name in lower case -> SID), faults (name -> why
    not)."""

    sids: Mapping[str, str]
    faults: Mapping[str, str]

    @classmethod
    def parse(cls, value: Any) -> AccountSids:
        """From the list of Get-BoxAccount. Raises ModelError."""
        sids, faults = {}, {}
        for entry in items(value, "Get-BoxAccount"):
            data = mapping(entry, "Get-BoxAccount")
            name, sid = text(data, "Name").lower(), optional_text(data, "Sid")
            if sid is None:
                faults[name] = str(data.get("Error") or "no such account")
            else:
                sids[name] = sid.upper()
        return cls(sids, faults)

    def sid(self, name: str) -> str | None:
        """The SID of name on this box, or None."""
        return known_sid(name) or self.sids.get(name.strip().lower())
