"""The commands of Windows PowerShell 5.1 and the public API of .NET Framework 4.6.2, read from tables.

The folder is NINFER_FLEET_TABLES, else ../shared/data/windows-5.1 beside the repository.
"""

from __future__ import annotations

import functools
import json
import lzma
import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from powershell51.builtin import ACCELERATORS, ALIASES, COMMON, OF_PROVIDER

ANY_NUMBER = -1
FRAMEWORK = ".NET Framework 4.6.2"
AUTOMATION = "System.Management.Automation 5.1"


class NoTables(Exception):
    """The tables are not on this machine; the text says where they are looked for."""


@dataclass(frozen=True)
class Command:
    """Attributes: name, module, parameters (lower-case name -> whether it takes a value)."""

    name: str
    module: str
    parameters: dict[str, bool]


@dataclass
class Member:
    """One member of a type with all its overloads.

    Attributes: name, counts (of arguments; ANY_NUMBER for params arrays; empty: no method), returns (types of the
    value), static (some overload is).
    """

    name: str
    counts: set[int] = field(default_factory=set)
    returns: set[str] = field(default_factory=set)
    static: bool = False

    def takes(self, count: int) -> bool:
        return count in self.counts or ANY_NUMBER in self.counts


@dataclass(frozen=True)
class Type:
    """Attributes: name, kind (class, struct, enum, interface), base, source (table), members (by lower-case name)."""

    name: str
    kind: str
    base: str
    source: str
    members: dict[str, Member] = field(default_factory=dict)


@dataclass(frozen=True)
class Tables:
    """Attributes: commands, aliases, modules and types, all by lower-case name."""

    commands: dict[str, Command]
    aliases: frozenset[str]
    modules: frozenset[str]
    types: dict[str, Type]

    def type(self, written: str) -> Type | None:
        """The type that PowerShell would find under a name as written (without [] of arrays)."""
        bare = re.sub(r"(\[,*\])+$", "", written.strip()).removeprefix("global::").lower()
        generic = re.fullmatch(r"([\w.+`]+?)(?:`\d+)?\[(.*)\]", bare)
        if generic:
            bare = f"{generic[1]}`{_top_level_count(generic[2])}"
        for name in (ACCELERATORS.get(bare, "").lower(), bare, "system." + bare):
            if name in self.types:
                return self.types[name]
        # An attribute is written without the end of its name.
        return self.types.get(bare + "attribute") or self.types.get("system." + bare + "attribute")

    def member(self, of: Type, name: str) -> Member | None:
        """A member with the overloads of the type and of all that it derives from."""
        found: Member | None = None
        for one in self.line(of):
            own = one.members.get(name.lower())
            if own is None:
                continue
            found = found or Member(own.name)
            found.counts |= own.counts
            found.returns |= own.returns
            found.static |= own.static
        return found

    def line(self, of: Type) -> list[Type]:
        """The type, its base, and so on; System.Object last."""
        found = []
        at: Type | None = of
        while at is not None and at not in found:
            found.append(at)
            at = self.types.get(re.sub(r"<.*>$", "", at.base).lower())
        if of.kind == "interface":
            found.append(self.types["system.object"])
        return found

    @functools.cached_property
    def derived_members(self) -> dict[str, set[str]]:
        """Lower-case type -> lower-case names of members that types below it have."""
        found: dict[str, set[str]] = defaultdict(set)
        for one in self.types.values():
            for above in self.line(one)[1:]:
                found[above.name.lower()] |= one.members.keys()
        return found


def _top_level_count(arguments: str) -> int:
    while "[" in arguments:
        arguments = re.sub(r"\[[^\[\]]*\]", "", arguments)
    return arguments.count(",") + 1


def folder() -> Path:
    """Where the tables are. Raises NoTables."""
    named = os.environ.get("NINFER_FLEET_TABLES")
    place = Path(named) if named else Path(__file__).resolve().parents[4] / "shared" / "data" / "windows-5.1"
    if not (place / "cmdlets-5.1.14393.json.xz").is_file():
        raise NoTables(
            f"no tables of Windows PowerShell 5.1 in {place}: set NINFER_FLEET_TABLES to their folder"
        )
    return place


@functools.cache
def load() -> Tables:
    """Read the tables. Raises NoTables."""
    place = folder()
    commands: dict[str, Command] = {}
    aliases = set(ALIASES)
    modules = set()
    for module in json.loads(lzma.decompress((place / "cmdlets-5.1.14393.json.xz").read_bytes())):
        aliases.update(alias.lower() for alias in module["aliases"])
        modules.add(module["module"].lower())
        for command in module["commands"]:
            name = command["name"].lower()
            known = commands.setdefault(name, Command(command["name"], module["module"], dict(COMMON)))
            for parameter, value in re.findall(r"-(\w+)\]?( <)?", str(command["syntax"])):
                known.parameters[parameter.lower()] = bool(value)
            known.parameters.update(dict.fromkeys(OF_PROVIDER.get(name, ()), True))
    types: dict[str, Type] = {}
    for file, source in (
        ("netfx-4.6.2-api.txt.xz", FRAMEWORK),
        ("system-management-automation-5.1-api.txt.xz", AUTOMATION),
    ):
        lines = lzma.decompress((place / file).read_bytes()).decode("utf-8").splitlines()
        for line in sorted(lines, key=lambda text: text[:2] != "T "):
            _read(line, source, types)
    return Tables(commands, frozenset(aliases), frozenset(modules), types)


def _read(line: str, source: str, types: dict[str, Type]) -> None:
    kind, _, rest = line.partition(" ")
    if kind == "T":
        name, _, tail = rest.partition(" ")
        what, _, base = tail.partition(" ")
        types.setdefault(name.lower(), Type(name, what, base.strip(), source))
        return
    head, opened, tail = rest.partition("(")
    if kind == "C":
        owner, member, returns = head, "new", head
    else:
        owner, _, member = head.split(" ")[0].rpartition(".")
        after = tail[tail.rindex(")") + 1 :] if opened else head.partition(" ")[2]
        words = after.split()
        returns = next((word for word in words if word != "static"), "")
    if owner.lower() not in types:
        return
    found = types[owner.lower()].members.setdefault(member.lower(), Member(member))
    found.returns.add(returns)
    found.static |= kind == "C" or " static " in line
    if opened:
        found.counts.add(_count(tail))


def _count(tail: str) -> int:
    """Number of parameters in `A,B<C,D>) returns`; ANY_NUMBER when the last is an array and takes any number."""
    inner = tail[: tail.rindex(")")] if ")" in tail else tail
    while "<" in inner:
        inner = re.sub(r"<[^<>]*>", "", inner)
    if re.search(r"\[\]$", inner):
        return ANY_NUMBER
    inner = re.sub(r"\[,*\]", "", inner)
    return inner.count(",") + 1 if inner.strip() else 0
