"""Boxes whose loop is spoken to directly, frame by frame on the pipes of its process, without WinRM.

def test_a_fact(box):
    assert box.call("Get-BoxFile", Path=["C:\\\\"])[0]["Kind"] == "directory"
"""

from __future__ import annotations

import itertools
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from stalls import activity

from simbox.box import Box, EngineName
from simbox.engines.engine import Engine, Process
from simbox.rpc import RpcServer
from winfleet.wire.frames import Frame, FrameReader, Request, encode_request
from winfleet.wire.program import bootstrap_line, build_program

COMMAND = "powershell.exe -NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command -"
READ_VERBS = ("Get-", "Test-")


class BoxFault(Exception):
    """The error object of an answer; `error` holds it."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['type']}: {error['message']}")
        self.error = error
        self.type: str = error["type"]


@dataclass
class Reply:
    """Everything that one request was answered with."""

    frames: list[Frame]

    @property
    def answers(self) -> list[dict[str, Any]]:
        assert self.frames[-1].kind == "result"
        return list(self.frames[-1].data["answers"])

    @property
    def payload(self) -> bytes:
        return self.frames[-1].payload

    def output(self, stream: Literal["stdout", "stderr"]) -> bytes:
        """What `output` frames of that stream carried, text as UTF-8."""
        return b"".join(
            frame.payload if frame.data.get("raw") else str(frame.data["text"]).encode()
            for frame in self.frames
            if frame.kind == "output" and frame.data["stream"] == stream
        )


@dataclass
class Loop:
    """One session with the loop of a box."""

    process: Process
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    errors: bytes = b""
    lost: bool = False
    """A frame was waited for in vain: nothing more can be asked of this session."""

    def __post_init__(self) -> None:
        self._reader = FrameReader(self.nonce)
        self._waiting: list[Frame] = []
        self._numbers = itertools.count(1)
        self.ready: dict[str, Any] = {}

    def open(self, program: bytes | None = None) -> dict[str, Any]:
        """Send the loader, then the program; the data of the `ready` frame."""
        built = build_program()
        self.send((bootstrap_line(self.nonce, built.sha256) + "\n\n").encode("ascii"))
        assert self.frame().kind == "loaded"
        self.send((program or built.packed) + b"\n")
        frame = self.frame()
        assert (frame.kind, frame.seq, frame.index) == ("ready", 0, 1)
        self.ready = frame.data
        return frame.data

    def send(self, data: bytes) -> None:
        self.process.write_stdin(data, False)

    def frame(self, timeout_s: float = 90) -> Frame:
        """The next frame; fails with what the process wrote to stderr when none comes."""
        deadline = time.monotonic() + timeout_s
        while not self._waiting:
            for stream, data in self.process.read(max(0.0, deadline - time.monotonic())):
                if stream == "stdout":
                    self._waiting += self._reader.feed(data)
                else:
                    self.errors += data
            ended = self.process.exit_code is not None
            if not self._waiting and (ended or time.monotonic() >= deadline):
                self.lost = True
                noise = b"\n".join(self._reader.take_noise())
                doing = "" if ended else f"; doing: {activity()}"
                raise AssertionError(
                    f"no frame; ended: {ended}; stderr: {self.errors!r}; noise: {noise!r}{doing}"
                )
        return self._waiting.pop(0)

    def noise(self) -> list[bytes]:
        return self._reader.take_noise()

    def ask(
        self,
        calls: list[dict[str, Any]],
        mode: Literal["read", "change"],
        payload: bytes = b"",
        seq: int | None = None,
        timeout_s: float = 90,
    ) -> Reply:
        """Send one request and collect its frames up to the result; seq: to send an old number again."""
        number = next(self._numbers) if seq is None else seq
        self.send(encode_request(Request(self.nonce, number, mode, calls, payload)))
        frames = [self.frame(timeout_s)]
        while frames[-1].kind != "result":
            frames.append(self.frame(timeout_s))
        assert {frame.seq for frame in frames} == {number}
        return Reply(frames)

    def tell(self, calls: list[dict[str, Any]], payload: bytes = b"") -> int:
        """Send a changing request that is not answered; its number."""
        number = next(self._numbers)
        self.send(encode_request(Request(self.nonce, number, "change", calls, payload, reply=False)))
        return number

    def reply(self, command: str, payload: bytes = b"", **parameters: Any) -> Reply:
        """Ask one command in the mode that its verb needs."""
        mode: Literal["read", "change"] = "read" if command.startswith(READ_VERBS) else "change"
        return self.ask([{"command": command, "parameters": parameters}], mode, payload)

    def call(self, command: str, payload: bytes = b"", **parameters: Any) -> Any:
        """The value of one command; raises BoxFault for an error object."""
        (answer,) = self.reply(command, payload, **parameters).answers
        if not answer["ok"]:
            raise BoxFault(answer["error"])
        return answer["value"]

    def close(self) -> None:
        self.process.terminate()


@dataclass
class EngineBox:
    """A box with its engine, one open session, and the simulator's side of it."""

    box: Box
    engine: Engine
    loop: Loop
    host: Callable[[str], Path]
    """Windows path -> path on this machine."""

    def call(self, command: str, payload: bytes = b"", **parameters: Any) -> Any:
        return self.loop.call(command, payload, **parameters)

    def reply(self, command: str, payload: bytes = b"", **parameters: Any) -> Reply:
        return self.loop.reply(command, payload, **parameters)

    def heal(self) -> None:
        """Open another session when a test has lost this one, so that no other test pays for it."""
        if self.loop.lost or self.loop.process.exit_code is not None:
            self.loop.close()
            self.loop = self.new_loop()

    def new_loop(self) -> Loop:
        """Another session with a PowerShell of its own."""
        loop = Loop(self.engine.start(COMMAND, {}, None, False))
        loop.open()
        return loop


@contextmanager
def engine_box(name: EngineName, profile: str = "rtx4090d") -> Iterator[EngineBox]:
    """A fresh box of that engine with an open session; everything of it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="simbox.", ignore_cleanup_errors=True) as folder:
        directory = Path(folder) / "box"
        undo: list[Callable[[], None]] = []
        rpc = RpcServer(secrets.token_hex(16), lambda method, params: None)
        rpc.start()
        undo.append(rpc.stop)
        try:
            box, engine, loop = _start(name, directory, profile, rpc, undo)
            yield EngineBox(box, engine, loop, box.filesystem.host)
        finally:
            for step in reversed(undo):
                step()


def _start(
    name: EngineName, directory: Path, profile: str, rpc: RpcServer, undo: list[Callable[[], None]]
) -> tuple[Box, Engine, Loop]:
    engine: Engine
    if name == "wine":
        from simbox.engines.wine import locate, prefix
        from simbox.engines.wine.engine import WineEngine
        from simbox.engines.wine.process import start_detached as start

        tools = locate.locate()
        prefix.create(tools, directory)
        undo.append(lambda: prefix.stop_server(tools, directory))
        box = Box.open(directory, "gpu01", "127.0.89.1", profile, name)
        prefix.boot(tools, directory)
        engine = WineEngine(box)
    else:
        from simbox.engines.python.engine import PythonEngine
        from simbox.engines.python.tasks import start  # type: ignore[assignment]

        box = Box.open(directory, "gpu01", "127.0.89.2", profile, name)
        engine = PythonEngine(box)
    rpc.add(secrets.token_hex(16), box)
    box.boot(start)
    undo.append(box.shut_down)
    loop = Loop(engine.start(COMMAND, {}, None, False))
    undo.append(loop.close)
    loop.open()
    return box, engine, loop


def wine_missing() -> str | None:
    """One line that says what this machine lacks for wine boxes, or None."""
    from simbox.engines.wine import locate
    from simbox.engines.wine.launcher import launcher

    try:
        locate.locate()
        launcher()
    except locate.Missing as missing:
        return str(missing)
    return None
