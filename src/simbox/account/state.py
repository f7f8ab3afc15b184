"""Accounts of a simulated box: names to SIDs and back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box

# Documented well-known SIDs: (SID, authority or BUILTIN, name).
WELL_KNOWN = (
    ("S-1-1-0", "", "Everyone"),
    ("S-1-3-0", "", "CREATOR OWNER"),
    ("S-1-3-4", "", "OWNER RIGHTS"),
    ("S-1-5-2", "NT AUTHORITY", "NETWORK"),
    ("S-1-5-3", "NT AUTHORITY", "BATCH"),
    ("S-1-5-4", "NT AUTHORITY", "INTERACTIVE"),
    ("S-1-5-11", "NT AUTHORITY", "Authenticated Users"),
    ("S-1-5-18", "NT AUTHORITY", "SYSTEM"),
    ("S-1-5-19", "NT AUTHORITY", "LOCAL SERVICE"),
    ("S-1-5-20", "NT AUTHORITY", "NETWORK SERVICE"),
    ("S-1-5-32-544", "BUILTIN", "Administrators"),
    ("S-1-5-32-545", "BUILTIN", "Users"),
    ("S-1-5-32-546", "BUILTIN", "Guests"),
    ("S-1-5-32-555", "BUILTIN", "Remote Desktop Users"),
    ("S-1-5-32-559", "BUILTIN", "Performance Log Users"),
    ("S-1-5-32-580", "BUILTIN", "Remote Management Users"),
)
_ALIASES = {"localsystem": "S-1-5-18", "localservice": "S-1-5-19", "networkservice": "S-1-5-20"}
SID = re.compile(r"S-1-\d+(-\d+)+", re.IGNORECASE)


class Accounts:
    """Name and SID lookups; local accounts come from the profile."""

    REMOTE = frozenset({"resolve", "name_of"})

    def __init__(self, box: Box) -> None:
        self._box = box

    def sid_of(self, name: str) -> str:
        r"""The SID of `NAME`, `.\NAME`, `COMPUTER\NAME`, `BUILTIN\NAME`, `NT AUTHORITY\NAME`, or of a SID.

        Raises: WindowsError IdentityNotMappedException (0x80070534).
        """
        text = name.strip()
        if SID.fullmatch(text):
            return text.upper()
        domain, _, user = text.rpartition("\\")
        computer = str(self._box.store.get("system", "computer_name"))
        if not domain and user.casefold() in _ALIASES:
            return _ALIASES[user.casefold()]
        for sid, authority, known in WELL_KNOWN:
            if known.casefold() == user.casefold() and domain.casefold() in ("", authority.casefold()):
                return sid
        if domain.casefold() in ("", ".", computer.casefold()):
            for account, rid in self._box.store.get("accounts", default={}).items():
                if account.casefold() == user.casefold():
                    return f"{self._box.store.get('machine_sid')}-{rid}"
        raise WindowsError(
            "System.Security.Principal.IdentityNotMappedException",
            "Some or all identity references could not be translated.",
            0x80070534,
            "NotSpecified",
            "IdentityNotMappedException",
        )

    def name_of(self, sid: str) -> str:
        r"""`AUTHORITY\NAME` of a SID, or the SID itself when nobody has it."""
        for known, authority, name in WELL_KNOWN:
            if known == sid.upper():
                return f"{authority}\\{name}" if authority else name
        computer = self._box.store.get("system", "computer_name")
        for account, rid in self._box.store.get("accounts", default={}).items():
            if f"{self._box.store.get('machine_sid')}-{rid}" == sid.upper():
                return f"{computer}\\{account}"
        return sid

    def resolve(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """As Get-BoxAccount gives them; an unknown name has Sid null and an Error text."""
        answers = []
        for name in [names] if isinstance(names, str) else names:
            try:
                answers.append({"Name": name, "Sid": self.sid_of(name), "Error": None})
            except WindowsError as error:
                answers.append({"Name": name, "Sid": None, "Error": error.message})
        return answers
