"""The loop of docs/box-commands.md section 1, as the PowerShell program runs it: requests in, frames out."""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import json
import re
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from simbox.engines.python.answers import Answer, Call, convert
from simbox.engines.python.commands import COMMANDS
from simbox.engines.python.errors import Rethrown
from simbox.engines.python.loopfault import error_object, fault
from simbox.engines.python.pipes import InputPipe
from simbox.engines.python.programtext import Function, Parameter, functions
from simbox.errors import WindowsError
from simbox.system.commands import PS_VERSION, session
from winfleet.wire.frames import Frame, Kind, encode_frame

if TYPE_CHECKING:
    from simbox.box import Box

BOOTSTRAP = re.compile(rb"\s*\$WF='([0-9a-f]{32}):([0-9a-fA-F]{64})';")
REMEMBERED_REQUESTS = 4
REMEMBERED_BYTES = 8 << 20
_COMMAND = re.compile(r"[A-Z][a-z]+-Box[A-Za-z]+")
_READS = re.compile(r"(Get|Test)-")


@lru_cache(maxsize=8)
def _functions(program: str) -> dict[str, Function]:
    return functions(program)


def _failure(error: WindowsError, command: str) -> dict[str, Any]:
    return {"ok": False, "error": error_object(error, command)}


def _bound(parameter: Parameter, value: Any, advanced: bool) -> Any:
    """A value as PowerShell binds it. Raises WindowsError BadRequest."""
    name, is_list = parameter.name, parameter.type.endswith("[]")
    if advanced and isinstance(value, list) and parameter.type.lower() == "string":
        raise fault(
            "BadRequest",
            f"Cannot process argument transformation on parameter '{name}'. "
            "Cannot convert value to type System.String.",
        )
    try:
        converted = convert(value, parameter.type)
    except (TypeError, ValueError) as error:
        raise fault(
            "BadRequest", f"Cannot process argument transformation on parameter '{name}'. {error}"
        ) from error
    if parameter.mandatory and not parameter.may_be_empty:
        what = "array" if is_list else "string"
        empty = converted == ([] if is_list else "")
        if empty or (is_list and "" in converted):
            article = "an empty " + (what if empty else "string")
            raise fault("BadRequest", f"Cannot bind argument to parameter '{name}' because it is {article}.")
    return converted


@dataclass
class _Kept:
    """A request that was carried out, and its frames unless they took too much room."""

    seq: int
    frames: list[bytes] | None = field(default_factory=list)


class Loop:
    """One session on one box.

    Args:
        box: whose commands are answered.
        stdin: requests. write, complain: stdout and stderr. process_id: of the process it runs in.
        stopped: true once that process is killed.
    """

    def __init__(
        self,
        box: Box,
        stdin: InputPipe,
        write: Callable[[bytes], None],
        complain: Callable[[bytes], None],
        process_id: int,
        stopped: Callable[[], bool],
    ) -> None:
        self._box, self._stdin, self._write, self._complain = box, stdin, write, complain
        self._process_id, self._stopped = process_id, stopped
        self._nonce = ""
        self._functions: dict[str, Function] = {}
        self._memory: list[_Kept] = []
        self._last_seq = 0
        self._seq = self._index = 0
        self._reply = True

    def run(self, first_line: bytes) -> int:
        """Serve the session that begins with this bootstrap line until stdin ends; returns the exit code."""
        match = BOOTSTRAP.match(first_line)
        if match is None:
            raise ValueError("not a bootstrap line")
        self._nonce = match[1].decode()
        mode = self._box.windows.system.session()["LanguageMode"]
        if mode != "FullLanguage":
            self._write(
                f"winfleet: PowerShell here is limited to {mode}, the loop needs FullLanguage\r\n".encode()
            )
            return 1
        self._frame("loaded", {"PSVersion": PS_VERSION})
        try:
            if not self._load(match[2].decode().lower()):
                return 0
        except (ValueError, OSError, EOFError, zlib.error) as error:
            self._complain(f"winfleet: {error}\r\n".encode())
            return 1
        self._frame("ready", session(Call(self._box, {}, process_id=self._process_id)))
        while line := self._stdin.readline():
            if line.strip():
                self._request(line.strip())
        return 0

    def _load(self, wanted: str) -> bool:
        """Take the packed program and check its hash; False when stdin ends first."""
        line = b"\n"
        while not line.strip():
            line = self._stdin.readline()
            if not line:
                return False
        program = gzip.decompress(base64.b64decode(line.strip(), validate=True))
        if hashlib.sha256(program).hexdigest() != wanted:
            raise ValueError("the program arrived damaged: its SHA-256 differs")
        self._functions = _functions(program.decode("utf-8"))
        return True

    def _request(self, line: bytes) -> None:
        """One line from the controller: noise, a repetition, or work."""
        text, _, packed = line.partition(b" ")
        try:
            header = json.loads(base64.b64decode(text, validate=True))
            if header["nonce"] != self._nonce:
                return
            seq = int(header["seq"])
            given = base64.b64decode(packed, validate=True) if packed else b""
            if len(given) != header.get("payload_bytes", len(given)):
                return
        except (binascii.Error, ValueError, KeyError, TypeError):
            # Whoever sent it did not know the nonce, or the line was cut: there is no request to answer.
            return
        reply = header.get("reply") is not False
        if seq <= self._last_seq:
            if reply:
                self._again(seq)
            return
        self._last_seq = self._seq = seq
        self._index, self._reply = 0, reply
        self._memory = [*self._memory, _Kept(seq)][-REMEMBERED_REQUESTS:]
        began = time.monotonic()
        payload = b""
        try:
            answers, payload = self._answers(
                header.get("calls"), str(header.get("mode")), given if packed else None
            )
        except WindowsError as error:
            answers = [_failure(error, "")]
        duration_ms = int((time.monotonic() - began) * 1000)
        self._frame("result", {"answers": answers, "duration_ms": duration_ms}, payload)
        self._limit_memory()

    def _limit_memory(self) -> None:
        total = 0
        for kept in reversed(self._memory):
            total += sum(len(frame) for frame in kept.frames or [])
            if total > REMEMBERED_BYTES:
                kept.frames = None

    def _again(self, seq: int) -> None:
        for kept in self._memory:
            if kept.seq == seq and kept.frames is not None:
                for frame in kept.frames:
                    self._write(frame)
                return
        forgotten = fault(
            "AnswerForgotten",
            f"request {seq} was carried out, its answer is no longer in memory; read the state again",
        )
        data = {"answers": [_failure(forgotten, "")], "duration_ms": 0}
        self._write(encode_frame(Frame(self._nonce, seq, 0, "result", data)))

    def _answers(self, calls: Any, mode: str, payload: bytes | None) -> tuple[list[dict[str, Any]], bytes]:
        if mode not in ("read", "change"):
            raise fault("BadRequest", f"mode '{mode}' is neither read nor change")
        calls = calls if isinstance(calls, list) else [calls]
        if payload is not None and len(calls) != 1:
            raise fault("BadRequest", f"a payload goes with one call, here are {len(calls)}")
        answers: list[dict[str, Any]] = []
        out, failed = b"", False
        for call in calls:
            name = ""
            try:
                if not isinstance(call, dict):
                    raise fault("BadRequest", "a call is an object with command and parameters")
                name = str(call.get("command") or "")
                if failed:
                    raise fault("NotRun", "a call before it failed")
                answer = self._answer(name, call.get("parameters"), mode, payload)
            except WindowsError as error:
                failed = mode == "change"
                answers.append(_failure(error, name))
            else:
                out = answer.payload or out
                answers.append({"ok": True, "value": answer.value})
        return answers, out

    def _answer(self, name: str, given: Any, mode: str, payload: bytes | None) -> Answer:
        function = self._functions.get(name.lower()) if _COMMAND.fullmatch(name) else None
        if function is None:
            raise fault("UnknownCommand", f"this box knows no command '{name}'")
        if mode == "read" and not _READS.match(name):
            raise fault("ReadOnlyRefused", f"{name} changes the box and this session only reads")
        handler = COMMANDS.get(name.lower())
        if handler is None:
            raise fault("UnknownCommand", f"the python engine does not know {name} yet; use `--engine wine`")
        values = self._bind(function, name, given)
        if payload is not None and "payload" not in function.parameters:
            raise fault("BadRequest", f"{name} takes no payload")
        call = Call(self._box, values, payload or b"", self._process_id, stopped=self._stopped)
        call.output = lambda stream, data: self._frame("output", {"stream": stream, "raw": True}, data)
        call.progress = lambda activity, done, total: self._frame(
            "progress", {"activity": activity, "done": done, "total": total}
        )
        try:
            value = handler(call)
        except WindowsError as error:
            if function.advanced and error.category == "NotSpecified" and not isinstance(error, Rethrown):
                # What a .NET method threw goes by the name of the cmdlet that it left.
                error.id = f"{error.id},{function.name}"
            raise
        except Exception as error:
            self._box.events.append("command_fault", command=name, fault=traceback.format_exc())
            message = f"{type(error).__name__}: {error}"
            raise WindowsError("System.Exception", message, 0x80131500) from error
        return value if isinstance(value, Answer) else Answer(value)

    @staticmethod
    def _bind(function: Function, name: str, given: Any) -> dict[str, Any]:
        own = {item.name: item for item in function.parameters.values() if item.name != "Payload"}
        values: dict[str, Any] = {}
        if given is not None and not isinstance(given, dict):
            raise fault("BadRequest", "parameters is an object of names and values")
        for key, value in (given or {}).items():
            if key not in own:
                names = ", ".join(own)
                raise fault("BadRequest", f"{function.name} has no parameter '{key}'; it has: {names}")
            if value is None:
                continue
            values[key.lower()] = _bound(own[key], value, function.advanced)
        for key, parameter in own.items():
            if parameter.mandatory and key.lower() not in values:
                raise fault("BadRequest", f"{function.name} wants the parameter '{key}'")
        return values

    def _frame(self, kind: Kind, data: dict[str, Any], payload: bytes = b"") -> None:
        frame = encode_frame(Frame(self._nonce, self._seq, self._index, kind, data, payload))
        self._index += 1
        if self._memory and self._memory[-1].seq == self._seq and self._memory[-1].frames is not None:
            self._memory[-1].frames.append(frame)
        if self._reply:
            self._write(frame)
