"""Runs serve_task.bat under a cmd.exe, with an executable that reports its arguments as ninfer-serve.exe.

Two of them: Wine's cmd.exe with real programs (`run_on_wine`, one start of Wine for any number of scenarios), and
the simulator's interpreter with files in memory (`run_in_memory`). Both tell the same things of a scenario.
"""

from __future__ import annotations

import io
import ntpath
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ninfer_fleet.server import launcher
from ninfer_fleet.settings import Settings
from simbox.cmd.interpreter import Interpreter
from simbox.cmd.machine import Entry, Launch, MachineError, Streams
from simbox.engines.python.commandline import split_argv
from simbox.engines.wine import prefix
from simbox.engines.wine.locate import WineTools

TEMPLATE = Path(__file__).parents[2] / "templates" / "serve_task.bat.j2"
PROBE = Path(__file__).with_name("argv_probe.c")
KEY = "test-key-that-opens-nothing-7d1f"
WINDOWS = "C:\\windows"
PING = f"{WINDOWS}\\system32\\ping.exe"


@dataclass(frozen=True)
class Scenario:
    """What is on the box, and how the server ends each time.

    Attributes: settings, codes ("1", "stop 0": with the stop flag), key and draft (contents; None: no file),
    files (more of them), missing (paths left out), stop_at_pause (number of the pause in which somebody sets the
    flag).
    """

    settings: Settings
    codes: tuple[str, ...] = ("stop 0",)
    key: bytes | None = KEY.encode() + b"\r\n"
    draft: bytes | None = b"7"
    files: dict[str, bytes] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    stop_at_pause: int = 30

    def contents(self) -> dict[str, bytes]:
        """Every file of the box."""
        layout = self.settings.layout
        found = {
            layout.executable: b"",
            self.settings.model_path: b"NINFER\x00\x02",
            layout.launcher: launcher.render(self.settings, TEMPLATE),
            **self.files,
        }
        for path, content in ((layout.key_file, self.key), (layout.draft_file, self.draft)):
            if content is not None:
                found[path] = content
        return {path: content for path, content in found.items() if path not in self.missing}

    def folders(self) -> list[str]:
        """Every folder of the box, parents first."""
        return [*self.settings.layout.folders(), self.settings.layout.current]


@dataclass
class Seen:
    """What a scenario did: argument lists of all starts, arguments of all pauses, files below the root, code."""

    argvs: list[list[str]]
    pauses: list[list[str]]
    files: dict[str, bytes]
    code: int

    def text(self, path: str) -> str:
        return self.files[path].decode("ascii").replace("\r\n", "\n")

    def exits(self, settings: Settings) -> list[str]:
        return self.text(settings.layout.below("logs", "exits.log")).splitlines()

    def codes(self, settings: Settings) -> list[str]:
        """What exits.log says of each end, up to its second word."""
        return [line.partition(" minutes=")[0] for line in self.exits(settings)]


# Wine


def compile_probe(target: Path) -> None:
    """Build the executable. Raises FileNotFoundError when there is no mingw compiler."""
    command = ["x86_64-w64-mingw32-gcc", "-O1", "-Wall", "-Werror", "-o", str(target), str(PROBE)]
    subprocess.run(command, check=True, capture_output=True)


def run_on_wine(tools: WineTools, box: Path, probe: Path, scenarios: Iterable[Scenario]) -> list[Seen]:
    """Run them one after the other in one cmd.exe; each needs a root of its own. The probe is ping.exe, too."""
    todo = list(scenarios)
    drive = box / "drive_c"
    driver = ["@echo off"]
    ping = _host(drive, PING)
    ping.unlink()  # a link into the template
    ping.write_bytes(probe.read_bytes())
    for number, scenario in enumerate(todo):
        layout = scenario.settings.layout
        for folder in scenario.folders():
            _host(drive, folder).mkdir(parents=True, exist_ok=True)
        for path, content in scenario.contents().items():
            _host(drive, path).write_bytes(content)
        if layout.executable not in scenario.missing:
            _host(drive, layout.executable).write_bytes(probe.read_bytes())
        home = f"C:\\probe {number}"
        _host(drive, home).mkdir()
        _host(drive, f"{home}\\probe.txt").write_text("\n".join(scenario.codes) + "\n")
        driver += [
            f'set "PROBE={home}"',
            f'set "PROBE_STOP={layout.stop_flag}"',
            f'set "PROBE_PINGS={scenario.stop_at_pause}"',
            f'cmd.exe /d /c "{layout.launcher}" >"{home}\\out" 2>&1',
            f'>"{home}\\code" echo %ERRORLEVEL%',
        ]
    _host(drive, "C:\\driver.bat").write_bytes("\r\n".join([*driver, ""]).encode("ascii"))
    subprocess.run(
        [str(tools.wine), "cmd.exe", "/d", "/c", "C:\\driver.bat"],
        # Else Wine takes its own ping.exe whatever the file is.
        env={**prefix.environment(box), "WINEDLLOVERRIDES": "ping.exe=n"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=280,
        check=False,
    )
    return [_look(drive, scenario, f"C:\\probe {number}") for number, scenario in enumerate(todo)]


def _look(drive: Path, scenario: Scenario, home: str) -> Seen:
    folder = _host(drive, home)
    argvs = sorted(folder.glob("argv-*.txt"), key=lambda path: int(path.stem[5:]))
    root = _host(drive, scenario.settings.layout.root)
    files = {
        scenario.settings.layout.below(*path.relative_to(root).parts): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }
    pings = folder / "pings.txt"
    return Seen(
        [path.read_text("latin-1").splitlines() for path in argvs],
        [line.split() for line in pings.read_text().splitlines()] if pings.exists() else [],
        files,
        int((folder / "code").read_text()),
    )


def _host(drive: Path, windows: str) -> Path:
    return drive.joinpath(*windows[3:].split("\\"))


# The simulator's interpreter


class _File(io.BytesIO):
    def __init__(self, machine: MemoryMachine, path: str, content: bytes = b"") -> None:
        super().__init__()
        self._machine, self._path = machine, path
        self.write(content)

    def close(self) -> None:
        self._machine.files[self._path.lower()] = (self._path, self.getvalue())
        super().close()


class MemoryMachine:
    """A simbox.cmd.machine.Machine of files in memory, whose programs are those of the bench."""

    encoding = "cp437"
    version = "10.0.22631.4317"

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.files = {path.lower(): (path, content) for path, content in scenario.contents().items()}
        self.folders = {folder.lower() for folder in scenario.folders()}
        self.argvs: list[list[str]] = []
        self.pauses: list[list[str]] = []
        self._lines = 0
        self.on_run: Callable[[], None] = lambda: None

    def entry(self, path: str) -> Entry | None:
        if path.lower() in self.files:
            name, content = self.files[path.lower()]
            return Entry(ntpath.basename(name), False, len(content), 0.0)
        known = path.lower() in self.folders or path.lower() == PING.lower()
        return Entry(ntpath.basename(path), path.lower() in self.folders, 0, 0.0) if known else None

    def names(self, directory: str) -> list[Entry]:
        raise MachineError(5)

    def read(self, path: str) -> bytes:
        if path.lower() not in self.files:
            raise MachineError(2)
        return self.files[path.lower()][1]

    def open(self, path: str, mode: str) -> _File:
        if ntpath.dirname(path).lower() not in self.folders:
            raise MachineError(3)
        if mode == "read":
            raise MachineError(5)
        old = self.files.get(path.lower(), (path, b""))[1] if mode == "append" else b""
        return _File(self, path, old)

    def delete(self, path: str) -> None:
        if self.files.pop(path.lower(), None) is None:
            raise MachineError(2)

    def move(self, path: str, destination: str, replace: bool) -> None:
        if destination.lower() in self.files and not replace:
            raise MachineError(183)
        self.files[destination.lower()] = (destination, self.read(path))
        del self.files[path.lower()]

    def make_directory(self, path: str) -> None:
        raise MachineError(5)

    def remove_directory(self, path: str, recurse: bool) -> None:
        raise MachineError(5)

    def run(self, launch: Launch) -> int:
        arguments = split_argv(launch.command_line)[1:]
        if launch.path.lower().endswith("\\ping.exe"):
            self.pauses.append(arguments)
            if len(self.pauses) >= self.scenario.stop_at_pause:
                self._stop()
            return 0
        assert launch.path.lower() == self.scenario.settings.layout.executable.lower()
        assert len(self.argvs) < 50, "the .bat does not stop"
        self.argvs.append(arguments)
        launch.streams.stdout.write(f"run {len(self.argvs)}\r\n".encode())
        self.on_run()
        codes = self.scenario.codes
        line = codes[len(self.argvs) - 1] if len(self.argvs) <= len(codes) else "stop 0"
        if line.startswith("stop "):
            self._stop()
        return int(line.removeprefix("stop "))

    def _stop(self) -> None:
        flag = self.scenario.settings.layout.stop_flag
        self.files[flag.lower()] = (flag, b"")

    def start(self, launch: Launch) -> None:
        raise MachineError(5)

    def sleep(self, seconds: float) -> None:
        raise AssertionError("the .bat sleeps by ping.exe")

    def check(self) -> None:
        self._lines += 1
        assert self._lines < 5000, "the .bat neither pauses nor ends"


def run_in_memory(scenario: Scenario, machine: MemoryMachine | None = None) -> Seen:
    """Run one scenario in the simulator's interpreter."""
    machine = machine or MemoryMachine(scenario)
    machine.folders.add("c:\\windows")
    streams = Streams(io.BytesIO(), io.BytesIO(), io.BytesIO())
    shell = Interpreter(machine, {"SystemRoot": WINDOWS, "PATH": ""}, "C:\\windows", streams)
    code = shell.run_line(f'"{scenario.settings.layout.launcher}"')
    files = dict(machine.files.values())
    return Seen(machine.argvs, machine.pauses, files, code)
