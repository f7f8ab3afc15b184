"""Wildcards * and ? in the last part of a path."""

from __future__ import annotations

import fnmatch
import ntpath
import re

from simbox.cmd.machine import Entry, MachineError
from simbox.cmd.state import State


def matches(name: str, pattern: str) -> bool:
    """Whether a file name fits a Windows pattern; `*.*` is everything."""
    if pattern in ("*", "*.*"):
        return True
    translated = fnmatch.translate(pattern.replace("[", "[[]"))
    return re.fullmatch(translated, name, re.IGNORECASE) is not None


def matching(state: State, path: str) -> list[tuple[str, Entry]]:
    """(path in the spelling of the caller's folder, entry) of all files and folders that fit, sorted by
    name."""
    folder, pattern = ntpath.split(path.replace("/", "\\"))
    try:
        entries = state.machine.names(state.full_path(folder or "."))
    except MachineError:
        return []
    return [(ntpath.join(folder, entry.name), entry) for entry in entries if matches(entry.name, pattern)]


def files(state: State, path: str) -> list[str]:
    """Full paths of the files that a path with or without wildcards names; a folder means all files in it."""
    if "*" in path or "?" in path:
        return [state.full_path(found) for found, entry in matching(state, path) if not entry.directory]
    entry = state.entry(path)
    if entry is None:
        return []
    if entry.directory:
        return files(state, ntpath.join(path, "*"))
    full = state.full_path(path)
    return [ntpath.join(ntpath.dirname(full), entry.name)]
