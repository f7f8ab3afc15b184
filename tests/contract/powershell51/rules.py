"""What would fail, or do something else, under Windows PowerShell 5.1. PS01, PS02, ... number the rules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from powershell51.tables import COMMON, PARAMS, Tables

_AUTOMATIC = frozenset({"args", "input", "host", "pid", "matches", "error"})
# Values that scripts make or Windows gives without a type that a table knows.
_EXTENDED_MEMBERS = frozenset({"count", "length", "psobject", "psbase", "linktype", "target", "path"})


class NoPowerShell(Exception):
    """No PowerShell for this machine; the text says how to get one."""


def powershell() -> Path:
    """pwsh of this machine: NINFER_FLEET_PWSH, PATH, or ../shared/pwsh unpacked into the cache.

    Raises NoPowerShell.
    """
    named = os.environ.get("NINFER_FLEET_PWSH") or shutil.which("pwsh")
    if named:
        return Path(named)
    unpack = Path(__file__).resolve().parents[4] / "shared" / "pwsh" / "unpack"
    if unpack.is_file():
        from simbox.wine.locate import cache_directory

        folder = cache_directory() / "pwsh-parser"
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([str(unpack), "linux", str(folder)], capture_output=True, text=True, check=True)
        return Path(done.stdout.split()[-1]) / "pwsh"
    raise NoPowerShell(f"no pwsh in NINFER_FLEET_PWSH or PATH, and no {unpack}")


def parsed(files: Iterable[Path]) -> list[dict[str, Any]]:
    """What PowerShell's parser sees in each file. Raises NoPowerShell."""
    script = Path(__file__).with_name("ast.ps1")
    command = [str(powershell()), "-NoLogo", "-NoProfile", "-NonInteractive", "-File", str(script)]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def faults(trees: list[dict[str, Any]], tables: Tables) -> Iterator[str]:
    """One line for each thing that 5.1 does not have: `file:line: what`."""
    own = {
        function["name"].lower(): {name.lower() for name in function["parameters"]}
        for tree in trees
        for function in tree["functions"]
    }
    for tree in trees:
        name = Path(tree["path"]).name
        for line, text in _file_faults(tree, own, tables):
            yield f"{name}:{line}: {text}"


def _file_faults(tree: dict[str, Any], own: dict[str, set[str]], tables: Tables) -> Iterator[tuple[int, str]]:
    for error in tree["errors"]:
        yield error["line"], error["text"]
    for newer in tree["newer"]:
        yield newer["line"], f"{newer['text']} is syntax of PowerShell 7 (PS01, PS02)"
    for function in tree["functions"]:
        for name in function["parameters"]:
            if name.lower() in _AUTOMATIC:
                yield (
                    function["line"],
                    f"{function['name']} has a parameter ${name}, an automatic variable (PS27)",
                )
    for command in tree["commands"]:
        yield from ((command["line"], text) for text in _command_faults(command, own, tables))
    for used in tree["types"]:
        if tables.type_name(used["name"]) is None and not used["name"].startswith("WinFleet."):
            yield used["line"], f"no type [{used['name']}] in .NET Framework 4.6.2 or PowerShell 5.1 (PS24)"
    for used in tree["statics"]:
        yield from _member_fault(used, tables.type_name(used["type"]), used["type"], tables)
    kinds = _known_types(tree)
    for used in tree["members"]:
        written = kinds.get((used["owner"], used["name"].lower()))
        if written and used["member"].lower() not in _EXTENDED_MEMBERS:
            yield from _member_fault(used, tables.type_name(written), written, tables)


def _command_faults(command: dict[str, Any], own: dict[str, set[str]], tables: Tables) -> Iterator[str]:
    name = command["name"].lower().rpartition("\\")[2]
    given = {parameter.lower() for parameter in command["parameters"]}
    if name in tables.aliases:
        yield f"{command['name']} is an alias; write the command's name"
        return
    known = own.get(name) or tables.commands.get(name)
    if known is None:
        if name not in own:
            yield f"{command['name']} is no command of Windows PowerShell 5.1"
            return
        known = frozenset()
    for parameter in sorted(given - set(known) - COMMON):
        yield f"{command['name']} has no parameter -{parameter} in Windows PowerShell 5.1"
    if name == "convertto-json" and "depth" not in given and not command["splat"]:
        yield "ConvertTo-Json without -Depth stops at 2 without a word (PS07)"
    if name in ("invoke-webrequest", "invoke-restmethod") and "usebasicparsing" not in given:
        yield f"{command['name']} without -UseBasicParsing asks a question and waits (PS16)"


def _known_types(tree: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Variables of a function whose every assignment makes the same known type."""
    seen: dict[tuple[str, str], set[str | None]] = {}
    for binding in tree["bindings"]:
        seen.setdefault((binding["owner"], binding["name"].lower()), set()).add(binding["type"])
    return {key: kind for key, kinds in seen.items() if len(kinds) == 1 and (kind := next(iter(kinds)))}


def _member_fault(
    used: dict[str, Any], type_name: str | None, written: str, tables: Tables
) -> Iterator[tuple[int, str]]:
    if type_name is None or type_name in (
        "system.object",
        "system.management.automation.psobject",
        "system.management.automation.pscustomobject",
        "system.collections.hashtable",
    ):
        return
    if written.endswith("[]"):
        type_name = "system.array"
    counts = tables.member(type_name, used["member"])
    if counts is None:
        yield used["line"], f"[{written}] has no member {used['member']} in .NET Framework 4.6.2 (PS24)"
    elif used["call"] and counts and used["count"] not in counts and PARAMS not in counts:
        yield used["line"], f"[{written}].{used['member']} takes no {used['count']} arguments there (PS24)"
