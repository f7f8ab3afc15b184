"""A shell over WinRS (MS-WSMV), on pywinrm's protocol (docs/facts/winrm.md#messages-of-a-shell).

One connection for the conversation; a second one, made only when needed, to cancel or delete while the first
hangs.
"""

from __future__ import annotations

import base64
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import xmltodict
from winrm.exceptions import WinRMOperationTimeoutError

from winfleet.wire import ledger
from winfleet.wire.endpoint import Endpoint
from winfleet.wire.errors import (
    BoxUnavailable,
    CertificateRefused,
    ConnectionLost,
    CredentialsRefused,
    InputBusy,
    InputDoubtful,
    LoginExpired,
    MessageTooLarge,
    ProfileBusy,
    ShellLost,
    WireError,
)
from winfleet.wire.faults import Circumstances, translate, untrusted
from winfleet.wire.shells import Output
from winfleet.wire.transport import CREATE_MARGIN_S, MAX_ENVELOPE_BYTES, BoxProtocol, shown_certificate_sha256

SHELL_URI = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell/cmd"
RECEIVE = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell/Receive"
CODE_PAGE_UTF8 = 65001
IDLE_TIMEOUT = "PT1800S"
"""After that long without a message the box removes the shell; a bare number is refused
(docs/facts/winrm.md#shell-options)."""
OLD_ENVELOPE_BYTES = 153_600
SOAP_OVERHEAD_BYTES = 2_400
"""Header and tags of a Send are about 1.9 KB."""
HIVE_PAUSES_S = (1.0, 2.0, 4.0)
BUSY_PAUSE_S = 0.5
CLOSING_TIMEOUT_S = 15.0
"""For the end of a process tree on a busy box."""

T = TypeVar("T")


@dataclass
class Envelope:
    """The largest message a box takes, learnt from its refusals and shared by all shells to it."""

    bytes: int = MAX_ENVELOPE_BYTES

    @property
    def input_bytes(self) -> int:
        """How much stdin fits in a Send: the envelope less its tags, as base64."""
        return (self.bytes - SOAP_OVERHEAD_BYTES) * 3 // 4


def parse_receive(answer: bytes) -> Output:
    """The streams and the end of the process in a ReceiveResponse.

    A reply may hold several CommandState elements; that of the Done state counts (overthere#79). Exit codes
    come unsigned or signed; they are returned as unsigned 32 bit.
    """
    streams = {"stdout": bytearray(), "stderr": bytearray()}
    exit_code: int | None = None
    for node in ElementTree.fromstring(answer).iter():
        tag = node.tag.rpartition("}")[2]
        if tag == "Stream" and node.text:
            streams.setdefault(node.get("Name", ""), bytearray()).extend(base64.b64decode(node.text))
        elif tag == "CommandState" and node.get("State", "").endswith("/Done"):
            texts = [child.text for child in node if child.tag.rpartition("}")[2] == "ExitCode"]
            exit_code = int(texts[0] or 0) & 0xFFFFFFFF if texts else 0
    return Output(bytes(streams["stdout"]), bytes(streams["stderr"]), exit_code)


class WinRSShell:
    """One WinRS shell with one command; see winfleet.wire.shells.Shell for the methods."""

    def __init__(
        self,
        box: Endpoint,
        envelope: Envelope | None = None,
        log: Callable[[str], None] = lambda text: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._box = box.checked()
        self._envelope = envelope or Envelope()
        self._log, self._clock, self._sleep = log, clock, sleep
        self._main = BoxProtocol(box, self._envelope.bytes)
        self._shell_id: str | None = None
        self._command_id: str | None = None
        self._entered = False
        self._unauthorized = False
        self._hanging = False
        self._last_exchange = clock()

    @property
    def endpoint(self) -> str:
        """The box's name and address."""
        return self._box.label

    @property
    def max_write_bytes(self) -> int:
        """How many bytes of stdin fit in one Send."""
        return self._envelope.input_bytes

    def open(self, command_line: str) -> None:
        """Create the shell and start the process through cmd.exe, stdin as a pipe."""
        for orphan in list(ledger.orphans(self._box.url, self._box.user)) if self._box.ledger else []:
            self._remove_orphan(orphan)
        self._shell_id = self._create()
        if self._box.ledger:
            ledger.note(self._box.url, self._box.user, self._shell_id)
        shell_id = self._shell_id
        self._command_id = self._call(
            lambda: self._main.run_command(
                shell_id, command_line, console_mode_stdin=False, skip_cmd_shell=False
            )
        )

    def write(self, data: bytes) -> None:
        """Send bytes to stdin, in as many messages as the box's limit asks for."""
        shell_id, command_id = self._ids()
        sent = 0
        while sent < len(data):
            piece = data[sent : sent + self.max_write_bytes]
            try:
                self._call(lambda: self._main.send_command_input(shell_id, command_id, piece), sending=True)  # noqa: B023
            except MessageTooLarge as refused:
                self._step_down(refused)
                continue
            except (InputBusy, InputDoubtful) as doubt:
                if isinstance(doubt, InputBusy):
                    self._sleep(BUSY_PAUSE_S)
                if sent + len(piece) < len(data):
                    raise ConnectionLost(self.endpoint, doubt.found, delivered=True) from doubt
                raise InputDoubtful(self.endpoint, doubt.found) from doubt
            sent += len(piece)

    def read(self, wait_s: float) -> Output:
        """One Receive; an operation timeout is an empty Output."""
        shell_id, command_id = self._ids()
        self._main.allow(min(wait_s, self._box.operation_timeout_s))
        envelope = self._main.build_wsman_header(RECEIVE, SHELL_URI, shell_id)
        stream = {"@CommandId": command_id, "#text": "stdout stderr"}
        envelope["env:Body"] = {"rsp:Receive": {"rsp:DesiredStream": stream}}
        message = xmltodict.unparse({"env:Envelope": envelope})

        def receive() -> Output:
            try:
                return parse_receive(self._main.send_message(message))
            except WinRMOperationTimeoutError:
                return Output()

        return self._call(receive, wait_s)

    def reset(self) -> None:
        """Drop the connection."""
        self._main.transport.close_session()

    def cancel(self) -> None:
        """Signal(terminate) over a connection of its own."""
        if self._shell_id is None or self._command_id is None:
            return
        aside = self._aside()
        try:
            aside.cleanup_command(self._shell_id, self._command_id)
        except Exception as error:
            self._log(f"{self.endpoint}: cancel: {type(error).__name__}: {error}")
        finally:
            aside.transport.close_session()

    def close(self) -> None:
        """Delete the shell, over a second connection when the first one fails or hangs."""
        shell_id, self._shell_id, self._command_id = self._shell_id, None, None
        if shell_id is not None:
            self._main.allow(CLOSING_TIMEOUT_S, 2 * CLOSING_TIMEOUT_S)
            if not (not self._hanging and self._delete(self._main, shell_id)):
                self._main.transport.close_session()
                aside = self._aside()
                if not self._delete(aside, shell_id) and self._box.ledger:
                    ledger.abandon(self._box.url, shell_id)
                aside.transport.close_session()
        self._main.transport.close_session()

    def _create(self) -> str:
        for pause_s in (*HIVE_PAUSES_S, None):
            try:
                return self._call(
                    lambda: self._main.open_shell(codepage=CODE_PAGE_UTF8, idle_timeout=IDLE_TIMEOUT),
                    read_s=self._box.connect_timeout_s + CREATE_MARGIN_S,
                )
            except ProfileBusy as busy:
                if pause_s is None:
                    raise
                self._log(f"{busy}; once more in {pause_s:g} s")
                self._sleep(pause_s)
        raise AssertionError("unreachable")

    def _remove_orphan(self, shell_id: str) -> None:
        try:
            self._call(lambda: self._main.close_shell(shell_id, close_session=False))
            self._log(f"{self.endpoint}: removed the shell of a run that was killed")
        except (ShellLost, BoxUnavailable) as gone:
            self._log(f"{gone}")
        ledger.forget(self._box.url, shell_id)

    def _delete(self, protocol: BoxProtocol, shell_id: str) -> bool:
        """True when the shell no longer exists."""
        try:
            protocol.close_shell(shell_id, close_session=False)
        except Exception as error:
            wire = translate(error, self._box, Circumstances(sending=False, entered=True))
            self._log(f"{self.endpoint}: delete: {wire.found}")
            if not isinstance(wire, ShellLost):
                return False
        ledger.forget(self._box.url, shell_id)
        return True

    def _aside(self) -> BoxProtocol:
        aside = BoxProtocol(self._box, self._envelope.bytes)
        aside.allow(CLOSING_TIMEOUT_S, 2 * CLOSING_TIMEOUT_S)
        return aside

    def _ids(self) -> tuple[str, str]:
        if self._shell_id is None or self._command_id is None:
            raise ShellLost(self.endpoint, "the shell is closed")
        return self._shell_id, self._command_id

    def _step_down(self, refused: MessageTooLarge) -> None:
        if self._envelope.bytes <= OLD_ENVELOPE_BYTES:
            raise BoxUnavailable(
                self.endpoint,
                f"messages of {OLD_ENVELOPE_BYTES} bytes are too large for it",
                "MaxEnvelopeSizekb of at least 150",
                'on the box: winrm set winrm/config @{MaxEnvelopeSizekb="500"}',
            ) from refused
        self._envelope.bytes = self._main.envelope_bytes = OLD_ENVELOPE_BYTES
        self._log(f"{self.endpoint}: takes small messages only; going on with {OLD_ENVELOPE_BYTES} bytes")

    def _call(
        self,
        exchange: Callable[[], T],
        wait_s: float | None = None,
        *,
        sending: bool = False,
        read_s: float | None = None,
    ) -> T:
        """One message and its answer; raises WireError kinds."""
        quiet_s = self._clock() - self._last_exchange
        if self._box.sealed and self._entered and quiet_s > self._box.idle_rehandshake_s:
            # The service has closed the connection or soon will, and its keys die with it
            # (docs/facts/winrm.md#sealed-messages).
            self._main.transport.close_session()
        self._main.allow(min(wait_s or self._box.operation_timeout_s, self._box.operation_timeout_s), read_s)
        self._hanging = True
        try:
            result = exchange()
        except Exception as error:
            self._hanging = False
            raise self._failure(error, sending) from error
        self._hanging = False
        self._entered, self._unauthorized = True, False
        self._last_exchange = self._clock()
        return result

    def _failure(self, error: Exception, sending: bool) -> WireError:
        offered = self._main.transport.offered_schemes
        wire = translate(error, self._box, Circumstances(sending, self._entered, offered))
        if isinstance(wire, LoginExpired):
            if self._unauthorized:
                # A new handshake did not help either.
                wire = translate(error, self._box, Circumstances(sending, False, offered))
            self._unauthorized = True
        if isinstance(wire, CertificateRefused) and not self._box.certificate_sha256 and not self._box.proxy:
            wire = untrusted(self._box, wire, shown_certificate_sha256(self._box))
        if isinstance(wire, ConnectionLost | MessageTooLarge | CredentialsRefused):
            # The keys of a sealed connection are out of step now.
            self._main.transport.close_session()
        else:
            self._last_exchange = self._clock()
        return wire
