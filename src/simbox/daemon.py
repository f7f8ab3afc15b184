"""The simulator's process: N boxes with their endpoints and engines, until SIGTERM.

Started by `simbox.service.up`, which has written DIR/plan.json and waits on our stdout for the word "ready".
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import os
import secrets
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from simbox import drift
from simbox.box import Box
from simbox.engines.engine import Engine
from simbox.layout import BoxPlan, Layout, Plan, write_json
from simbox.mirror import Mirror
from simbox.rpc import RpcServer
from simbox.task.starter import ProcessStarter
from simbox.winrm import Certificate, Credential, Fault, WinRMEndpoint


class RunningBox:
    """One box that is up."""

    def __init__(self, plan: BoxPlan, layout: Layout, engine_name: str, rpc: RpcServer) -> None:
        directory = layout.box(engine_name, plan.name)
        self.plan = plan
        self.layout = layout
        self._switch_off: Callable[[], None] = lambda: None
        self._prepare_wine: Callable[[], None] = lambda: None
        if engine_name == "wine":
            self._make_prefix(directory)
        self.box = Box.open(directory, plan.name, plan.address, plan.profile, plan.engine)
        rpc.add(secrets.token_hex(16), self.box)
        self.engine, self.starter = self._engine(engine_name)
        self.user = str(self.box.store.get("system", "user"))
        self.certificate = Certificate.load_or_create(
            layout.directory / "certificates" / plan.name, plan.name, plan.address
        )
        self.endpoint = WinRMEndpoint(
            plan.address,
            plan.https_port,
            plan.http_port,
            [Credential(self.user, layout.secret(plan.name, "password").read_text("ascii"))],
            self.engine,
            self.box.events,
            self.certificate,
            name=plan.name.upper(),
        )

    def boot(self) -> None:
        """Boot the box, then open its endpoint."""
        self._prepare_wine()
        self.box.events.append("boot")
        self.box.boot(self.starter)
        self.endpoint.start()

    def shut_down(self) -> None:
        """Close the endpoint, end every process."""
        self.endpoint.stop()
        self.box.shut_down()
        self._switch_off()

    def reboot(self) -> None:
        """Off and on again."""
        self.shut_down()
        self.boot()

    def entry(self) -> dict[str, Any]:
        """The box's object in fleet.json."""
        return {
            "name": self.plan.name,
            "address": self.plan.address,
            "https_port": self.endpoint.https_port,
            "http_port": self.endpoint.http_port,
            "user": self.user,
            "password_file": str(self.layout.secret(self.plan.name, "password")),
            "certificate_sha256": self.certificate.sha256,
            "profile": self.plan.profile,
            "groups": self.plan.groups,
            "api_key_file": str(self.layout.secret(self.plan.name, "api_key")),
            "directory": str(self.box.directory),
            "events": str(self.box.events.path),
        }

    def status(self) -> dict[str, Any]:
        """One row of `sim status`."""
        windows, totals = self.box.windows, self.box.events.totals()
        return {
            "name": self.plan.name,
            "address": self.plan.address,
            "profile": self.plan.profile,
            "engine": self.box.engine,
            "shells": len(self.endpoint.shells()),
            "tasks": {
                record["Path"]: windows.scheduler.get(record["Path"])["State"]
                for record in self.box.store.get("tasks").values()
            },
            "listeners": windows.network.listeners(),
            "requests": totals.get("http_request", 0),
            "handshakes": totals.get("handshake", 0),
            "starts": totals.get("process_start", 0),
            "bytes_in": totals.get("bytes_in", 0),
            "bytes_out": totals.get("bytes_out", 0),
            "faults": self.endpoint.faults.as_list(),
        }

    def _make_prefix(self, directory: Path) -> None:
        from simbox.engines.wine import locate, prefix

        tools = locate.locate()
        prefix.create(tools, directory)
        self._prepare_wine = lambda: prefix.boot(tools, directory)
        self._switch_off = lambda: prefix.stop_server(tools, directory)

    def _engine(self, name: str) -> tuple[Engine, ProcessStarter]:
        if name == "wine":
            from simbox.engines.wine.engine import WineEngine
            from simbox.engines.wine.process import start_detached

            return WineEngine(self.box), start_detached
        from simbox.engines.python.engine import PythonEngine
        from simbox.engines.python.tasks import start

        return PythonEngine(self.box), start


class AddressTaken(Exception):
    """Another process listens where a box should."""


class Daemon:
    """All boxes of one fleet directory."""

    def __init__(self, layout: Layout, plan: Plan) -> None:
        self._layout = layout
        self._plan = plan
        self._stop = threading.Event()
        self._token = secrets.token_hex(16)
        self._rpc = RpcServer(self._token, self.control)
        self._boxes: list[RunningBox] = []
        self._mirror: Mirror | None = None

    def run(self, ready: Callable[[], None]) -> None:
        """Bring everything up, call ready, serve until stopped, take everything down."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        try:
            self._up()
            ready()
            self._stop.wait()
        finally:
            self._down()

    def _up(self) -> None:
        try:
            self._listen()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            taken = (
                self._plan.boxes[len(self._boxes) - 1].address if self._boxes else self._plan.mirror_address
            )
            raise AddressTaken(
                f"a port of {taken} is in use, most likely by the simulated boxes of another folder; stop those "
                "(`ninfer-fleet sim down` there), or use other addresses: --network 127.0.90, or "
                "NINFER_FLEET_SIM_NETWORK=127.0.90 in the environment"
            ) from error

    def _listen(self) -> None:
        self._rpc.start()
        self._mirror = Mirror(self._layout.directory / "mirror", self._plan.mirror_address)
        self._mirror.start()
        for planned in self._plan.boxes:
            running = RunningBox(planned, self._layout, self._plan.engine, self._rpc)
            self._boxes.append(running)
            running.boot()
        write_json(
            self._layout.control,
            {"pid": os.getpid(), "port": self._rpc.port, "token": self._token, "plan": asdict(self._plan)},
            mode=0o600,
        )
        write_json(
            self._layout.fleet,
            {
                "engine": self._plan.engine,
                "boxes": [running.entry() for running in self._boxes],
                "artifact": self._mirror.artifact.as_dict(),
            },
        )

    def _down(self) -> None:
        for path in (self._layout.control, self._layout.fleet):
            path.unlink(missing_ok=True)
        for running in self._boxes:
            try:
                running.shut_down()
            except Exception:
                traceback.print_exc()
        if self._mirror:
            self._mirror.stop()
        self._rpc.stop()

    def control(self, method: str, params: dict[str, Any]) -> Any:
        """Requests of the command line and of tests."""
        if method == "ping":
            return {"pid": os.getpid()}
        if method == "status":
            return [running.status() for running in self._boxes]
        running = next((known for known in self._boxes if known.plan.name == params.get("box")), None)
        if running is None:
            names = ", ".join(known.plan.name for known in self._boxes)
            raise ValueError(f"no box {params.get('box')!r}; there are: {names}")
        match method:
            case "drift":
                return drift.apply(running.box)
            case "reboot":
                running.reboot()
                return running.status()
            case "faults":
                if params.get("clear"):
                    running.endpoint.faults.clear()
                for fault in params.get("add", []):
                    running.endpoint.faults.add(Fault.from_dict(fault))
                return running.endpoint.faults.as_list()
            case "windows":
                return running.box.windows.call(params["method"], params.get("params") or {})
            case "store":
                running.box.store.set(*params["keys"], value=params["value"])
                return None
        raise ValueError(f"no control method {method!r}")


def _lock(layout: Layout) -> IO[str]:
    """One daemon for one directory, also when two are started at once."""
    file = layout.lock.open("w")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def main(arguments: list[str] | None = None) -> int:
    """`python -m simbox.daemon DIR`: says "ready" on stdout once, from then on stdout is the log."""
    parser = argparse.ArgumentParser(prog="simbox.daemon")
    parser.add_argument("directory", type=Path)
    options = parser.parse_args(arguments)
    layout = Layout(options.directory)
    pipe = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def ready() -> None:
        pipe.write("ready")
        pipe.close()

    try:
        with contextlib.closing(_lock(layout)):
            layout.pid.write_text(f"{os.getpid()}\n", "ascii")
            Daemon(layout, Plan.read(layout.plan)).run(ready)
            layout.pid.unlink(missing_ok=True)
    except Exception as error:
        traceback.print_exc()
        if not pipe.closed:
            pipe.write(str(error) if isinstance(error, AddressTaken) else f"{type(error).__name__}: {error}")
            pipe.close()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
