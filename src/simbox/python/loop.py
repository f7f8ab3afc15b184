"""The loop of docs/box-commands.md section 1, as the PowerShell program runs it: requests in, frames out."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import time
import traceback
import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from simbox.python.answers import Answer, Call, convert
from simbox.python.commands import COMMANDS
from simbox.python.commands.system import session
from simbox.python.pipes import InputPipe
from simbox.python.programtext import Function, functions
from simbox.windows.errors import WindowsError
from winfleet.wire.frames import Frame, FrameError, Kind, Request, decode_request, encode_frame

if TYPE_CHECKING:
    from simbox.box import Box

BOOTSTRAP = re.compile(rb"\s*\$WF='([0-9a-f]{32}):([0-9a-fA-F]{64})';")
READ_VERBS = ("get", "test")
REMEMBERED_REQUESTS = 4
REMEMBERED_BYTES = 8 << 20


@lru_cache(maxsize=8)
def _functions(program: str) -> dict[str, Function]:
    return functions(program)


class Loop:
    """One session on one box.

    Args:
        box: whose commands are answered.
        stdin: requests. write: takes whole frames. process_id: of the process it runs in.
        stopped: true once that process is killed.
    """

    def __init__(
        self,
        box: Box,
        stdin: InputPipe,
        write: Callable[[bytes], None],
        process_id: int,
        stopped: Callable[[], bool],
    ) -> None:
        self._box, self._stdin, self._write = box, stdin, write
        self._process_id, self._stopped = process_id, stopped
        self._nonce = ""
        self._functions: dict[str, Function] = {}
        self._memory: OrderedDict[int, list[bytes]] = OrderedDict()
        self._last_seq = 0

    def run(self, first_line: bytes) -> int:
        """Serve the session that begins with this bootstrap line until stdin ends; returns the exit code."""
        match = BOOTSTRAP.match(first_line)
        if match is None:
            raise ValueError("not a bootstrap line")
        self._nonce = match[1].decode()
        self._send(0, 0, "loaded", {})
        if not self._load(match[2].decode().lower()):
            return 1
        self._send(0, 1, "ready", session(self._call({})))
        while line := self._stdin.readline():
            if line.strip():
                self._line(line)
        return 0

    def _load(self, wanted: str) -> bool:
        """Take the packed program and check its hash; otherwise say so and end."""
        line = b""
        while not line.strip():
            line = self._stdin.readline()
            if not line:
                return False
        try:
            program = gzip.decompress(base64.b64decode(line.strip(), validate=True))
        except (ValueError, OSError, EOFError, zlib.error) as error:
            self._refuse_program("BadRequest", f"The program cannot be unpacked: {error}")
            return False
        found = hashlib.sha256(program).hexdigest()
        if found != wanted:
            self._refuse_program("HashMismatch", f"The program has SHA-256 {found}, not {wanted}.")
            return False
        self._functions = _functions(program.decode("utf-8"))
        return True

    def _refuse_program(self, type_name: str, message: str) -> None:
        error = WindowsError(type_name, message, None, "InvalidData", type_name).wire() | {"command": None}
        self._send(0, 1, "result", {"answers": [{"ok": False, "error": error}], "duration_ms": 0})

    def _line(self, line: bytes) -> None:
        try:
            request = decode_request(line)
        except FrameError:
            return
        if request.nonce != self._nonce:
            return
        if request.seq in self._memory:
            for frame in self._memory[request.seq]:
                self._write(frame)
            return
        sent: list[bytes] = []
        if request.seq <= self._last_seq:
            error = self._error(
                "AnswerForgotten", f"The answer of request {request.seq} is no longer kept.", None
            )
            self._result(request, [{"ok": False, "error": error}] * len(request.calls), b"", 0.0, sent)
            return
        self._last_seq = request.seq
        began = time.monotonic()
        answers, payload = self._answers(request, sent)
        self._result(request, answers, payload, time.monotonic() - began, sent)
        self._remember(request.seq, sent)

    def _answers(self, request: Request, sent: list[bytes]) -> tuple[list[dict[str, Any]], bytes]:
        answers: list[dict[str, Any]] = []
        payload = b""
        failed = False
        if request.payload and len(request.calls) != 1:
            error = self._error("BadRequest", "Only a request with one call may carry a payload.", None)
            return [{"ok": False, "error": error}] * len(request.calls), b""
        for item in request.calls:
            name = str(item.get("command")) if isinstance(item, dict) else ""
            if failed and request.mode == "change":
                error = self._error("NotRun", "An earlier call of this request failed.", name)
                answers.append({"ok": False, "error": error})
                continue
            try:
                answer = self._answer(name, item, request, sent)
            except WindowsError as error_raised:
                failed = True
                answers.append({"ok": False, "error": error_raised.wire() | {"command": name}})
                continue
            payload = answer.payload
            answers.append({"ok": True, "value": answer.value})
        return answers, payload

    def _answer(self, name: str, item: dict[str, Any], request: Request, sent: list[bytes]) -> Answer:
        function = self._functions.get(name.lower())
        handler = COMMANDS.get(name.lower())
        if not re.fullmatch(r"[A-Za-z]+-Box[A-Za-z]+", name) or function is None:
            raise WindowsError(
                "UnknownCommand",
                f"There is no box command '{name}'.",
                None,
                "ObjectNotFound",
                "UnknownCommand",
            )
        if request.mode == "read" and name.lower().partition("-")[0] not in READ_VERBS:
            raise WindowsError(
                "ReadOnlyRefused",
                f"{function.name} changes the box and this request may only read.",
                None,
                "PermissionDenied",
                "ReadOnlyRefused",
            )
        if handler is None:
            raise WindowsError(
                "UnknownCommand",
                f"The python engine of the simulator does not know {function.name} yet; use `--engine wine`.",
                None,
                "NotImplemented",
                "UnknownCommand",
            )
        values = self._bind(function, item.get("parameters") or {}, bool(request.payload))
        call = self._call(values, request.payload)
        call.output = lambda stream, data: self._keep(
            sent, request, "output", {"stream": stream, "raw": True}, data
        )
        call.progress = lambda activity, done, total: self._keep(
            sent, request, "progress", {"activity": activity, "done": done, "total": total}
        )
        try:
            value = handler(call)
        except WindowsError:
            raise
        except Exception as error:
            self._box.events.append("command_fault", command=name, fault=traceback.format_exc())
            raise WindowsError("System.Exception", f"{type(error).__name__}: {error}") from error
        return value if isinstance(value, Answer) else Answer(value)

    def _bind(self, function: Function, given: Any, payload: bool) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise self._bad(f"The parameters of {function.name} are no JSON object.")
        values: dict[str, Any] = {}
        for name, value in given.items():
            parameter = function.parameters.get(str(name).lower())
            if parameter is None or (parameter.name.lower() == "payload" and payload):
                raise self._bad(f"{function.name} has no parameter '{name}'.")
            try:
                values[parameter.name.lower()] = convert(value, parameter.type)
            except (TypeError, ValueError) as error:
                raise self._bad(
                    f"{function.name} cannot take that value for '{parameter.name}': {error}"
                ) from error
        if payload and "payload" not in function.parameters:
            raise self._bad(f"{function.name} takes no payload.")
        for parameter in function.parameters.values():
            name = parameter.name.lower()
            if parameter.mandatory and values.get(name) is None and not (name == "payload" and payload):
                raise self._bad(f"{function.name} needs the parameter '{parameter.name}'.")
        return values

    @staticmethod
    def _bad(message: str) -> WindowsError:
        return WindowsError("BadRequest", message, None, "InvalidArgument", "BadRequest")

    def _call(self, values: dict[str, Any], payload: bytes = b"") -> Call:
        return Call(self._box, values, payload, self._process_id, stopped=self._stopped)

    @staticmethod
    def _error(type_name: str, message: str, command: str | None) -> dict[str, Any]:
        return WindowsError(type_name, message, None, "NotSpecified", type_name).wire() | {"command": command}

    def _result(
        self,
        request: Request,
        answers: list[dict[str, Any]],
        payload: bytes,
        took_s: float,
        sent: list[bytes],
    ) -> None:
        data = {"answers": answers, "duration_ms": int(took_s * 1000)}
        self._keep(sent, request, "result", data, payload)

    def _keep(
        self, sent: list[bytes], request: Request, kind: Kind, data: dict[str, Any], payload: bytes = b""
    ) -> None:
        frame = encode_frame(Frame(self._nonce, request.seq, len(sent), kind, data, payload))
        sent.append(frame)
        if request.reply:
            self._write(frame)

    def _send(self, seq: int, index: int, kind: Kind, data: dict[str, Any]) -> None:
        self._write(encode_frame(Frame(self._nonce, seq, index, kind, data)))

    def _remember(self, seq: int, frames: list[bytes]) -> None:
        self._memory[seq] = frames
        while len(self._memory) > REMEMBERED_REQUESTS or (
            len(self._memory) > 1
            and sum(len(frame) for kept in self._memory.values() for frame in kept) > REMEMBERED_BYTES
        ):
            self._memory.popitem(last=False)
