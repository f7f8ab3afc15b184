"""Which statements of src/winfleet/*/*.ps1 a test run reaches on a wine box.

PowerShell's parser finds the statements; each gets a note in front of it that is written the first time a process runs
it. The noted files then take the place of the originals, so everything that is sent to a box is covered: the loader,
the program, and the job runner, which is a process of its own. The python engine needs none of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import winfleet
from powershell51.parser import powershell
from simbox.engines.wine.prefix import windows_path
from winfleet.wire import program

VARIABLE = "NINFER_FLEET_POWERSHELL_COVERAGE"
MINIMUM_PERCENT = 90.0
_NOTES = "NINFER_FLEET_POWERSHELL_COVERAGE_NOTES"
_SOURCE = Path(winfleet.__file__).parent


@dataclass(frozen=True)
class FileCoverage:
    """Attributes: name (of the file); lines -> number of statements that begin there, and of those that ran."""

    name: str
    lines: dict[int, tuple[int, int]]

    @property
    def statements(self) -> tuple[int, int]:
        """How many there are, and how many ran."""
        return sum(all_ for all_, _ in self.lines.values()), sum(ran for _, ran in self.lines.values())

    @property
    def covered_lines(self) -> int:
        """Lines all of whose statements ran."""
        return sum(all_ == ran for all_, ran in self.lines.values())

    @property
    def missing(self) -> list[int]:
        return sorted(line for line, (all_, ran) in self.lines.items() if all_ != ran)


def install() -> None:
    """Put noted copies in the place of the files that are sent. Raises parser.NoPowerShell."""
    # pytest-xdist's workers inherit the folder, so their notes meet in one place; the numbers are the same in all.
    if _NOTES not in os.environ:
        os.environ[_NOTES] = tempfile.mkdtemp(prefix="powershell-coverage.")
    home = Path(os.environ[_NOTES])
    copies, notes = home / f"copies-{os.getpid()}", home / "notes"
    copies.mkdir()
    notes.mkdir(exist_ok=True)
    script = Path(__file__).with_name("instrument.ps1")
    command = [str(powershell()), "-NoLogo", "-NoProfile", "-NonInteractive", "-File", str(script)]
    files = sorted(_SOURCE.glob("*/*.ps1"))
    done = subprocess.run(
        [*command, str(copies), windows_path(notes), *map(str, files)],
        capture_output=True,
        text=True,
        check=True,
    )
    (home / "statements").write_text(done.stdout)
    program._HERE = copies
    program.build_program.cache_clear()


def results() -> Iterator[FileCoverage]:
    """What ran so far, file by file."""
    home = Path(os.environ[_NOTES])
    ran = {int(number) for note in (home / "notes").iterdir() for number in note.read_text().split()}
    for text in (home / "statements").read_text().splitlines():
        found = json.loads(text)
        lines: dict[int, tuple[int, int]] = {}
        for number, line in found["statements"]:
            all_, seen = lines.get(line, (0, 0))
            lines[line] = (all_ + 1, seen + (number in ran))
        yield FileCoverage(found["file"], lines)


def total_of(found: Iterable[FileCoverage]) -> FileCoverage:
    """All files as one, its lines numbered through."""
    return FileCoverage("total", dict(enumerate(pair for one in found for pair in one.lines.values())))


def enough() -> bool:
    """Whether MINIMUM_PERCENT of all lines ran."""
    total = total_of(results())
    return 100 * total.covered_lines >= MINIMUM_PERCENT * len(total.lines)


def report() -> list[str]:
    """A line for each file and one for all of them; the same goes into the file that VARIABLE names."""
    found = list(results())
    total = total_of(found)
    texts = []
    for one in [*found, total]:
        statements, ran = one.statements
        text = f"{one.name:18} {100 * one.covered_lines / len(one.lines):5.1f} % of {len(one.lines):4} lines"
        text += f", {100 * ran / statements:5.1f} % of {statements:4} statements"
        if one is not total and one.missing:
            text += f"; not: {', '.join(map(str, one.missing))}"
        texts.append(text)
    file = Path(os.environ[VARIABLE])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(texts) + "\n")
    return texts


def remove() -> None:
    """Delete the notes and the copies."""
    shutil.rmtree(os.environ.pop(_NOTES), ignore_errors=True)
