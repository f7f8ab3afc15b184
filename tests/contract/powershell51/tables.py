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
from dataclasses import dataclass
from pathlib import Path

COMMON = frozenset(
    "Verbose Debug ErrorAction WarningAction InformationAction ErrorVariable WarningVariable"
    " InformationVariable OutVariable OutBuffer PipelineVariable".lower().split()
)
# Parameters that the file system provider adds; Get-Command -Syntax does not print them without a path.
_OF_FILE_SYSTEM = {
    "get-childitem": frozenset({"file", "directory", "hidden", "readonly", "system", "attributes"}),
    "get-content": frozenset({"raw", "encoding", "delimiter", "wait", "stream"}),
    "set-content": frozenset({"encoding", "nonewline", "stream"}),
}
_ACCELERATORS = {
    "string": "System.String", "int": "System.Int32", "long": "System.Int64", "byte": "System.Byte",
    "char": "System.Char", "bool": "System.Boolean", "double": "System.Double", "single": "System.Single",
    "float": "System.Single", "decimal": "System.Decimal", "object": "System.Object", "void": "System.Void",
    "array": "System.Array", "datetime": "System.DateTime", "timespan": "System.TimeSpan",
    "guid": "System.Guid",
    "regex": "System.Text.RegularExpressions.Regex", "xml": "System.Xml.XmlDocument", "type": "System.Type",
    "uint16": "System.UInt16", "uint32": "System.UInt32", "uint64": "System.UInt64", "sbyte": "System.SByte",
    "hashtable": "System.Collections.Hashtable", "ipaddress": "System.Net.IPAddress", "uri": "System.Uri",
    "version": "System.Version", "enum": "System.Enum", "ref": "System.Management.Automation.PSReference",
    "scriptblock": "System.Management.Automation.ScriptBlock",
    "pscustomobject": "System.Management.Automation.PSCustomObject",
    "psobject": "System.Management.Automation.PSObject",
    "switch": "System.Management.Automation.SwitchParameter",
    "cmdletbinding": "System.Management.Automation.CmdletBindingAttribute",
    "powershell": "System.Management.Automation.PowerShell",
    "runspacefactory": "System.Management.Automation.Runspaces.RunspaceFactory",
    "parameter": "System.Management.Automation.ParameterAttribute", "math": "System.Math",
    "convert": "System.Convert", "environment": "System.Environment", "bitconverter": "System.BitConverter",
}  # fmt: skip
PARAMS = -1


class NoTables(Exception):
    """The tables are not on this machine; the text says where they are looked for."""


@dataclass(frozen=True)
class Tables:
    """Attributes:
    commands: lower-case name -> lower-case parameter names. aliases: lower case.
    types: lower-case name -> (own spelling, lower-case base).
    members: lower-case type -> lower-case member -> argument counts of its overloads (empty: no method).
    constructors: lower-case type -> argument counts.
    """

    commands: dict[str, frozenset[str]]
    aliases: frozenset[str]
    types: dict[str, tuple[str, str]]
    members: dict[str, dict[str, set[int]]]

    def type_name(self, written: str) -> str | None:
        """The lower-case full name of a type as PowerShell would find it, or None."""
        bare = re.sub(r"\[\]$", "", written.strip())
        generic = re.fullmatch(r"([\w.+]+)\[(.*)\]", bare)
        if generic:
            bare = f"{generic[1]}`{generic[2].count(',') + 1}"
        bare = bare.lower()
        for name in (_ACCELERATORS.get(bare, "").lower(), bare, "system." + bare):
            if name in self.types:
                return name
        return None

    def member(self, type_name: str, member: str) -> set[int] | None:
        """Argument counts of a member of a type or of what it derives from; None: there is no such member."""
        counts: set[int] | None = None
        queue, seen = [type_name, "system.object"], set()
        while queue:
            name = queue.pop(0)
            if name in seen:
                continue
            seen.add(name)
            found = self.members.get(name, {}).get(member.lower())
            if found is not None:
                counts = (counts or set()) | found
            base = self.types.get(name, ("", ""))[1]
            if base:
                queue.append(re.sub(r"<.*>$", "", base))
        return counts


def folder() -> Path:
    """Where the tables are. Raises NoTables."""
    named = os.environ.get("NINFER_FLEET_TABLES")
    place = Path(named) if named else Path(__file__).resolve().parents[4] / "shared" / "data" / "windows-5.1"
    if not (place / "cmdlets-5.1.14393.json.xz").is_file():
        raise NoTables(
            f"no tables of Windows PowerShell 5.1 in {place}; set NINFER_FLEET_TABLES to their folder"
        )
    return place


@functools.cache
def load() -> Tables:
    """Read the tables. Raises NoTables."""
    place = folder()
    commands: dict[str, frozenset[str]] = {}
    aliases: set[str] = set()
    for module in json.loads(lzma.decompress((place / "cmdlets-5.1.14393.json.xz").read_bytes())):
        aliases.update(alias.lower() for alias in module["aliases"])
        for command in module["commands"]:
            name = command["name"].lower()
            given = frozenset(word.lower() for word in re.findall(r"-(\w+)", str(command["syntax"])))
            commands[name] = (
                commands.get(name, frozenset()) | given | COMMON | _OF_FILE_SYSTEM.get(name, frozenset())
            )
    types: dict[str, tuple[str, str]] = {}
    members: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for file in ("netfx-4.6.2-api.txt.xz", "system-management-automation-5.1-api.txt.xz"):
        for line in lzma.decompress((place / file).read_bytes()).decode("utf-8").splitlines():
            _read(line, types, members)
    return Tables(commands, frozenset(aliases), types, {name: dict(found) for name, found in members.items()})


def _read(line: str, types: dict[str, tuple[str, str]], members: dict[str, dict[str, set[int]]]) -> None:
    kind, _, rest = line.partition(" ")
    if kind == "T":
        name, _, tail = rest.partition(" ")
        _, _, base = tail.partition(" ")
        types[name.lower()] = (name, base.strip().lower())
        return
    head, opened, tail = rest.partition("(")
    if kind == "C":
        members[head.lower()]["new"].add(_count(tail))
        return
    head = head.split(" ")[0]
    owner, _, member = head.rpartition(".")
    slot = members[owner.lower()][member.lower()]
    if kind == "M" and opened:
        slot.add(_count(tail))


def _count(tail: str) -> int:
    """Number of parameters in `A,B<C,D>) returns`; PARAMS when the last is an array and takes any number."""
    inner = tail[: tail.rindex(")")] if ")" in tail else tail
    while "<" in inner:
        inner = re.sub(r"<[^<>]*>", "", inner)
    if re.search(r"\[\]$", inner):
        return PARAMS
    inner = re.sub(r"\[,*\]", "", inner)
    return inner.count(",") + 1 if inner.strip() else 0
