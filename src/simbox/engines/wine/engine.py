"""The engine of a wine box: its command lines run as real Windows processes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from simbox.engines.engine import Chunk, Process
from simbox.engines.wine import commandline
from simbox.engines.wine.locate import locate
from simbox.engines.wine.prefix import windows_path
from simbox.engines.wine.process import StartFailed, WineProcess, start, variables

if TYPE_CHECKING:
    from simbox.box import Box

_ATTEMPTS = 4
_READY = b"~simbox ready~"
_START_S = 60.0
_FILE_NOT_FOUND = (2, 3)


class Loop:
    """A PowerShell that has loaded the stand-ins and now reads its client's lines.

    Args:
        process: that PowerShell.
        early: what it wrote to stderr while it loaded them.
    """

    def __init__(self, process: WineProcess, early: list[Chunk]) -> None:
        self._process = process
        self._early = early

    @property
    def exit_code(self) -> int | None:
        """See simbox.engines.engine.Process."""
        return None if self._early else self._process.exit_code

    def write_stdin(self, data: bytes, end: bool) -> None:
        """See simbox.engines.engine.Process."""
        self._process.write_stdin(data, end)

    def read(self, timeout_s: float) -> list[Chunk]:
        """See simbox.engines.engine.Process."""
        if self._early:
            early, self._early = self._early, []
            return early
        return self._process.read(timeout_s)

    def signal(self, ctrl_c: bool) -> None:
        """See simbox.engines.engine.Process."""
        self._process.signal(ctrl_c)

    def terminate(self) -> None:
        """See simbox.engines.engine.Process."""
        self._process.terminate()


class WineEngine:
    """Implements simbox.engines.engine.Engine for one box, whose folder is a booted prefix.

    A PowerShell that dies before it is ready is started again (measured: 1 of 230 starts under Wine 8) and
    counted as `powershell_restart` in the box's events.
    """

    def __init__(self, box: Box) -> None:
        self._box = box
        self._tools = locate()
        self._written: str | None = None

    def start(
        self,
        command_line: str,
        environment: dict[str, str],
        working_directory: str | None,
        skip_cmd_shell: bool,
    ) -> Process:
        """See simbox.engines.engine.Engine."""
        directory = self._directory(working_directory)
        state = self._registry_state()
        load = self._load_text(sync=state != self._written)
        line = commandline.resolve(self._tools, command_line, load=load)
        values = {**variables(self._box), **environment, **line.variables}
        if line.loop:
            loop = self._start_loop(line.text, values, directory, load)
            self._written = state
            return loop
        text = line.text
        if not skip_cmd_shell and not line.variables:
            text = f'C:\\Windows\\System32\\cmd.exe /c "{text}"'
        try:
            return start(self._tools, self._box.directory, text, values, directory)
        except StartFailed as error:
            if error.errno in _FILE_NOT_FOUND:
                raise FileNotFoundError(f"no such program: {command_line}") from error
            raise PermissionError(f"{command_line}: {error}") from error

    def _start_loop(self, text: str, values: dict[str, str], directory: Path, load: str | None) -> Process:
        # The mark is put together on the box, so that an echo of the line cannot be taken for it.
        left, right = _READY.decode()[:5], _READY.decode()[5:]
        line = f"{load + ';' if load else ''} [Console]::Out.WriteLine('{left}' + '{right}')\n\n".encode()
        told = b""
        for _ in range(_ATTEMPTS):
            early: list[Chunk] = []
            try:
                process = WineProcess(self._tools, self._box.directory, text, values, directory)
            except StartFailed as error:
                if not error.before_windows:
                    raise
                told = str(error).encode()
            else:
                if self._ready(process, line, early):
                    return Loop(process, early)
                process.terminate()
                told = b"".join(data for _, data in early)
            self._box.events.append("powershell_restart", output=told[-500:].decode(errors="replace"))
        raise PermissionError(
            f"PowerShell under Wine did not become ready {_ATTEMPTS} times: {told[-500:]!r}"
        )

    def _ready(self, process: WineProcess, line: bytes, early: list[Chunk]) -> bool:
        """Feed the line and wait for its mark; stderr of meanwhile goes into early."""
        try:
            process.write_stdin(line, False)
        except BrokenPipeError:
            return False
        deadline = time.monotonic() + _START_S
        out = b""
        while time.monotonic() < deadline:
            found = process.read(deadline - time.monotonic())
            out += b"".join(data for stream, data in found if stream == "stdout")
            early += [chunk for chunk in found if chunk[0] == "stderr"]
            if _READY in out and out.endswith(b"\n"):
                return True
            if not found:
                early.append(("stdout", out))
                return False
        return False

    def _registry_state(self) -> str | None:
        """What Windows would keep in the registry, as text; None while no simulator serves the box."""
        if not self._box.simulator_environment:
            return None
        call = self._box.windows.call
        name = call("system.facts", {})["ComputerName"]
        return json.dumps([name, call("system.environment", {}), call("firewall.snapshot", {})])

    def _load_text(self, sync: bool) -> str | None:
        """PowerShell that loads the stand-ins; None while no simulator serves the box, their other side.

        sync: the registry is not known to hold what the simulator knows (a third of the work of a start).
        """
        if not self._box.simulator_environment:
            return None
        script = windows_path(Path(__file__).resolve().with_name("load.ps1"))
        return f". '{script}'{' -Sync' if sync else ''}"

    def _directory(self, working_directory: str | None) -> Path:
        if working_directory is None:
            (users,) = [path for path in self._box.drive_c.iterdir() if path.name.lower() == "users"]
            user = str(self._box.store.get("system", "user", default="Administrator"))
            return next(
                (path for path in users.iterdir() if path.name.lower() == user.lower()), self._box.drive_c
            )
        directory = self._box.filesystem.host(working_directory)
        if not directory.is_dir():
            raise FileNotFoundError(f"no such folder on the box: {working_directory}")
        return directory
