"""Detached jobs: declared steps, their hash, and how a job stands on a box."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from winfleet.answer import Model, ModelError, mapping, optional_integer, optional_text
from winfleet.path import absolute_path

State = Literal["absent", "running", "done", "lost"]
_STATES: tuple[State, ...] = ("absent", "running", "done", "lost")


@dataclass(frozen=True)
class Run(Model):
    """A step that runs a program with exactly this argv. program is a full path; environment is added to the
    job's."""

    name: str
    program: str
    arguments: tuple[str, ...] = ()
    working_directory: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def step(self) -> dict[str, Any]:
        """The step as docs/box-commands.md writes it."""
        return {
            "Name": self.name,
            "Kind": "run",
            "Program": self.program,
            "Arguments": list(self.arguments),
            "WorkingDirectory": self.working_directory,
            "Environment": dict(self.environment),
        }


@dataclass(frozen=True)
class Environment(Model):
    """A step that runs a batch file (such as vcvars64.bat) and keeps its environment for the later steps."""

    name: str
    batch: str
    arguments: tuple[str, ...] = ()

    def step(self) -> dict[str, Any]:
        """The step as docs/box-commands.md writes it."""
        return {
            "Name": self.name,
            "Kind": "environment",
            "Batch": self.batch,
            "Arguments": list(self.arguments),
        }


@dataclass(frozen=True)
class Download(Model):
    """A step that runs curl (with `--continue-at -`) for what is missing of path: nothing when it has its size
    already, all of it when it is larger, or when the server does not serve ranges (exit code 33)."""

    name: str
    program: str
    arguments: tuple[str, ...]
    path: str
    size_bytes: int

    def step(self) -> dict[str, Any]:
        """The step as docs/box-commands.md writes it."""
        return {
            "Name": self.name,
            "Kind": "download",
            "Program": self.program,
            "Arguments": list(self.arguments),
            "Path": self.path,
            "SizeBytes": self.size_bytes,
        }


@dataclass(frozen=True)
class Verify(Model):
    """A step that checks size, hash and first bytes of path and then renames it to destination.

    again: name of the download before it. Then a wrong file is deleted; and when the download found a part of
    it (maybe of another file), the job goes back to it, once.
    """

    name: str
    path: str
    destination: str
    size_bytes: int
    sha256: str
    magic_hex: str | None = None
    again: str | None = None

    def step(self) -> dict[str, Any]:
        """The step as docs/box-commands.md writes it."""
        step: dict[str, Any] = {
            "Name": self.name,
            "Kind": "verify",
            "Path": self.path,
            "Destination": self.destination,
            "SizeBytes": self.size_bytes,
            "Sha256": self.sha256.lower(),
        }
        if self.magic_hex is not None:
            step["MagicHex"] = self.magic_hex
        if self.again is not None:
            step["Again"] = self.again
        return step


Step: TypeAlias = Run | Environment | Download | Verify


def job_hash(steps: Sequence[Step]) -> str:
    """Identity of a job: the same steps give the same 64 hex digits, on every controller."""
    text = json.dumps(
        [step.step() for step in steps], sort_keys=True, ensure_ascii=True, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()


def check_steps(steps: Sequence[Step]) -> list[str]:
    """What is wrong with declared steps; empty: nothing."""
    faults = [] if steps else ["a job needs at least one step"]
    names = [step.name for step in steps]
    faults += [
        f"the step name {name!r} is used twice" for name in sorted(set(names)) if names.count(name) > 1
    ]
    for number, step in enumerate(steps):
        paths: list[str] = []
        if isinstance(step, Run):
            paths = [step.program, *([step.working_directory] if step.working_directory else [])]
        elif isinstance(step, Environment):
            paths = [step.batch]
        elif isinstance(step, Download):
            paths = [step.program, step.path]
        else:
            paths = [step.path, step.destination]
            if step.again is not None and step.again not in names[:number]:
                faults.append(f"step {step.name!r}: no earlier step is called {step.again!r}")
        faults += [
            f"step {step.name!r}: {path!r} is no full path" for path in paths if not absolute_path(path)
        ]
    return faults


@dataclass(frozen=True)
class JobState(Model):
    """Answer of Get-BoxJob.

    Attributes: state ("lost": it was started but its process is gone and left no exit code), hash, exit_code
    (only when done), started_utc, process_id, step (name of the present or last step), log (text from the
    asked offset), log_size_bytes, log_next_offset_bytes (where the next look goes on: no character is cut in
    two).
    """

    state: State
    hash: str | None
    exit_code: int | None
    started_utc: str | None
    process_id: int | None
    step: str | None
    log: str
    log_size_bytes: int
    log_next_offset_bytes: int

    @classmethod
    def parse(cls, value: Any) -> JobState:
        """From the JSON value. Raises ModelError."""
        data = mapping(value, "Get-BoxJob")
        state = next((item for item in _STATES if item == data.get("State")), None)
        if state is None:
            raise ModelError(f"State: one of {', '.join(_STATES)} was expected, not {data.get('State')!r}")
        return cls(
            state,
            optional_text(data, "Hash"),
            optional_integer(data, "ExitCode"),
            optional_text(data, "StartedUtc"),
            optional_integer(data, "ProcessId"),
            optional_text(data, "Step"),
            optional_text(data, "Log") or "",
            optional_integer(data, "LogSizeBytes") or 0,
            optional_integer(data, "LogNextOffsetBytes") or optional_integer(data, "LogSizeBytes") or 0,
        )

    def succeeded(self, wanted_hash: str) -> bool:
        """True when the job with that hash ended with code 0."""
        return self.state == "done" and self.exit_code == 0 and self.hash == wanted_hash
