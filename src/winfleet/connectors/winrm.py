"""The @winrm connector: pyinfra's contract over one persistent PowerShell per box.

Contract: docs/facts/pyinfra.md#connector-contract. What a Call returns: see `WinRMConnector.run_shell_command`.

Example::

    pyinfra @winrm/gpu01 --data winrm_user=fleet --data winrm_password=env:BOX_PASSWORD \\
        --data winrm_certificate_sha256=... exec -- 'Get-Date'
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from io import IOBase
from pathlib import Path
from typing import IO, Any, cast

from pyinfra import logger
from pyinfra.api.command import QuoteString, StringCommand
from pyinfra.api.exceptions import ConnectError, InventoryError
from pyinfra.api.hiddenvalue import HiddenValue
from pyinfra.api.output import echo, format_text
from pyinfra.api.util import get_file_io
from pyinfra.connectors.base import BaseConnector
from pyinfra.connectors.util import CommandOutput, OutputLine

from winfleet import redaction
from winfleet.call import Call
from winfleet.connectors import winrm_data
from winfleet.connectors.arguments import read_arguments, refuse_masked
from winfleet.wire import transfer
from winfleet.wire.conversation import Surroundings
from winfleet.wire.endpoint import Endpoint
from winfleet.wire.errors import ArgumentRefused, DeadlineExceeded, Unreachable, WireError, one_line
from winfleet.wire.exchange import Answer
from winfleet.wire.frames import Frame
from winfleet.wire.output import LineDecoder
from winfleet.wire.program import bootstrap_line, build_program
from winfleet.wire.session import Session
from winfleet.wire.winrs import Envelope, WinRSShell

SCRIPT_TIMEOUT_S = 7200.0
"""Longest run of a free text without _timeout; what takes longer belongs into a job, which outlives the
session.
"""
SCRIPT_GRACE_S = 10.0
"""The box ends a script itself at its _timeout; that long after, the whole shell is ended."""
QUIET_S, PROGRESS_EVERY_S = 3.0, 5.0
"""Progress is shown for work that takes longer than the first, and then at this distance."""


class WinRMConnector(BaseConnector):
    """Connect to a Windows box over WinRM."""

    handles_execution = True
    data_cls = winrm_data.WinRMData
    data_meta = winrm_data.META

    def __init__(self, state: Any, host: Any) -> None:
        super().__init__(state, host)
        redaction.install()
        if isinstance(self.data["winrm_password"], HiddenValue):
            redaction.register(self.data["winrm_password"])
        self._session: Session | None = None
        self._endpoint: Endpoint | None = None

    @staticmethod
    def make_names_data(name: str | None = None) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        """One host for ``@winrm/NAME``, called NAME; that is its address too, unless winrm_host is given."""
        if not name:
            raise InventoryError("@winrm needs a host: write @winrm/NAME")
        # No winrm_host here: data of the connector would win over that of a group.
        yield name, {}, []

    def connect(self) -> None:
        """Open the shell and start PowerShell in it. Raises ConnectError only, with one line."""
        self.disconnect()
        try:
            timeout_s = float(self.state.config.CONNECT_TIMEOUT or 10)
            given = self.host.data.dict()  # type: ignore[no-untyped-call]
            winrm_data.refuse_unknown(given, self.host.name)
            endpoint = winrm_data.endpoint(self.data, self.host.name, timeout_s)
            settings = winrm_data.session_settings(self.data, self.host.name)
            if endpoint.scheme == "https" and not endpoint.validate and endpoint.certificate_sha256 is None:
                self._warn(f"{endpoint.label}: its certificate is not checked (winrm_validate=false)")
            envelope = Envelope()
            session = Session(
                lambda: WinRSShell(endpoint, envelope, logger.debug),
                build_program(),
                bootstrap_line,
                settings,
                Surroundings(log=logger.debug),
                self._warn,
            )
            session.open()
        except (WireError, ValueError) as error:
            raise ConnectError(str(error)) from error
        except Exception as error:
            text = f"{self.host.name}: cannot connect: {type(error).__name__}: {error}"
            raise ConnectError(redaction.redact(one_line(text))) from error
        self._endpoint, self._session = endpoint, session

    def disconnect(self) -> None:
        """Delete the shell on the box. Never raises."""
        session, self._session = self._session, None
        if session is not None:
            try:
                session.close()
            except Exception as error:
                logger.debug(f"{self.host.print_prefix}disconnect: {type(error).__name__}: {error}")

    def prefetch(self, calls: Iterable[Call]) -> int:
        """Read several Calls in one request and keep their answers; return how many were asked for.

        An answer is kept until a command changes the box, a file is sent, the shell is replaced, or two
        minutes have gone by. Raises: OSError kinds.
        """
        return self._connected().prefetch(list(calls))

    def forget(self) -> None:
        """Drop all kept answers: for waits whose reads must be fresh each time."""
        if self._session is not None:
            self._session.forget()

    def run_shell_command(
        self,
        command: StringCommand | str,
        print_output: bool = False,
        print_input: bool = False,
        **arguments: Any,
    ) -> tuple[bool, CommandOutput]:
        """Run a box command (Call) or a free text in PowerShell or cmd.

        A Call gives one line on stdout: ``{"ok": true, "value": ...}`` or ``{"ok": false, "error": ...}``,
        with ``"payload"`` (base64) when there are bytes. A reading Call never fails: trouble of the
        connection is an error of type Transport. A changing Call fails with readable lines on stderr.

        Raises: OSError kinds only (TimeoutError among them).
        """
        if print_input:
            echo(f"{self.host.print_prefix}>>> {command}", err=True)
        if isinstance(command, Call):
            redaction.register_hidden(command.parameters)
            return self._run_call(command, print_output, arguments)
        return self._run_text(command, print_output, arguments)

    def put_file(
        self,
        filename_or_io: str | IOBase,
        remote_filename: str,
        remote_temp_filename: str | None = None,
        print_output: bool = False,
        print_input: bool = False,
        **arguments: Any,
    ) -> bool:
        """Send a file; nothing is sent when the box has the same content. Raises OSError kinds only.

        The file is written under a temporary name beside its place and then replaces it; remote_temp_filename
        is not needed for that.
        """
        session, path = self._connected(), _windows_path(remote_filename)
        read_arguments(arguments, self._where)
        with get_file_io(cast(Any, filename_or_io)) as file:
            sent = transfer.put(session, self._where, file, path, self._progress(f"sending {path}"))
        if print_output:
            what = "file uploaded" if sent else "file already there"
            echo(f"{self.host.print_prefix}{what}: {path}", err=True)
        return True

    def get_file(
        self,
        remote_filename: str,
        filename_or_io: str | IOBase,
        remote_temp_filename: str | None = None,
        print_output: bool = False,
        print_input: bool = False,
        **arguments: Any,
    ) -> bool:
        """Fetch a file and check its hash; a local file is replaced only then. Raises OSError kinds only."""
        session, path = self._connected(), _windows_path(remote_filename)
        read_arguments(arguments, self._where)
        progress = self._progress(f"fetching {path}")
        if isinstance(filename_or_io, str):
            target = Path(filename_or_io)
            with _replacing(target) as file:
                transfer.get(session, self._where, path, file, progress)
        else:
            with tempfile.SpooledTemporaryFile(max_size=1 << 24) as file:
                transfer.get(session, self._where, path, cast(IO[bytes], file), progress)
                file.seek(0)
                content = file.read()
            cast(Any, filename_or_io).write(_for_sink(filename_or_io, content))
        if print_output:
            echo(f"{self.host.print_prefix}file downloaded: {path}", err=True)
        return True

    def _run_call(self, call: Call, print_output: bool, arguments: Any) -> tuple[bool, CommandOutput]:
        try:
            settings = read_arguments(arguments, self._where)
            refuse_masked(call.key(), call.command, self._where)
            refuse_masked(call.payload, f"the payload of {call.command}", self._where)
            session = self._connected()
            if call.reads:
                answer = session.ask(call)
            else:
                answer = session.run([call], self._show_progress(call.command), settings.timeout_s)[0]
        except OSError as error:
            if not call.reads:
                raise
            kind = "Refused" if isinstance(error, ArgumentRefused) else "Transport"
            answer = Answer.failed(kind, str(error), call.command)
        lines = [OutputLine("stdout", _as_line(answer))]
        if not answer.ok and not call.reads:
            lines += [OutputLine("stderr", line) for line in _readable(answer, call.command)]
        if print_output:
            for line in lines:
                self._print(line)
        return answer.ok or call.reads, CommandOutput(lines)

    def _run_text(
        self, command: StringCommand | str, print_output: bool, arguments: Any
    ) -> tuple[bool, CommandOutput]:
        settings = read_arguments(arguments, self._where)
        for name in settings.unknown:
            logger.debug(f"{self.host.print_prefix}{name} has no effect on Windows")
        text = command if isinstance(command, str) else command.get_raw_value()
        if isinstance(command, StringCommand):
            _register_bits(command.bits)
        refuse_masked(text, "the command", self._where)
        session = self._connected()
        lines: list[OutputLine] = []
        if session.read_only:
            refusal = "not run: while a run is planned (or with --dry, or for a fact) only reading is allowed"
            return False, CommandOutput([OutputLine("stderr", refusal)])

        def keep(stream: str, texts: list[str]) -> None:
            for line in (OutputLine(stream, text) for text in texts):
                lines.append(line)
                if print_output:
                    self._print(line)

        decoders = {name: LineDecoder(session.ready.get("OemCodePage")) for name in ("stdout", "stderr")}
        show_progress = self._show_progress("script")

        def listen(frame: Frame) -> None:
            if frame.kind == "progress":
                show_progress(frame)
                return
            stream = "stderr" if frame.data.get("stream") == "stderr" else "stdout"
            raw = frame.data.get("raw") is True
            data = frame.payload if raw else str(frame.data.get("text", "")).encode("utf-8", "replace")
            keep(stream, decoders[stream].feed(data))

        call = Call(
            "Invoke-BoxScript",
            payload=settings.stdin,
            Text=text,
            Shell=settings.shell,
            WorkingDirectory=settings.directory,
            Environment=dict(settings.environment) or None,
            TimeoutSeconds=settings.timeout_s,
        )
        limit_s = settings.timeout_s + SCRIPT_GRACE_S if settings.timeout_s else SCRIPT_TIMEOUT_S
        answer = session.run([call], listen, limit_s)[0]
        for stream, decoder in decoders.items():
            keep(stream, decoder.finish())
        if not answer.ok:
            keep("stderr", _readable(answer, "the command"))
            return False, CommandOutput(lines)
        if answer.value.get("TimedOut"):
            raise DeadlineExceeded(
                self._where, f"the command did not end within {settings.timeout_s:g} s and was stopped"
            )
        return settings.succeeded(int(answer.value.get("ExitCode") or 0)), CommandOutput(lines)

    @property
    def _where(self) -> str:
        return self._endpoint.label if self._endpoint is not None else str(self.host.name)

    def _connected(self) -> Session:
        if self._session is None:
            raise Unreachable(self._where, "not connected", "a connected box", "run again")
        # While pyinfra plans, nothing may change: with --dry there is no other phase.
        self._session.read_only = not self.state.is_executing
        return self._session

    def _warn(self, text: str) -> None:
        logger.warning(f"{self.host.print_prefix}{text}")

    def _print(self, line: OutputLine) -> None:
        text = format_text(line.line, "red") if line.buffer_name == "stderr" else line.line
        echo(f"{self.host.print_prefix}{text}", err=True)

    def _progress(self, what: str) -> transfer.Progress:
        """A function to call with done and total; prints now and then, and nothing for short work."""
        started = shown = time.monotonic()

        def show(done: int, total: int) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - started > QUIET_S and now - shown > PROGRESS_EVERY_S:
                shown = now
                share = f" {100 * done // total} %" if total else f" {done}"
                logger.info(f"{self.host.print_prefix}{what}:{share}")

        return show

    def _show_progress(self, what: str) -> Any:
        shows: dict[str, transfer.Progress] = {}

        def listen(frame: Frame) -> None:
            if frame.kind == "progress":
                activity = str(frame.data.get("activity", what))
                show = shows.setdefault(activity, self._progress(activity))
                with contextlib.suppress(TypeError, ValueError):
                    show(int(frame.data.get("done", 0)), int(frame.data.get("total") or 0))

        return listen


def _windows_path(path: str) -> str:
    """A path with backslashes; pyinfra joins its own with slashes."""
    return str(path).replace("/", "\\")


def _as_line(answer: Answer) -> str:
    if not answer.ok:
        return json.dumps({"ok": False, "error": answer.error})
    line: dict[str, Any] = {"ok": True, "value": answer.value}
    if answer.payload:
        line["payload"] = base64.b64encode(answer.payload).decode()
    return json.dumps(line)


def _readable(answer: Answer, what: str) -> list[str]:
    error = answer.error or {}
    code = f" ({error['hresult']})" if error.get("hresult") else ""
    first, *rest = str(error.get("message") or "no message").splitlines() or [""]
    return [f"{error.get('command') or what}: {error.get('type')}: {first}{code}", *rest]


def _register_bits(bits: Iterable[Any]) -> None:
    for bit in bits:
        inner = bit.obj if isinstance(bit, QuoteString) else bit
        if isinstance(inner, HiddenValue):
            redaction.register(inner)
        elif isinstance(inner, StringCommand):
            _register_bits(inner.bits)


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """A file beside target that takes its place when the block ends well."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        try:
            yield file
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, target)


def _for_sink(sink: Any, content: bytes) -> bytes | str:
    """Content as the sink takes it: text files want text."""
    return (
        content.decode("utf-8", "replace")
        if hasattr(sink, "encoding") or hasattr(sink, "newlines")
        else content
    )
