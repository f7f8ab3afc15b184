"""Access control lists: parsed from SDDL, compared by SID and rights, declared ones rendered to SDDL.

Sources: MS-DTYP 2.5.1 (SDDL grammar, SID and rights tokens), 2.4.4.1 (ACE flags); FileSystemRights of .NET.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from winfleet.account.model import AccountSids, known_sid
from winfleet.answer import (
    Difference,
    Model,
    ModelError,
    items,
    mapping,
    optional_integer,
    optional_text,
    text,
)

Rights = Literal["full", "modify", "read", "write", "list"]

FULL = 0x1F01FF
MODIFY = 0x1301BF
READ = 0x1200A9  # read and execute
WRITE = 0x100116
SYNCHRONIZE = 0x100000
_RIGHT_NAMES = {"full": FULL, "modify": MODIFY, "read": READ, "write": WRITE, "list": 0x100001}

_SID_TOKENS = {
    "AN": "S-1-5-7", "AU": "S-1-5-11", "BA": "S-1-5-32-544", "BG": "S-1-5-32-546", "BO": "S-1-5-32-551",
    "BU": "S-1-5-32-545", "CG": "S-1-3-1", "CO": "S-1-3-0", "IU": "S-1-5-4", "LS": "S-1-5-19",
    "LW": "S-1-16-4096", "ME": "S-1-16-8192", "HI": "S-1-16-12288",
    "SI": "S-1-16-16384", "NS": "S-1-5-20", "NU": "S-1-5-2",
    "OW": "S-1-3-4", "PO": "S-1-5-32-550", "PU": "S-1-5-32-547", "RC": "S-1-5-12", "RD": "S-1-5-32-555",
    "SO": "S-1-5-32-549", "SU": "S-1-5-6", "SY": "S-1-5-18", "WD": "S-1-1-0", "AC": "S-1-15-2-1",
}  # fmt: skip
_RIGHT_TOKENS = {
    "FA": FULL, "FR": 0x120089, "FW": 0x120116, "FX": 0x1200A0, "GA": 0x10000000, "GR": 0x80000000,
    "GW": 0x40000000, "GX": 0x20000000, "RC": 0x20000, "SD": 0x10000, "WD": 0x40000, "WO": 0x80000, "CC": 0x1,
    "DC": 0x2, "LC": 0x4, "SW": 0x8, "RP": 0x10, "WP": 0x20, "DT": 0x40, "LO": 0x80, "CR": 0x100,
}  # fmt: skip
# Windows maps generic rights to these when they are set on a file (winnt.h, FILE_GENERIC_*).
_GENERIC = {0x10000000: FULL, 0x80000000: 0x120089, 0x40000000: 0x120116, 0x20000000: 0x1200A0}
ADMINISTRATORS = "S-1-5-32-544"
# Who may own what others must not change: the owner of a path may always rewrite its access list. TrustedInstaller
# owns what Windows itself made.
TRUSTED_OWNERS = frozenset(
    {ADMINISTRATORS, "S-1-5-18", "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"}
)
_FLAGS = ("OI", "CI", "NP", "IO", "ID", "SA", "FA")
_FLAG_WORDS = {
    "ObjectInherit": "OI", "ContainerInherit": "CI", "NoPropagateInherit": "NP", "InheritOnly": "IO",
}  # fmt: skip
_PART = re.compile(r"([OGDS]):")


@dataclass(frozen=True)
class AccessRule(Model):
    """One entry of an access list.

    Attributes: sid, rights (access mask), allow (False: deny), flags (of OI, CI, NP, IO: to whom it is
    inherited), inherited (came from the parent).
    """

    sid: str
    rights: int
    allow: bool = True
    flags: frozenset[str] = frozenset()
    inherited: bool = False

    def __str__(self) -> str:
        words = f"{'allow' if self.allow else 'deny'} {self.sid} {rights_text(self.rights)}"
        return f"{words} {''.join(sorted(self.flags, key=_FLAGS.index))}".rstrip()


@dataclass(frozen=True)
class Access(Model):
    """A declared entry: who (name or SID) may do what.

    Attributes: account, rights ("full", "modify", "read" (and execute), "write", "list", or an access mask).
    """

    account: str
    rights: Rights | int = "full"


@dataclass(frozen=True)
class Acl(Model):
    """The access list of one path.

    Attributes: path, exists, owner_sid, protected (inherits nothing from the parent), rules, sddl (as the box
    gave it), directory (None: there is nothing).
    """

    path: str
    exists: bool
    owner_sid: str | None
    protected: bool
    rules: tuple[AccessRule, ...]
    sddl: str | None = None
    directory: bool | None = None

    @classmethod
    def parse(cls, value: Any) -> Acl:
        """From one item of Get-BoxAcl. Raises ModelError."""
        data = mapping(value, "Get-BoxAcl")
        sddl = optional_text(data, "Sddl")
        if not data.get("Exists") or sddl is None:
            return cls(text(data, "Path"), bool(data.get("Exists")), None, False, ())
        owner, protected, rules = parse_sddl(sddl)
        # SDDL has names (LA: the local Administrator) for accounts whose SID is another one on each box.
        if entries := items(data.get("Access"), "Access"):
            rules = tuple(_answered_rule(mapping(entry, "Access")) for entry in entries)
        owner = optional_text(data, "OwnerSid") or owner
        directory = bool(data.get("Directory"))
        return cls(text(data, "Path"), True, owner, protected, rules, sddl, directory)


def rights_text(rights: int) -> str:
    """A name where there is one, else the mask in hex."""
    known = {mask | SYNCHRONIZE: name for name, mask in _RIGHT_NAMES.items()}
    return known.get(rights | SYNCHRONIZE, f"0x{rights:x}")


def parse_sddl(sddl: str) -> tuple[str | None, bool, tuple[AccessRule, ...]]:
    """Owner SID, protected, and the allow and deny entries in their order. Raises ModelError.

    Example: ``O:BAG:SYD:PAI(A;OICI;FA;;;SY)`` -> ("S-1-5-32-544", True, (AccessRule("S-1-5-18", FULL, ...),))
    """
    # Colons stand in the conditions of callback entries too, so parts are cut outside of parentheses only.
    depth, starts = 0, []
    for index, sign in enumerate(sddl):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0 and _PART.match(sddl, index) and (index == 0 or sddl[index - 1] != ":"):
            starts.append(index)
    if not starts or starts[0] != 0:
        raise ModelError(f"no security descriptor: {sddl!r}")
    parts = {
        sddl[start]: sddl[start + 2 : end]
        for start, end in zip(starts, [*starts[1:], len(sddl)], strict=True)
    }
    owner = _sid(parts["O"]) if parts.get("O") else None
    if "D" not in parts:
        return owner, False, ()
    flags, _, entries = parts["D"].partition("(")
    rules = [
        _rule(entry)
        for entry in re.findall(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)", "(" + entries if entries else "")
    ]
    return (
        owner,
        "P" in flags.replace("AI", "").replace("AR", ""),
        tuple(rule for rule in rules if rule is not None),
    )


def _sid(token: str) -> str:
    # A token that means another SID on each machine or domain (LA, DA, ...) stays as it is: it equals only
    # itself.
    return _SID_TOKENS.get(token.upper(), token.upper())


def _mask(token: str) -> int:
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", token):
        mask = int(token, 0) if not re.fullmatch(r"0\d+", token) else int(token, 8)
    else:
        mask = 0
        for index in range(0, len(token), 2):
            try:
                mask |= _RIGHT_TOKENS[token[index : index + 2].upper()]
            except KeyError as error:
                raise ModelError(f"unknown rights in a security descriptor: {token!r}") from error
    return specific_rights(mask)


def specific_rights(mask: int) -> int:
    """The mask with generic rights replaced by what they mean for files."""
    for generic, meaning in _GENERIC.items():
        if mask & generic:
            mask = mask & ~generic | meaning
    return mask


def _rule(entry: str) -> AccessRule | None:
    fields = entry.split(";", 5)
    if len(fields) != 6:
        raise ModelError(f"no access control entry: ({entry})")
    kind, flags, rights, _, _, sid = fields
    if kind.upper() not in {"A", "D"}:
        # Audit, label and conditional entries neither are declared by us nor change what we compare.
        return None
    names = frozenset(flags[index : index + 2].upper() for index in range(0, len(flags), 2))
    return AccessRule(
        _sid(sid.split(";")[0]), _mask(rights), kind.upper() == "A", names - {"ID"}, "ID" in names
    )


def _answered_rule(entry: Mapping[str, Any]) -> AccessRule:
    words = f"{entry.get('InheritanceFlags')}, {entry.get('PropagationFlags')}".split(", ")
    flags = frozenset(_FLAG_WORDS[word] for word in words if word in _FLAG_WORDS)
    rights = (optional_integer(entry, "Rights") or 0) & 0xFFFFFFFF
    return AccessRule(
        text(entry, "Sid").upper(),
        specific_rights(rights),
        entry.get("Type") != "Deny",
        flags,
        bool(entry.get("Inherited")),
    )


def declared_rules(
    access: Sequence[Access], accounts: AccountSids, directory: bool
) -> tuple[tuple[AccessRule, ...], list[str]]:
    """The entries that declared access means on a box, and the accounts that it does not know.

    On a folder each entry is inherited by files and folders in it. Several entries for one account (under two
    of its names) are one, as Windows keeps them.
    """
    flags = frozenset({"OI", "CI"}) if directory else frozenset()
    rules: dict[str, AccessRule] = {}
    unknown = []
    for item in access:
        sid = accounts.sid(item.account)
        mask = _RIGHT_NAMES[item.rights] if isinstance(item.rights, str) else specific_rights(item.rights)
        if sid is None:
            unknown.append(item.account)
        else:
            before = rules[sid].rights if sid in rules else 0
            rules[sid] = AccessRule(sid, mask | before, True, flags)
    return tuple(rules.values()), unknown


def unresolved(access: Sequence[Access]) -> list[str]:
    """The account names that only the box can resolve."""
    return sorted({item.account for item in access if known_sid(item.account) is None})


def protected_sddl(rules: Sequence[AccessRule], owner: str | None = None) -> str:
    """SDDL of a list that inherits nothing and holds exactly these entries, denials first as Windows orders
    them; the owner stays unless one is given."""
    ordered = sorted(rules, key=lambda rule: rule.allow)
    return (
        _owner_text(owner)
        + "D:P"
        + "".join(
            f"({'A' if rule.allow else 'D'};{_flag_text(rule)};0x{rule.rights:x};;;{rule.sid})"
            for rule in ordered
        )
    )


def inherited_sddl(owner: str | None = None) -> str:
    """SDDL of a list without entries of its own: only what the folder above hands down."""
    return _owner_text(owner) + "D:AI"


def _owner_text(owner: str | None) -> str:
    return "" if owner is None else f"O:{owner}"


def _flag_text(rule: AccessRule) -> str:
    return "".join(sorted(rule.flags, key=_FLAGS.index))


def _key(rule: AccessRule) -> tuple[str, int, bool, frozenset[str]]:
    return rule.sid.upper(), specific_rights(rule.rights) | SYNCHRONIZE, rule.allow, rule.flags


def acl_differences(found: Acl, rules: Sequence[AccessRule]) -> list[Difference]:
    """Where a path's list is not the protected list of exactly these entries; the order of entries does not
    count."""
    wanted = {_key(rule): rule for rule in rules}
    observed = {_key(rule): rule for rule in found.rules if not rule.inherited}
    inherited = {_key(rule): rule for rule in found.rules if rule.inherited}
    differences = []
    if not found.protected:
        differences.append(Difference("inheritance", "from the parent folder", "none"))
    for key in sorted(inherited, key=str):
        differences.append(Difference("access", f"{inherited[key]} (inherited)", None))
    for key in sorted(observed.keys() - wanted.keys(), key=str):
        differences.append(Difference("access", str(observed[key]), None))
    for key in sorted(wanted.keys() - observed.keys(), key=str):
        differences.append(Difference("access", None, str(wanted[key])))
    return differences


def owner_difference(found: Acl, trusted: Collection[str] = TRUSTED_OWNERS) -> list[Difference]:
    """Empty when one of these SIDs owns an existing path; Administrators should otherwise."""
    if not found.exists or (found.owner_sid or "").upper() in trusted:
        return []
    return [Difference("owner", found.owner_sid, ADMINISTRATORS)]


def inheritance_differences(
    found: Acl, rules: Sequence[AccessRule], directory: bool, settled: bool = True
) -> list[Difference]:
    """Where a path's list gives more or less than these entries of the folder above hand down to it.

    An entry of its own that says the same as one of them makes no difference: some ways to replace a file leave
    such behind. settled: False while the folder above is about to get these entries, which reach the path then;
    only what the path has of its own is compared.
    """
    passed = [rule if directory else replace(rule, flags=frozenset()) for rule in rules]
    wanted = {_key(rule): rule for rule in passed}
    differences = []
    if found.protected:
        differences.append(Difference("inheritance", "none", "from the parent folder"))
    for rule in sorted(found.rules, key=lambda rule: str(_key(rule))):
        if _key(rule) not in wanted and (settled or not rule.inherited):
            text = f"{rule} (inherited)" if rule.inherited else str(rule)
            differences.append(Difference("access", text, None))
    if settled and not found.protected:
        there = {_key(rule) for rule in found.rules}
        for key in sorted(wanted.keys() - there, key=str):
            differences.append(Difference("access", None, str(wanted[key])))
    return differences
