"""Access control lists of a simulated box: explicit entries kept, inherited ones computed from the folders
above.

Windows writes inherited entries into every child when a folder's list is set; computing them on reading
gives the
same answer, and a file made by any engine has the right list without being told.
"""

from __future__ import annotations

import ntpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from simbox.errors import WindowsError, not_found

if TYPE_CHECKING:
    from simbox.box import Box

# SDDL's two-letter names (MS-DTYP 2.5.1.1) that occur on files.
SIDS = {
    "BA": "S-1-5-32-544",
    "BU": "S-1-5-32-545",
    "BG": "S-1-5-32-546",
    "SY": "S-1-5-18",
    "LS": "S-1-5-19",
    "NS": "S-1-5-20",
    "AU": "S-1-5-11",
    "WD": "S-1-1-0",
    "CO": "S-1-3-0",
    "OW": "S-1-3-4",
    "IU": "S-1-5-4",
    "NU": "S-1-5-2",
    "AC": "S-1-15-2-1",
}
_SID_NAMES = {sid: name for name, sid in SIDS.items()}
RIGHTS = {
    "FA": 0x1F01FF,
    "FR": 0x120089,
    "FW": 0x120116,
    "FX": 0x1200A0,
    "GA": 0x10000000,
    "GR": -0x80000000,
    "GW": 0x40000000,
    "GX": 0x20000000,
    "RC": 0x20000,
    "SD": 0x10000,
    "WD": 0x40000,
    "WO": 0x80000,
    "CC": 1,
    "DC": 2,
    "LC": 4,
    "SW": 8,
    "RP": 0x10,
    "WP": 0x20,
    "DT": 0x40,
    "LO": 0x80,
    "CR": 0x100,
}
_GENERIC = {0x10000000: 0x1F01FF, 0x20000000: 0x1200A0, 0x40000000: 0x120116, 0x80000000: 0x120089}
_ACE = re.compile(r"\(([^;()]*);([^;()]*);([^;()]*);([^;()]*);([^;()]*);([^;()]*)\)")
_SDDL = re.compile(
    r"(?:O:(?P<owner>.+?))?(?:G:(?P<group>.+?))?(?:D:(?P<flags>[A-Z_]*)(?P<aces>(?:\([^()]*\))*))?(?:S:.*)?"
)


@dataclass(frozen=True)
class Ace:
    """One entry: type A or D, its two-letter flags, rights as an access mask, a SID."""

    type: str
    flags: frozenset[str]
    mask: int
    sid: str

    def text(self) -> str:
        """Its SDDL."""
        order = ("OI", "CI", "NP", "IO", "ID")
        names = {0x1F01FF: "FA", 0x120089: "FR", 0x120116: "FW", 0x1200A0: "FX", 0x10000000: "GA"}
        flags = "".join(flag for flag in order if flag in self.flags)
        mask, sid = names.get(self.mask, hex(self.mask)), _SID_NAMES.get(self.sid, self.sid)
        return f"({self.type};{flags};{mask};;;{sid})"

    def value(self) -> dict[str, Any]:
        """As an element of Access of Get-BoxAcl."""
        inheritance = [
            name for flag, name in (("CI", "ContainerInherit"), ("OI", "ObjectInherit")) if flag in self.flags
        ]
        propagation = [
            name for flag, name in (("NP", "NoPropagateInherit"), ("IO", "InheritOnly")) if flag in self.flags
        ]
        return {
            "Sid": self.sid,
            "Rights": self.mask - 0x1_0000_0000 if self.mask & 0x80000000 else self.mask,
            "Type": "Deny" if self.type == "D" else "Allow",
            "Inherited": "ID" in self.flags,
            "InheritanceFlags": ", ".join(inheritance) or "None",
            "PropagationFlags": ", ".join(propagation) or "None",
        }


@dataclass(frozen=True)
class Descriptor:
    """A parsed security descriptor."""

    owner: str
    group: str
    protected: bool
    aces: tuple[Ace, ...]

    def text(self) -> str:
        """Its SDDL."""
        owner, group = (_SID_NAMES.get(sid, sid) for sid in (self.owner, self.group))
        flags = ("P" if self.protected else "") + "AI"
        return f"O:{owner}G:{group}D:{flags}" + "".join(ace.text() for ace in self.aces)


def _invalid(sddl: str) -> WindowsError:
    return WindowsError(
        "System.ArgumentException",
        f"The SDDL form of a security descriptor object is invalid: '{sddl}'",
        0x80070057,
        "InvalidArgument",
        "ArgumentException",
    )


def parse_mask(text: str) -> int:
    """An access mask from SDDL: hex, decimal, or two-letter rights in a row."""
    if text[:2].lower() == "0x":
        return int(text, 16) & 0xFFFFFFFF
    if text.isdigit():
        return int(text) & 0xFFFFFFFF
    mask = 0
    for index in range(0, len(text), 2):
        mask |= RIGHTS[text[index : index + 2]]
    return mask & 0xFFFFFFFF


def parse(sddl: str, owner: str = "S-1-5-32-544", group: str = "S-1-5-18") -> Descriptor:
    """Parse SDDL; owner and group where it names none. Raises WindowsError ArgumentException."""
    match = _SDDL.fullmatch(sddl.strip())
    if match is None:
        raise _invalid(sddl)
    aces = []
    try:
        for kind, flags, rights, _, _, who in _ACE.findall(match["aces"] or ""):
            if kind not in ("A", "D") or len(flags) % 2:
                raise _invalid(sddl)
            names = frozenset(flags[index : index + 2] for index in range(0, len(flags), 2))
            aces.append(Ace(kind, names, parse_mask(rights), SIDS.get(who, who)))
    except (KeyError, ValueError) as error:
        raise _invalid(sddl) from error
    return Descriptor(
        SIDS.get(match["owner"] or "", match["owner"] or owner),
        SIDS.get(match["group"] or "", match["group"] or group),
        "P" in (match["flags"] or ""),
        tuple(aces),
    )


def _specific(mask: int) -> int:
    for generic, meaning in _GENERIC.items():
        if mask & generic:
            mask = mask & ~generic | meaning
    return mask


def inherited(ace: Ace, folder: bool, owner: str) -> list[Ace]:
    """What a child gets of one entry of its parent (MS-DTYP 2.5.3.4.5)."""
    given = frozenset({"ID"})
    if not folder:
        return [Ace(ace.type, given, _specific(ace.mask), _who(ace, owner))] if "OI" in ace.flags else []
    passes_on = ace.flags & {"OI", "CI"} if "NP" not in ace.flags else frozenset()
    if "CI" not in ace.flags:
        return [replace(ace, flags=passes_on | {"IO", "ID"})] if passes_on else []
    effective = Ace(ace.type, passes_on | given, _specific(ace.mask), _who(ace, owner))
    generic = _specific(ace.mask) != ace.mask or ace.sid == SIDS["CO"]
    if generic and passes_on:  # the effective entry is fixed, the inheritable one stays general
        return [replace(effective, flags=given), replace(ace, flags=passes_on | {"IO", "ID"})]
    return [effective]


def _who(ace: Ace, owner: str) -> str:
    return owner if ace.sid == SIDS["CO"] else ace.sid


class Acls:
    """The lists of every file and folder of the box."""

    REMOTE = frozenset({"get", "set", "forget", "moved"})

    def __init__(self, box: Box) -> None:
        self._box = box

    def get(self, paths: Iterable[str] | str) -> list[dict[str, Any]]:
        """As Get-BoxAcl gives them."""
        answers = []
        for path in [paths] if isinstance(paths, str) else paths:
            if not self._box.filesystem.exists(path):
                answers.append(
                    {
                        "Path": path,
                        "Exists": False,
                        "Directory": None,
                        "Sddl": None,
                        "OwnerSid": None,
                        "Protected": None,
                        "Access": [],
                    }
                )
                continue
            descriptor = self.of(self._box.filesystem.normalise(path))
            answers.append(
                {
                    "Path": path,
                    "Exists": True,
                    "Directory": not self._box.filesystem.host(path).is_file(),
                    "Sddl": descriptor.text(),
                    "OwnerSid": descriptor.owner,
                    "Protected": descriptor.protected,
                    "Access": [ace.value() for ace in descriptor.aces],
                }
            )
        return answers

    def set(self, path: str, sddl: str) -> dict[str, Any]:
        """Replace the owner and the explicit entries; `D:P` keeps the inherited ones out."""
        if not self._box.filesystem.exists(path):
            raise not_found(path)
        full = self._box.filesystem.normalise(path)
        before = self.of(full)
        wanted = parse(sddl, before.owner, before.group)
        explicit = tuple(
            replace(ace, mask=_specific(ace.mask)) if not ace.flags & {"OI", "CI"} else ace
            for ace in wanted.aces
            if "ID" not in ace.flags
        )
        entry = {"path": full, "sddl": replace(wanted, aces=explicit).text(), "inode": self._inode(full)}
        self._box.store.set("acl", full.casefold(), value=entry)
        return {"Changed": self.of(full) != before}

    def forget(self, path: str) -> None:
        """The file or folder was deleted: it and all below it have no entries of their own any more."""
        full = self._box.filesystem.normalise(path).casefold()
        with self._box.store.change() as state:
            for key in [key for key in state["acl"] if key == full or key.startswith(full + "\\")]:
                del state["acl"][key]

    def moved(self, path: str, destination: str) -> None:
        """The file or folder was renamed: explicit entries go with it."""
        old = self._box.filesystem.normalise(path).casefold()
        new = self._box.filesystem.normalise(destination)
        with self._box.store.change() as state:
            for key in [key for key in state["acl"] if key == old or key.startswith(old + "\\")]:
                entry = state["acl"].pop(key)
                entry["path"] = new + entry["path"][len(old) :]
                state["acl"][entry["path"].casefold()] = entry

    def of(self, path: str) -> Descriptor:
        """The whole descriptor of an existing path: explicit entries (Deny first), then inherited ones."""
        entry = self._box.store.get("acl", path.casefold())
        if entry and self._is_stale(path, entry):
            self._box.store.remove("acl", path.casefold())
            entry = None
        owner = "S-1-5-32-544"  # what an elevated administrator creates belongs to the group
        if entry:
            own = parse(entry["sddl"])
            ordered = tuple(sorted(own.aces, key=lambda ace: ace.type != "D"))
            if own.protected or len(path) <= 3:
                return replace(own, aces=ordered)
        else:
            own = Descriptor(owner, f"{self._box.store.get('machine_sid')}-513", False, ())
            ordered = ()
        if len(path) <= 3:
            return own
        folder = self._box.filesystem.host(path).is_dir()
        above = self.of(ntpath.dirname(path))
        passed = [made for ace in above.aces for made in inherited(ace, folder, own.owner)]
        return replace(own, aces=ordered + tuple(passed))

    def _inode(self, path: str) -> int | None:
        """Identity of a folder; a file is replaced (and keeps its list) whenever it is written."""
        host = self._box.filesystem.host(path)
        return host.stat().st_ino if host.is_dir() else None

    def _is_stale(self, path: str, entry: dict[str, Any]) -> bool:
        known = entry.get("inode")
        return not self._box.filesystem.exists(path) or (known is not None and known != self._inode(path))
