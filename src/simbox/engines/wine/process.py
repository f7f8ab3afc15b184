"""Real Windows processes in the Wine prefix of a box."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import selectors
import signal
import subprocess
import tempfile
import termios
import threading
import time
import tty
import uuid
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from simbox.engines.engine import Chunk, StreamName
from simbox.engines.wine import commandline, prefix, tree
from simbox.engines.wine.launcher import launcher
from simbox.engines.wine.locate import WineTools, locate
from simbox.engines.wine.report import ERROR_INTERNAL, Report
from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box

_PIECE_BYTES = 65536
ERROR_TIMEOUT = 1460
# From launch.exe to the process: 0.3 s on an idle machine. Wine 8 now and then never gets there.
_START_S = 60.0
_ATTEMPTS = 3
_PRIORITY_FLAGS = {
    "Idle": 0x40,
    "BelowNormal": 0x4000,
    "Normal": 0x20,
    "AboveNormal": 0x8000,
    "High": 0x80,
    "Realtime": 0x100,
}
# Wine makes these itself and takes them from no Unix environment; launch.exe sets them.
_OF_WINE = frozenset({"PATH", "HOME", "PWD", "TEMP", "TMP", "WINEPREFIX", "WINEDEBUG", "LC_ALL", "LOGNAME"})
_LOCALES = {"zh-CN": "zh_CN.UTF-8", "de-DE": "de_DE.UTF-8"}


class StartFailed(OSError):
    """CreateProcess failed on the box; errno holds the Win32 error."""

    @property
    def before_windows(self) -> bool:
        """Wine itself stalled or ended before Windows was asked: another attempt may work."""
        return self.errno in (ERROR_TIMEOUT, ERROR_INTERNAL)


class WineProcess:
    """One Windows process with pipes as stdin and stdout, and what it started; a simbox.engines.engine.Process.

    stderr is a terminal of its own, for without a console pwsh.exe ends silently with 0.

    Args:
        tools: Wine and PowerShell of this machine.
        box: prefix folder.
        command_line: as CreateProcess takes it.
        variables: added to the environment that the prefix gives.
        directory: working directory on this machine.
        priority_class: Normal, BelowNormal, ...
        piped: False: stdin is empty, stdout and stderr go nowhere (a task's process).

    Raises StartFailed when Windows cannot create the process; ERROR_TIMEOUT when Wine did not get that far.
    """

    def __init__(
        self,
        tools: WineTools,
        box: Path,
        command_line: str,
        variables: Mapping[str, str],
        directory: Path,
        priority_class: str = "Normal",
        piped: bool = True,
    ) -> None:
        self._tools = tools
        self._box = box
        self._mark = uuid.uuid4().hex
        self._outputs: dict[int, StreamName] = {}
        self._selector = selectors.DefaultSelector()
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._report = Report()
        self._told: int | None = None
        self._ended = threading.Event()
        self._started = threading.Event()
        self._scratch = tempfile.TemporaryDirectory(prefix="simbox.")
        report = Path(self._scratch.name) / "report"
        os.mkfifo(report)
        # Read and write: so neither side waits for the other to open it, and no end of file comes between.
        self._reporting = os.open(report, os.O_RDWR)
        environment = {**prefix.environment(box), tree.MARK: self._mark, "TERM": "dumb"}
        environment["SIMBOX_COMMAND_LINE"] = command_line
        for name, value in variables.items():
            environment[f"SIMBOX_SET_{name}" if name.upper() in _OF_WINE else name] = value
        if "LC_ALL" in variables:
            environment["LC_ALL"] = variables["LC_ALL"]
            del environment["SIMBOX_SET_LC_ALL"]
        arguments = [
            str(tools.wine),
            str(launcher()),
            "run",
            prefix.windows_path(report),
            hex(_PRIORITY_FLAGS[priority_class]),
        ]
        # Wakes the reader when the process has ended: its terminal may stay open, held by Wine's services.
        self._wake, self._waker = os.pipe()
        self._selector.register(self._wake, selectors.EVENT_READ)
        # Of a process that nobody reads to its end they are closed when it is forgotten.
        self._open = {self._wake}
        weakref.finalize(self, _close, self._open)
        self._process = self._spawn(arguments, environment, directory, piped)
        self._watcher = threading.Thread(target=self._watch, name="wine process", daemon=True)
        self._watcher.start()
        stalled = not self._started.wait(_START_S)
        if not piped:
            threading.Thread(target=self._discard, name="wine output", daemon=True).start()
        error = ERROR_TIMEOUT if stalled else self._report.error
        if error is not None:
            self.terminate()
            raise StartFailed(error, f"CreateProcess: Win32 error {error}", command_line)

    @property
    def pid(self) -> int:
        """Its Windows process id."""
        return self._report.pid

    @property
    def exit_code(self) -> int | None:
        """See simbox.engines.engine.Process."""
        return self._told

    def write_stdin(self, data: bytes, end: bool) -> None:
        """See simbox.engines.engine.Process."""
        with self._writing:
            stdin = self._process.stdin
            if stdin is None or stdin.closed:
                raise BrokenPipeError("stdin is closed")
            try:
                view = memoryview(data)
                while view:
                    view = view[stdin.write(view) or 0 :]
            finally:
                if end or self._ended.is_set():
                    stdin.close()

    def read(self, timeout_s: float) -> list[Chunk]:
        """See simbox.engines.engine.Process."""
        deadline = time.monotonic() + timeout_s
        with self._reading:
            while self._outputs:
                found = self._ready(max(0.0, deadline - time.monotonic()))
                if found or time.monotonic() >= deadline:
                    return found
            if self._ended.wait(max(0.0, deadline - time.monotonic())):
                self._told = self._report.exit_code
            return []

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Block until it ended; its exit code, or None after the timeout."""
        return self._report.exit_code if self._ended.wait(timeout_s) else None

    def signal(self, ctrl_c: bool) -> None:
        """Ctrl+C as typed on its terminal; Ctrl+Break ends the tree, for a Unix terminal has no such key."""
        if not ctrl_c:
            self.terminate()
        elif self._terminal in self._outputs:
            os.write(self._terminal, b"\x03")

    def kill_root(self) -> None:
        """TerminateProcess with exit code 1 on the process alone."""
        if not self._ended.is_set():
            command = [str(self._tools.wine), str(launcher()), "kill", str(self.pid)]
            subprocess.run(
                command,
                env=prefix.environment(self._box),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )

    def kill_tree(self) -> None:
        """End it and all that it started."""
        tree.kill(self._mark)

    def terminate(self) -> None:
        """See simbox.engines.engine.Process."""
        self.kill_tree()
        self._process.wait()
        self._ended.wait()

    def _spawn(
        self, arguments: list[str], environment: dict[str, str], directory: Path, piped: bool
    ) -> subprocess.Popen[bytes]:
        self._terminal, theirs = pty.openpty()
        self._open.add(self._terminal)
        tty.setraw(theirs)

        def own_terminal() -> None:
            # Else the end of launch.exe, first of its session, would hang up on conhost.exe, and the wineserver of
            # Wine 8 crashes when a console ends whose conhost.exe is dead, and the whole box with it (tree.py).
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else subprocess.DEVNULL,
                stderr=theirs,
                bufsize=0,
                env=environment,
                cwd=directory,
                preexec_fn=own_terminal,
            )
        finally:
            os.close(theirs)
        descriptors: list[tuple[int, StreamName]] = [(self._terminal, "stderr")]
        if process.stdout is not None:
            descriptors.append((process.stdout.fileno(), "stdout"))
        for descriptor, name in descriptors:
            os.set_blocking(descriptor, False)
            self._outputs[descriptor] = name
            self._selector.register(descriptor, selectors.EVENT_READ)
        return process

    def _watch(self) -> None:
        """Follow launch.exe's report until the process has ended."""
        reaper = threading.Thread(target=self._reap, name="wine reaper", daemon=True)
        reaper.start()
        with os.fdopen(self._reporting, "rb", buffering=0) as report:
            while self._report.exit_code is None:
                self._report.feed(report.read(4096))
                if self._report.told:
                    self._started.set()
        self._ended.set()
        os.close(self._waker)
        self._scratch.cleanup()

    def _reap(self) -> None:
        """When Unix kills launch.exe it reports nothing: say so in its place."""
        self._process.wait()
        try:
            descriptor = os.open(Path(self._scratch.name) / "report", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return
        with contextlib.suppress(BrokenPipeError):  # it had reported, and the watcher is gone already
            os.write(descriptor, b"gone 1\n")
        os.close(descriptor)

    def _discard(self) -> None:
        while self._outputs:
            self.read(3600)

    def _ready(self, timeout_s: float) -> list[Chunk]:
        found: list[Chunk] = []
        ready = [key.fd for key, _ in self._selector.select(timeout_s)]
        for descriptor in ready:
            if descriptor == self._wake:
                continue
            data = self._read_some(descriptor)
            if data:
                found.append((self._outputs[descriptor], data))
            elif data == b"":
                self._drop(descriptor)
        if self._wake in ready and not found and self._terminal in self._outputs:
            self._drop(self._terminal)
        if self._wake in ready and self._terminal not in self._outputs:
            # What is left is stdout, held by a child: now only its own end can wake the reader.
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._wake)
        return found

    def _read_some(self, descriptor: int) -> bytes | None:
        """Output, b"" at its end, None when there is none now."""
        try:
            return os.read(descriptor, _PIECE_BYTES)
        except BlockingIOError:
            return None
        except OSError:  # a terminal whose other side is closed says EIO
            return b""

    def _drop(self, descriptor: int) -> None:
        del self._outputs[descriptor]
        self._selector.unregister(descriptor)
        if descriptor == self._terminal:
            self._open.discard(descriptor)
            os.close(descriptor)
        elif self._process.stdout is not None:
            self._process.stdout.close()
        if not self._outputs:
            self._selector.close()
            self._open.discard(self._wake)
            os.close(self._wake)


def _close(descriptors: set[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def start(
    tools: WineTools,
    box: Path,
    command_line: str,
    variables: Mapping[str, str],
    directory: Path,
    priority_class: str = "Normal",
    piped: bool = True,
) -> WineProcess:
    """A WineProcess, begun anew when Wine did not get as far as creating it; raises StartFailed."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return WineProcess(tools, box, command_line, variables, directory, priority_class, piped)
        except StartFailed as error:
            if not error.before_windows or attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def start_detached(
    box: Box,
    command: str,
    arguments: str,
    working_directory: str | None,
    *,
    priority_class: str = "Normal",
    session_id: int = 0,
) -> WineProcess:
    """Start what a scheduled task declares; see simbox.task.starter.ProcessStarter."""
    tools = locate()
    folder = working_directory or "C:\\Windows\\System32"
    directory = box.filesystem.host(folder)
    if not directory.is_dir():
        raise WindowsError(
            "System.ComponentModel.Win32Exception", "The directory name is invalid", 0x8007010B
        )
    line = commandline.resolve(tools, f'"{command}" {arguments}'.rstrip(), load=None)
    try:
        return start(
            tools,
            box.directory,
            line.text,
            {**variables(box), **line.variables},
            directory,
            priority_class,
            piped=False,
        )
    except StartFailed as error:
        code = error.errno or ERROR_INTERNAL
        raise WindowsError("System.ComponentModel.Win32Exception", str(error), 0x80070000 | code) from error


def variables(box: Box) -> dict[str, str]:
    """What every process of a box has in its environment: the way to the simulator, the language of
    Windows."""
    culture = str(box.store.get("system", "culture", default="en-US"))
    return {
        **box.simulator_environment,
        "SIMBOX_ADDRESS": box.address,
        "LC_ALL": _LOCALES.get(culture, "C.UTF-8"),
    }
