"""docs/powershell-5.1.md: which commands and .NET members our PowerShell uses, and what has them.

Run it to write the page anew.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from powershell51 import check, tables
from powershell51.commands import used
from powershell51.rules_values import owner_of
from powershell51.values import created_type

_INTRODUCTION = """\
# What our PowerShell needs of Windows PowerShell 5.1

Written by `tests/contract/powershell51/document.py`; a test holds it current. Every command below, with the parameters
named, is in Windows PowerShell 5.1 of Windows 10 1607 or Server 2016, every member in .NET Framework 4.6.2 or in
System.Management.Automation of 5.1. Later builds have them, too. It lists what the scripts fix by their text: members
of objects whose type only a box knows (COM, CIM) are not here.
"""


def render(subjects: Iterable[check.Subject]) -> str:
    """The page about these scripts."""
    commands: dict[tuple[str, str], set[str]] = defaultdict(set)
    members: dict[tuple[str, str], set[str]] = defaultdict(set)
    for subject in subjects:
        _commands(subject, commands)
        _members(subject, members)
    lines = [_INTRODUCTION, "## Commands\n", "| Command | Module | Parameters used |", "|---|---|---|"]
    for (module, name), parameters in sorted(commands.items()):
        lines.append(f"| {name} | {module} | {', '.join(sorted(parameters))} |")
    lines += ["\n## .NET types and members\n", "| Type | Of | Members used |", "|---|---|---|"]
    for (source, name), names in sorted(members.items()):
        lines.append(f"| {name.replace('`', '&#96;')} | {source} | {', '.join(sorted(names))} |")
    return "\n".join(lines) + "\n"


def _commands(subject: check.Subject, into: dict[tuple[str, str], set[str]]) -> None:
    for call in subject.calls:
        command = used(call, subject.own, subject.tables)
        if command is not None:
            into[command.module, command.name].update(f"-{name}" for name in call.spellings)


def _members(subject: check.Subject, into: dict[tuple[str, str], set[str]]) -> None:
    for node in subject.root.find("MemberExpression", "InvokeMemberExpression"):
        owner, _ = owner_of(subject, node)
        member = subject.tables.member(owner, node.member) if owner is not None else None
        if owner is not None and member is not None:
            into[owner.source, owner.name].add(member.name + ("()" if member.counts else ""))
    for call in subject.calls_of("new-object"):
        created = created_type(call.node)
        written = subject.values.written(created) if created else None
        kind = subject.values.lookup(written) if written else None
        if kind is not None:
            into[kind.source, kind.name].add("new()")


if __name__ == "__main__":
    repository = Path(__file__).resolve().parents[3]
    loaded = tables.load()
    (repository / "docs" / "powershell-5.1.md").write_text(render(check.shipped(repository, loaded)))
