"""What a box's WinRM service does with one WS-Man message of an authenticated user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simbox.winrm import soap
from simbox.winrm.command import Command
from simbox.winrm.faults import FaultPlan
from simbox.winrm.limits import Limits
from simbox.winrm.refusals import INVALID_ACTION, INVALID_SELECTORS, NO_COMMAND, NOT_FOUND, refusal
from simbox.winrm.shells import Shell, Shells

# Room for the envelope around the streams of a ReceiveResponse, in bytes.
_ENVELOPE_OVERHEAD = 2048
_SMALLEST_RECEIVE = 1024


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes: user, client_ip, address (URL of the service as the caller reached it), gone (whether the
    caller has hung up since).
    """

    user: str
    client_ip: str
    address: str
    gone: Callable[[], bool]


class Service:
    """Answers requests on the shells of one box."""

    def __init__(self, shells: Shells, limits: Limits, faults: FaultPlan) -> None:
        self._shells = shells
        self._limits = limits
        self._faults = faults

    def answer(self, request: soap.Request, caller: Caller) -> bytes:
        """The SOAP answer. Raises Refusal, or ClientGone when there is no one left to answer."""
        handlers = {
            "Create": self._create,
            "Command": self._command,
            "Send": self._send,
            "Receive": self._receive,
            "Signal": self._signal,
            "Delete": self._delete,
            "Get": self._get,
        }
        handler = handlers.get(request.action)
        if handler is None:
            raise refusal(INVALID_ACTION)
        return handler(request, caller)

    def kill_processes(self, request: soap.Request, caller: Caller) -> None:
        """End the commands of the shell that a request names, as if each had ended by itself."""
        with self._shells.using(caller.user, request.shell_id) as shell:
            for command in list(shell.commands.values()):
                command.kill_process()

    def _timeout_s(self, request: soap.Request) -> float:
        return min(request.operation_timeout_s, self._limits.max_timeout_ms / 1000)

    def _create(self, request: soap.Request, caller: Caller) -> bytes:
        if request.resource_uri.lower() != soap.CMD_SHELL:
            raise refusal(NOT_FOUND)
        state = self._shells.create(caller.user, caller.client_ip, soap.parse_shell(request))
        return soap.render_created(request, state, caller.address)

    def _command(self, request: soap.Request, caller: Caller) -> bytes:
        with self._shells.using(caller.user, request.shell_id) as shell:
            line = soap.parse_command(request)
            skip_cmd_shell = request.option_is_true("WINRS_SKIP_CMD_SHELL")
            command = self._shells.start(shell, line, skip_cmd_shell)
            return soap.render_command(request, command.command_id)

    def _send(self, request: soap.Request, caller: Caller) -> bytes:
        with self._shells.using(caller.user, request.shell_id) as shell:
            for part in soap.parse_stdin(request):
                command = self._shells.command(shell, part.command_id)
                command.send(part.data, part.end, self._timeout_s(request))
            return soap.render_empty(request)

    def _receive(self, request: soap.Request, caller: Caller) -> bytes:
        with self._shells.using(caller.user, request.shell_id) as shell:
            command = self._shells.command(shell, soap.parse_receive(request))
            last = command.last_reply
            if self._limits.replay_receive and last is not None and last[0] == request.message_id:
                return last[1]
            reply = self._fetch(request, command, caller)
            command.last_reply = (request.message_id, reply) if self._limits.replay_receive else None
            return reply

    def _fetch(self, request: soap.Request, command: Command, caller: Caller) -> bytes:
        envelope = self._limits.max_envelope_size_kb * 1024
        if request.max_envelope_bytes is not None:
            envelope = min(envelope, request.max_envelope_bytes)
        room = max(_SMALLEST_RECEIVE, (envelope - _ENVELOPE_OVERHEAD) * 3 // 4)
        output = command.receive(self._timeout_s(request), room, caller.gone)
        both = output.exit_code is not None and bool(self._faults.take("output", "Receive", "two_states"))
        return soap.render_output(request, command.command_id, output.chunks, output.exit_code, both)

    def _signal(self, request: soap.Request, caller: Caller) -> bytes:
        with self._shells.using(caller.user, request.shell_id) as shell:
            command_id, code = soap.parse_signal(request)
            command = self._shells.command(shell, command_id)
            self._deliver(shell, command, code)
            return soap.render_empty(request)

    def _deliver(self, shell: Shell, command: Command, code: str) -> None:
        if code == "terminate":
            self._shells.end_command(shell, command)
        elif code in ("ctrl_c", "ctrl_break"):
            command.signal(code == "ctrl_c")
        else:
            raise refusal(NO_COMMAND)

    def _delete(self, request: soap.Request, caller: Caller) -> bytes:
        self._shells.delete(caller.user, request.shell_id)
        return soap.render_empty(request)

    def _get(self, request: soap.Request, caller: Caller) -> bytes:
        uri = request.resource_uri.lower()
        if uri == soap.CONFIG:
            return soap.render_config(request, self._limits.config())
        if uri not in (soap.SHELL, soap.CMD_SHELL):
            raise refusal(NOT_FOUND)
        state = next((item for item in self._shells.states() if item.shell_id == request.shell_id), None)
        if state is None or state.owner.rpartition("\\")[2] != caller.user:
            raise refusal(INVALID_SELECTORS)
        return soap.render_shell(request, state)
