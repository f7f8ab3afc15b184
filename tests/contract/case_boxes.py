"""The boxes on which the cases of winfleet.contract run in tests, one session each, opened when first needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from powershell import EngineBox, engine_box

from ninfer_fleet.fleet import accept
from ninfer_fleet.owner import OWNER
from simbox.box import EngineName
from simbox.engines.engine import Process
from winfleet.call import Call
from winfleet.contract import Case, load_cases
from winfleet.contract.place import Listener, Place
from winfleet.contract.remote import remote_box
from winfleet.wire.exchange import Answer

CASES = load_cases()


@dataclass(frozen=True)
class Kind:
    """One way to run the cases. Attributes: name, engine, profile, culture."""

    name: str
    engine: EngineName
    profile: str
    culture: str

    def __str__(self) -> str:
        return self.name


KINDS = (
    Kind("python", "python", "rtx4090d", "en-US"),
    Kind("wine", "wine", "rtx4090d", "en-US"),
    Kind("wine-zh_CN", "wine", "zh-cn", "zh-CN"),
    Kind("wine-de_DE", "wine", "de-de", "de-DE"),
)
FOLDER = "C:\\contract cases"


def left_out(case: Case, engine: EngineName) -> str | None:
    """Why a case is no test of that engine: its contract says that only others can answer it."""
    deviation = case.platforms.get(engine, {})
    return str(deviation["because"]) if deviation.get("skip") else None


class Server(ThreadingHTTPServer):
    """What {url} of a case leads to: the path chooses the answer."""

    daemon_threads = True


class Handler(BaseHTTPRequestHandler):
    """/text, /none (404), /moved (302), /key (wants a bearer), /long; POST echoes type and body."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/moved":
            self._tell(302, b"", {"Location": "/text"})
        elif self.path == "/key":
            self._tell(200 if self.headers["Authorization"] == "Bearer example-key" else 401, b"{}")
        elif self.path == "/long":
            self._tell(200, b"0123456789" * 100)
        else:
            self._tell(404 if self.path == "/none" else 200, "\u4e2d\u6587 \U0001f600".encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        kind = self.headers["Content-Type"] or "none"
        self._tell(200, f"{self.command} {kind} ".encode() + body)

    do_PUT = do_POST

    def _tell(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": "text/plain"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Not on the test's output."""


class DirectProgram:
    """Implements winfleet.contract.place.Started."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def end(self) -> None:
        self._process.terminate()


class DirectBox:
    """Implements winfleet.contract.place.Place on the pipes of a box's loop, without WinRM."""

    elevated = True
    scratch_only = False
    simulated = True

    def __init__(self, kind: Kind, box: EngineBox, url: str) -> None:
        self.platform: str = kind.engine
        self._box = box
        self.values: Mapping[str, str] = {"culture": kind.culture, "url": url}

    def run(self, calls: Sequence[Call], listen: Listener | None = None) -> list[Answer]:
        mode = "read" if all(call.reads for call in calls) else "change"
        payload = calls[0].payload if len(calls) == 1 else b""
        self._box.heal()
        reply = self._box.loop.ask([call.request() for call in calls], mode, payload)  # type: ignore[arg-type]
        for frame in reply.frames:
            if listen is not None and frame.kind in ("output", "progress"):
                listen(frame)
        return [
            Answer(True, answer["value"], None, reply.payload)
            if answer["ok"]
            else Answer(False, None, answer["error"])
            for answer in reply.answers
        ]

    def start(self, command_line: str) -> DirectProgram:
        return DirectProgram(self._box.engine.start(command_line, {}, None, False))

    def owns(self, process_id: int) -> None:
        """Nothing to note: all of this box is the run's own."""

    def host(self, path: str) -> Path | None:
        return self._box.host(path) if path[1:3] == ":\\" else None


@contextmanager
def direct_box(kind: Kind) -> Iterator[tuple[Place, str]]:
    """A fresh box of that kind with an HTTP server on its address, and the folder of its cases' folders."""
    with ExitStack() as stack:
        box = stack.enter_context(engine_box(kind.engine, kind.profile))
        server = stack.enter_context(Server((box.box.address, 0), Handler))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        direct = DirectBox(kind, box, f"http://127.0.0.1:{server.server_address[1]}")
        _make_folders(direct, FOLDER)
        yield direct, FOLDER


@contextmanager
def remote(host: str) -> Iterator[tuple[Place, str]]:
    """The box of that name in the inventory, as `ninfer-fleet accept` uses it, and its scratch folder."""
    target = accept.find(host, None)
    with remote_box(target.data, target.name, target.platform, accept.SCRATCH, OWNER) as box:
        _make_folders(box, box.scratch)
        yield box, box.scratch


def _make_folders(place: Place, parent: str) -> None:
    place.run([Call("New-BoxDirectory", Path=[f"{parent}\\{number}" for number in range(len(CASES))])])
