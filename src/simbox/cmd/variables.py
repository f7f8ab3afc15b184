"""Environment variables (names are case-blind), batch parameters and their ~ modifiers."""

from __future__ import annotations

import datetime
import ntpath
import random
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field

from simbox.cmd.machine import Entry

DELIMITERS = " \t,;="


class Environment(MutableMapping[str, str]):
    """The environment of a process: names compare without case and keep the spelling they were first
    given."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, tuple[str, str]] = {}
        self.update(values or {})

    def __getitem__(self, name: str) -> str:
        return self._values[name.upper()][1]

    def __setitem__(self, name: str, value: str) -> None:
        spelling = self._values.get(name.upper(), (name, ""))[0]
        self._values[name.upper()] = (spelling, value)

    def __delitem__(self, name: str) -> None:
        del self._values[name.upper()]

    def __iter__(self) -> Iterator[str]:
        return iter([spelling for spelling, _ in self._values.values()])

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.upper() in self._values

    def copy(self) -> Environment:
        """An independent copy, as a child process or SETLOCAL gets it."""
        return Environment(dict(self.items()))


def dynamic_value(name: str, error_level: int, directory: str) -> str | None:
    """The variables that cmd.exe computes itself when the environment has none of that name."""
    now = datetime.datetime.now()
    match name.upper():
        case "ERRORLEVEL":
            return str(error_level)
        case "CD":
            return directory
        case "DATE":
            return now.strftime("%a %m/%d/%Y")
        case "TIME":
            return f"{now.hour:2d}:{now:%M:%S}.{now.microsecond // 10000:02d}"
        case "RANDOM":
            return str(random.randrange(32768))
        case "CMDEXTVERSION":
            return "2"
        case "HIGHESTNUMANODENUMBER":
            return "0"
    return None


def split_arguments(text: str) -> list[str]:
    """Cut the text after a batch file's name into %1, %2, ...: quotes stay, and keep blanks together."""
    found: list[str] = []
    current = ""
    quoted = False
    for character in text:
        if character == '"':
            quoted = not quoted
        if not quoted and character in DELIMITERS:
            if current:
                found.append(current)
            current = ""
        else:
            current += character
    if current:
        found.append(current)
    return found


@dataclass
class Parameters:
    """%0 to %9 and %* of one batch context.

    Attributes: name (%0 as typed), path (full path of the batch file), tail (text of %*), values (%1 and on).
    """

    name: str
    path: str
    tail: str = ""
    values: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, path: str, text: str) -> Parameters:
        """Parameters from the text that follows a batch file's name or a label."""
        return cls(name, path, text.strip(), split_arguments(text))

    def get(self, digit: int) -> str:
        """%digit, or nothing."""
        everything = [self.name, *self.values]
        return everything[digit] if digit < len(everything) else ""

    def shift(self, first: int) -> None:
        """SHIFT /first."""
        everything = [self.name, *self.values]
        if first < len(everything):
            del everything[first]
        self.name, self.values = (everything[0] if everything else ""), everything[1:]


@dataclass(frozen=True)
class Lookups:
    """What a ~ modifier may need: files, the present folder, and the environment for ~$PATH:."""

    entry: Callable[[str], Entry | None]
    full_path: Callable[[str], str]
    variable: Callable[[str], str | None]


MODIFIERS = "fdpnxsatz"


def modify(
    value: str, modifiers: str, search: str | None, lookups: Lookups, own_path: str | None = None
) -> str:
    """A parameter or FOR variable with its ~ modifiers applied.

    Args:
        modifiers: letters between ~ and the digit or name; search: NAME of ``$NAME:`` or None;
        own_path: full path that stands for the value (for %0 of the running batch file).
    """
    text = value[1:] if value.startswith('"') else value
    text = text[:-1] if text.endswith('"') else text
    if search is not None:
        folders = (lookups.variable(search) or "").split(";")
        candidates = [lookups.full_path(ntpath.join(folder, text)) for folder in folders if folder]
        found = next((path for path in candidates if lookups.entry(path) is not None), "")
        if not found:
            return ""
        text, modifiers = found, modifiers or "f"
    if not modifiers:
        return text
    if not text:
        return ""
    path = own_path or lookups.full_path(text)
    entry = lookups.entry(path)
    if entry is not None and entry.name:
        path = ntpath.join(ntpath.dirname(path), entry.name) if ntpath.basename(path) else path
    drive, rest = ntpath.splitdrive(path)
    folder, name = ntpath.split(rest)
    stem, extension = ntpath.splitext(name)
    parts = []
    if "a" in modifiers and entry is not None:
        letters = zip(
            "drahscotlxvX", ["Directory", "ReadOnly", "Archive", "Hidden", "System"] + [""] * 7, strict=True
        )
        parts.append("".join(letter if label in entry.attributes else "-" for letter, label in letters)[:11])
    if "t" in modifiers and entry is not None:
        parts.append(datetime.datetime.fromtimestamp(entry.modified_s).strftime("%m/%d/%Y %I:%M %p"))
    if "z" in modifiers and entry is not None:
        parts.append(str(entry.size_bytes))
    if "f" in modifiers or ("s" in modifiers and not set(modifiers) & set("dpnx")):
        parts.append(path)
    else:
        spelled = drive if "d" in modifiers else ""
        if "p" in modifiers:
            spelled += folder if folder.endswith("\\") else folder + "\\"
        spelled += stem if "n" in modifiers else ""
        spelled += extension if "x" in modifiers else ""
        if spelled:
            parts.append(spelled)
    return " ".join(parts)
