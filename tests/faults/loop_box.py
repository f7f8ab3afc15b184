"""A WinRM endpoint on loopback in front of a small loop, and a connector that talks to it.

The loop speaks the real frames and keeps its files in a dict, so that a test can look at what happened and
let a command wait, end the process or print whatever it likes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyinfra.api import Config, Inventory, State

from simbox.engines.engine import Chunk
from simbox.eventlog import EventLog
from simbox.winrm import Certificate, Credential, Fault, Limits, WinRMEndpoint
from winfleet.connectors.winrm import WinRMConnector
from winfleet.wire.frames import Frame, FrameError, Request, decode_request, encode_frame

ADDRESS = "127.0.0.1"
USER = "operator"
PASSWORD = "ex:am ple-\u00e4\u4e2d%"
CERTIFICATES = Path(tempfile.mkdtemp(prefix="simbox-test-"))


class EndProcess(Exception):
    """Raised by a command: the process ends with this exit code."""


@dataclass
class World:
    """What the loops of one box share."""

    files: dict[str, bytes] = field(default_factory=dict)
    executed: list[str] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    go_on: threading.Event = field(default_factory=threading.Event)
    started: threading.Event = field(default_factory=threading.Event)
    before_ready: bytes = b""
    deaf: bool = False

    def run(
        self, call: dict[str, Any], payload: bytes, show: Callable[[str, bytes], None]
    ) -> tuple[Any, bytes]:
        """Value and payload of one command."""
        name, given = call["command"], call["parameters"]
        self.executed.append(name)
        if name == "Get-BoxFile":
            return [self._entry(path) for path in given["Path"]], b""
        if name == "Write-BoxFilePart":
            content = gzip.decompress(payload) if given["Encoding"] == "gzip" else payload
            before = b"" if given["OffsetBytes"] == 0 else self.files[given["TemporaryPath"]]
            assert len(before) == given["OffsetBytes"]
            self.files[given["TemporaryPath"]] = before + content
            return {"SizeBytes": len(before) + len(content)}, b""
        if name == "Set-BoxFile":
            if "TemporaryPath" in given:
                content = self.files.pop(given["TemporaryPath"])
            else:
                content = gzip.decompress(payload) if given.get("Encoding") == "gzip" else payload
            assert hashlib.sha256(content).hexdigest() == given["Sha256"]
            self.files[given["Path"]] = content
            return {"Sha256": given["Sha256"], "SizeBytes": len(content), "Replaced": True}, b""
        if name == "Get-BoxFilePart":
            content = self.files[given["Path"]]
            part = content[given["OffsetBytes"] : given["OffsetBytes"] + given["LengthBytes"]]
            return {"OffsetBytes": given["OffsetBytes"], "SizeBytes": len(content)}, part
        if name == "Remove-BoxItem":
            return [path for path in given["Path"] if self.files.pop(path, None) is not None], b""
        if name == "Invoke-BoxScript":
            return self._script(given, payload, show), b""
        return {"Command": name, "Parameters": given}, b""

    def _entry(self, path: str) -> dict[str, Any]:
        content = self.files.get(path)
        if content is None:
            return {"Path": path, "Kind": "absent", "SizeBytes": None, "Sha256": None, "Error": None}
        sha256 = hashlib.sha256(content).hexdigest()
        return {"Path": path, "Kind": "file", "SizeBytes": len(content), "Sha256": sha256, "Error": None}

    def _script(
        self, given: dict[str, Any], stdin: bytes, show: Callable[[str, bytes], None]
    ) -> dict[str, Any]:
        self.payloads.append(stdin)
        text, exit_code = given["Text"], 0
        for word in text.split(";"):
            verb, _, rest = word.strip().partition(" ")
            if verb == "print":
                show("stdout", rest.encode() + b"\r\n")
            elif verb == "raw":
                show("stdout", bytes.fromhex(rest))
            elif verb == "complain":
                show("stderr", rest.encode() + b"\n")
            elif verb == "environment":
                show("stdout", str(given.get("Environment", {}).get(rest)).encode() + b"\n")
            elif verb == "settings":
                keys = ("Shell", "WorkingDirectory", "TimeoutSeconds")
                show("stdout", repr([given.get(key) for key in keys]).encode() + b"\n")
            elif verb == "exit":
                exit_code = int(rest)
            elif verb == "die":
                raise EndProcess(rest)
            elif verb == "wait":
                self.started.set()
                if not self.go_on.wait(60):
                    raise EndProcess("9")
            elif verb == "overrun":
                return {"ExitCode": 1, "TimedOut": True}
        return {"ExitCode": exit_code, "TimedOut": False}


class LoopProcess:
    """simbox.engines.engine.Process of the small loop."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._input: queue.Queue[bytes | None] = queue.Queue()
        self._output: queue.Queue[Chunk] = queue.Queue()
        self._memory: dict[int, list[bytes]] = {}
        self._nonce = ""
        self._exit_code: int | None = None
        self._stopped = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def exit_code(self) -> int | None:
        return self._exit_code if self._output.empty() else None

    def write_stdin(self, data: bytes, end: bool) -> None:
        if self._exit_code is not None:
            raise BrokenPipeError
        if not self._world.deaf:
            self._input.put(data)
        if end:
            self._input.put(None)

    def read(self, timeout_s: float) -> list[Chunk]:
        try:
            chunks = [self._output.get(timeout=timeout_s) if timeout_s > 0 else self._output.get_nowait()]
        except queue.Empty:
            return []
        while not self._output.empty():
            chunks.append(self._output.get_nowait())
        return [chunk for chunk in chunks if chunk[1]]

    def signal(self, ctrl_c: bool) -> None: ...

    def terminate(self) -> None:
        self._stopped.set()
        self._input.put(None)
        if self._exit_code is None:
            self._exit_code = 1
        self._output.put(("stdout", b""))

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        while (data := self._input.get()) is not None:
            *lines, rest = (rest + data).split(b"\n")
            yield from (line for line in lines if line.strip())

    def _serve(self) -> None:
        exit_code = 0
        try:
            lines = self._lines()
            self._nonce = next(lines).decode().split("'")[1].split(":")[0]
            if self._world.before_ready:
                self._output.put(("stdout", self._world.before_ready))
            self._send(0, 0, "loaded", {})
            gzip.decompress(base64.b64decode(next(lines)))
            session = {"BootTimeUtc": "2026-01-01T00:00:00Z", "OemCodePage": 936, "PSVersion": "5.1.0.0"}
            self._send(0, 1, "ready", session)
            for line in lines:
                try:
                    request = decode_request(line)
                except FrameError:
                    continue
                self._answer(request)
        except EndProcess as end:
            code, _, words = str(end).partition(" ")
            exit_code = int(code)
            self._output.put(("stderr", words.encode()))
        except StopIteration:
            pass
        if self._exit_code is None:
            self._exit_code = exit_code
        self._output.put(("stdout", b""))

    def _answer(self, request: Request) -> None:
        if request.nonce != self._nonce:
            return
        if request.seq in self._memory:
            for frame in self._memory[request.seq]:
                self._output.put(("stdout", frame))
            return
        index = 0

        def show(stream: str, data: bytes) -> None:
            nonlocal index
            self._send(request.seq, index, "output", {"stream": stream, "raw": True}, data)
            index += 1

        self._memory[request.seq] = []
        answers, payload = [], b""
        for call in request.calls:
            if request.mode == "read" and not call["command"].startswith(("Get-", "Test-")):
                error = {"type": "ReadOnlyRefused", "message": "read only", "command": call["command"]}
                answers.append({"ok": False, "error": error})
                continue
            value, payload = self._world.run(call, request.payload, show)
            answers.append({"ok": True, "value": value})
        if request.reply and not self._stopped.is_set():
            self._send(request.seq, index, "result", {"answers": answers, "duration_ms": 1}, payload)

    def _send(self, seq: int, index: int, kind: Any, data: dict[str, Any], payload: bytes = b"") -> None:
        frame = encode_frame(Frame(self._nonce, seq, index, kind, data, payload))
        if seq:
            self._memory[seq].append(frame)
        self._output.put(("stdout", frame))


class LoopEngine:
    """simbox.engines.engine.Engine whose every command is the small loop."""

    def __init__(self, world: World) -> None:
        self._world = world

    def start(
        self,
        command_line: str,
        environment: dict[str, str],
        working_directory: str | None,
        skip_cmd_shell: bool,
    ) -> LoopProcess:
        assert command_line.startswith("powershell.exe ")
        return LoopProcess(self._world)


@dataclass
class LoopBox:
    """A running box and the connectors made for it."""

    endpoint: WinRMEndpoint
    world: World
    events: EventLog
    made: list[WinRMConnector] = field(default_factory=list)

    def data(self, scheme: str = "https", **more: Any) -> dict[str, Any]:
        """Host data with which the connector reaches the box."""
        port = self.endpoint.https_port if scheme == "https" else self.endpoint.http_port
        known: dict[str, Any] = {
            "winrm_host": ADDRESS,
            "winrm_port": port,
            "winrm_scheme": scheme,
            "winrm_user": USER,
            "winrm_password": "env:LOOP_BOX_PASSWORD",
        }
        if scheme == "https":
            known["winrm_certificate_sha256"] = self.endpoint.certificate.sha256
        return known | more

    def connector(self, scheme: str = "https", **more: Any) -> WinRMConnector:
        """A connector to the box, not yet connected, in the phase in which changes are allowed."""
        inventory = Inventory((["@winrm/box"], self.data(scheme, **more)))
        state = State(inventory, Config(CONNECT_TIMEOUT=5))
        state.is_executing = True
        made = inventory.get_host("box").connector
        assert isinstance(made, WinRMConnector)
        self.made.append(made)
        return made

    def connected(self, scheme: str = "https", **more: Any) -> WinRMConnector:
        """The same, connected."""
        connector = self.connector(scheme, **more)
        connector.connect()
        return connector

    def change_password(self, password: str) -> None:
        """Give the account another password; the service is restarted for it."""
        self.endpoint.stop()
        self.endpoint._credentials = [Credential(USER, password)]
        self.endpoint.start()

    def arm(self, kind: Any, **fields: Any) -> None:
        """Arm a fault."""
        self.endpoint.faults.add(Fault(kind, **fields))

    def count(self, kind: str, **wanted: Any) -> int:
        """How many events of a kind have these fields."""
        return sum(
            all(event.get(key) == value for key, value in wanted.items())
            for event in self.events.events(kind)
        )


@contextmanager
def running(directory: Path, limits: Limits | None = None) -> Iterator[LoopBox]:
    """A box on free ports; at the end no shell may be left on it."""
    events, world = EventLog(directory / "events.jsonl"), World()
    endpoint = WinRMEndpoint(
        ADDRESS,
        0,
        0,
        [Credential(USER, PASSWORD)],
        LoopEngine(world),
        events,
        Certificate.load_or_create(CERTIFICATES, "localhost", ADDRESS),
        limits,
        name="GPU01",
    )
    endpoint.start()
    box = LoopBox(endpoint, world, events)
    try:
        yield box
        world.go_on.set()
        for connector in box.made:
            connector.disconnect()
        assert endpoint.shells() == []
    finally:
        world.go_on.set()
        endpoint.stop()
        events.close()
