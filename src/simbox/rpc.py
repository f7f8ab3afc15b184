"""The loopback server of a simulator: box services and programs for the stand-ins, control for the command
line.

One connection, one request: a JSON line with a token. A box's token opens that box alone, the control
token opens
the fleet.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import selectors
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from simbox import programs
from simbox.box import Box
from simbox.errors import WindowsError

Control = Callable[[str, dict[str, Any]], Any]
_LONGEST_REQUEST_BYTES = 16 << 20


class RpcServer:
    """Serves on 127.0.0.1, any free port.

    Args:
        control_token: of the fleet's owner.
        control: called with (method, params) for control requests.
    """

    def __init__(self, control_token: str, control: Control) -> None:
        self._control_token = control_token
        self._control = control
        self._boxes: dict[str, Box] = {}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="rpc", daemon=True)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def add(self, token: str, box: Box) -> None:
        """Serve a box, and tell it where."""
        self._boxes[token] = box
        box.simulator_environment = {"SIMBOX_PORT": str(self.port), "SIMBOX_TOKEN": token}

    def start(self) -> None:
        """Serve on threads."""
        self._thread.start()

    def stop(self) -> None:
        """Close the listener; connections end with the process."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="rpc call", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            reader = connection.makefile("rb")
            line = reader.readline(_LONGEST_REQUEST_BYTES)
            try:
                request = json.loads(line)
                token = request["token"]
                operation = request["op"]
            except (ValueError, KeyError, TypeError):
                return
            box = self._boxes.get(token)
            if operation == "control" and token == self._control_token:
                answer = self._answer(lambda: self._control(request["method"], request.get("params") or {}))
                connection.sendall(answer)
                reader.read(1)  # the caller may stay to see this process end
            elif operation == "rpc" and box:
                method, params = request.get("method", ""), request.get("params") or {}
                connection.sendall(self._answer(lambda: box.windows.call(method, params)))
            elif operation == "program" and box:
                self._program(connection, box, request)

    @staticmethod
    def _answer(call: Callable[[], Any]) -> bytes:
        try:
            answer: dict[str, Any] = {"ok": True, "value": call()}
        except WindowsError as error:
            answer = {"ok": False, "error": error.wire()}
        except Exception as error:
            fault = WindowsError("System.Exception", f"{type(error).__name__}: {error}")
            answer = {"ok": False, "error": fault.wire()}
        return json.dumps(answer).encode("ascii") + b"\n"

    def _program(self, connection: socket.socket, box: Box, request: dict[str, Any]) -> None:
        """Run a program for a stub exe until it ends; a broken connection means that the exe was killed."""
        lock = threading.Lock()

        def frame(kind: bytes, data: bytes) -> None:
            with lock:
                connection.sendall(kind + struct.pack("<I", len(data)) + data)

        try:
            running = programs.start(
                box,
                request["path"],
                request["argv"],
                command_line=request["command_line"],
                cwd=request["cwd"],
                environment=request["environment"],
                stdout=lambda data: frame(b"O", data),
                stderr=lambda data: frame(b"E", data),
                stdin=io.BytesIO(),
                pid=int(request["pid"]),
            )
        except WindowsError as error:
            frame(b"E", error.message.encode() + b"\r\n")
            frame(b"X", struct.pack("<I", (error.hresult or 1) & 0xFFFF))
            return

        def watch() -> None:
            until_gone(connection, int(request["unix_pid"]))
            running.kill(1)

        threading.Thread(target=watch, name="rpc watch", daemon=True).start()
        code = running.wait() or 0
        with contextlib.suppress(OSError):
            frame(b"X", struct.pack("<I", code & 0xFFFFFFFF))
            connection.shutdown(socket.SHUT_RDWR)


def until_gone(connection: socket.socket, unix_pid: int) -> None:
    """Block until the stand-in of that process id (of this machine) has closed its connection or has ended.

    The process is watched as well, for Wine may leave the connection of a killed one open.
    """
    # ValueError: a program that ran a moment only has closed the connection before it could be watched.
    with (
        contextlib.suppress(OSError, ValueError),
        selectors.DefaultSelector() as selector,
        _Watched(unix_pid) as process,
    ):
        selector.register(connection, selectors.EVENT_READ)
        selector.register(process, selectors.EVENT_READ)
        while process not in (ready := [key.fileobj for key, _ in selector.select()]):
            if connection in ready and not connection.recv(4096):
                return


class _Watched:
    """Becomes readable when the process ends; raises ProcessLookupError when it has."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)

    def fileno(self) -> int:
        return self._descriptor

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def ask(port: int, token: str, method: str, params: dict[str, Any] | None = None) -> Any:
    """Send one control request and return its value. Raises OSError, or RuntimeError with the simulator's
    text.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        return _exchange(connection, token, method, params)


def ask_and_stay(port: int, token: str, method: str) -> socket.socket:
    """As `ask`, keeping the connection: it reads end of file when the simulator's process has ended."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=120)
    _exchange(connection, token, method, None)
    return connection


def _exchange(connection: socket.socket, token: str, method: str, params: dict[str, Any] | None) -> Any:
    request = {"token": token, "op": "control", "method": method, "params": params or {}}
    connection.sendall(json.dumps(request).encode() + b"\n")
    received = bytearray()
    while not received.endswith(b"\n"):
        chunk = connection.recv(65536)
        if not chunk:
            raise ConnectionError("the simulator closed the connection")
        received += chunk
    answer = json.loads(received)
    if not answer["ok"]:
        raise RuntimeError(answer["error"]["message"])
    return answer["value"]
