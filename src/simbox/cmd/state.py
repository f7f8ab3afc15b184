"""The state of one running cmd.exe: environment, folders, error level, SETLOCAL frames."""

from __future__ import annotations

import ntpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from simbox.cmd.machine import Entry, Machine
from simbox.cmd.variables import Environment, Lookups, dynamic_value


@dataclass(frozen=True)
class Frame:
    """What SETLOCAL saved."""

    environment: Environment
    folders: dict[str, str]
    drive: str
    delayed: bool


@dataclass
class State:
    """Attributes: environment; folders (present folder of each drive) and drive (letter in use); error_level
    (signed 32 bit); echo; delayed (expansion of !name!); for_values (FOR variables in force)."""

    machine: Machine
    environment: Environment
    folders: dict[str, str]
    drive: str
    error_level: int = 0
    echo: bool = True
    delayed: bool = False
    for_values: dict[str, str] = field(default_factory=dict)
    pushed: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, machine: Machine, environment: Mapping[str, str], directory: str) -> State:
        """The state of a fresh cmd.exe in that folder."""
        drive = directory[:1].upper()
        return cls(machine, Environment(environment), {drive: directory}, drive)

    @property
    def directory(self) -> str:
        """The present folder."""
        return self.folders[self.drive]

    def enter(self, directory: str, change_drive: bool = True) -> None:
        """Make an existing folder the present one of its drive and, if asked, go to that drive."""
        self.folders[directory[:1].upper()] = directory
        if change_drive:
            self.drive = directory[:1].upper()

    def variable(self, name: str) -> str | None:
        """A variable of the environment, or one that cmd.exe computes."""
        value = self.environment.get(name)
        if value is None:
            value = dynamic_value(name, self.error_level, self.directory)
        return value

    def full_path(self, path: str) -> str:
        """An absolute path without dots, from the present folder of its drive. Quotes must be off."""
        text = path.replace("/", "\\")
        drive, rest = ntpath.splitdrive(text)
        if len(drive) == 2 and drive[1] == ":":
            base = self.folders.get(drive[0].upper(), drive.upper() + "\\")
            full = ntpath.join(base, rest) if not rest.startswith("\\") else drive + rest
        elif drive:
            full = text
        else:
            full = ntpath.join(self.directory, text)
        full = ntpath.normpath(full)
        return full[0].upper() + full[1:]

    def entry(self, path: str) -> Entry | None:
        """The file or folder at a path relative to the present folder."""
        return self.machine.entry(self.full_path(path))

    @property
    def lookups(self) -> Lookups:
        """For the ~ modifiers."""
        return Lookups(self.machine.entry, self.full_path, self.variable)

    def save(self) -> Frame:
        """For SETLOCAL."""
        return Frame(self.environment.copy(), dict(self.folders), self.drive, self.delayed)

    def restore(self, frame: Frame) -> None:
        """For ENDLOCAL and the end of a batch file."""
        self.environment = frame.environment
        self.folders, self.drive, self.delayed = frame.folders, frame.drive, frame.delayed
