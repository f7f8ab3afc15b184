"""The check: what of a script would fail, or do something else, under Windows PowerShell 5.1."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from powershell51 import commands
from powershell51.tables import Tables
from powershell51.tree import Node, Script, parse
from powershell51.values import Values

NOT_SHIPPED = ("tests/", "src/simbox/")
MAX_LINES = 400
MAX_LINE_CHARACTERS = 250


@dataclass(frozen=True, order=True)
class Fault:
    """Attributes: file (name), line, rule (PS01..PS32, or syntax, command, parameter, alias, program, compiler, size),
    text."""

    file: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.text}"


@dataclass
class Subject:
    """One script with all that rules ask about it.

    Attributes: script, tables, own (functions of all scripts that run together), calls, values.
    """

    script: Script
    tables: Tables
    own: dict[str, frozenset[str]]

    def __post_init__(self) -> None:
        self.calls = commands.calls(self.script.root, self.tables)
        self.values = Values(self.script.root, self.tables)

    @property
    def root(self) -> Node:
        return self.script.root

    def calls_of(self, *names: str) -> Iterator[commands.Call]:
        """Calls of these commands (lower case), unless a function of our own has the name."""
        return (call for call in self.calls if call.key in names and call.key not in self.own)


Rule = Callable[[Subject], Iterable[tuple[Node | int, str]]]
RULES: dict[str, list[Rule]] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register a rule; it gives (node or line, text) for each breach."""

    def keep(function: Rule) -> Rule:
        RULES.setdefault(name, []).append(function)
        return function

    return keep


def faults(subject: Subject) -> list[Fault]:
    """Every breach of every rule in a script."""
    # The modules with rules register themselves when they are loaded.
    from powershell51 import rules_commands, rules_text, rules_values, rules_windows  # noqa: F401

    name = subject.script.path.name
    found = {
        Fault(name, place if isinstance(place, int) else place.line, rule_name, text)
        for rule_name, registered in RULES.items()
        for one in registered
        for place, text in one(subject)
    }
    return sorted(found)


def shipped_files(repository: Path) -> list[Path]:
    """Every PowerShell file of the repository but the tests' own and the simulator's."""
    command = ["git", "-C", str(repository), "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    names = [name for name in listed if name.endswith((".ps1", ".psm1")) and not name.startswith(NOT_SHIPPED)]
    return [path for name in sorted(names) if (path := repository / name).exists()]


def shipped(repository: Path, tables: Tables) -> list[Subject]:
    """All of them: those of winfleet run as one program, any other alone. Raises parser.NoPowerShell."""
    scripts = parse(shipped_files(repository))
    together = [script for script in scripts if "winfleet" in script.path.parts]
    own = {name: given for script in together for name, given in script.functions.items()}
    return [
        Subject(script, tables, own if script in together else dict(script.functions)) for script in scripts
    ]
