"""The WinRM endpoint of one simulated box: HTTP, authentication, sealing and faults around
`service.Service`.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from simbox.engines.engine import Engine
from simbox.eventlog import EventLog
from simbox.winrm import sealing, soap
from simbox.winrm.auth import Authenticator, Challenge, ConnectionAuth, Credential
from simbox.winrm.certificate import Certificate
from simbox.winrm.command import ClientGone
from simbox.winrm.faults import Fault, FaultPlan
from simbox.winrm.http1 import Connection, HttpRequest, HttpResponse, HttpServer
from simbox.winrm.limits import Limits
from simbox.winrm.refusals import Refusal, refusal
from simbox.winrm.service import Caller, Service
from simbox.winrm.shells import Shells

_PATH = "/wsman"
_PLAIN_TYPE = "application/soap+xml;charset=UTF-8"
# Bytes that sealing adds around a message at most: part headers, signature, boundaries.
_SEAL_OVERHEAD = 1024


@dataclass
class _Exchange:
    """One authenticated message on its way through the stages."""

    request: soap.Request
    caller: Caller
    auth: ConnectionAuth
    sealed: bool


class WinRMEndpoint:
    """A WS-Man service that believes it is Windows.

    Example::

        endpoint = WinRMEndpoint("127.0.77.1", 5986, 5985, [Credential("admin", password)], engine, events,
                                 Certificate.load_or_create(directory, "gpu01", "127.0.77.1"), name="gpu01")
        endpoint.start()

    Args:
        address: the box's IP address, the only one it listens on.
        https_port, http_port: 0 takes any free port; None does not listen. After `start` the attributes
        of the same
            names hold the real ports, which a later `start` uses again.
        credentials: the local accounts.
        engine: runs the commands.
        events: the box's event log.
        certificate: of the HTTPS listener.
        limits, faults: quotas and armed faults; both may be changed while it runs.
        name: the box's computer name, in owners and faults.
    """

    def __init__(
        self,
        address: str,
        https_port: int | None,
        http_port: int | None,
        credentials: Iterable[Credential],
        engine: Engine,
        events: EventLog,
        certificate: Certificate,
        limits: Limits | None = None,
        faults: FaultPlan | None = None,
        name: str = "BOX",
    ) -> None:
        self.address = address
        self.https_port = https_port
        self.http_port = http_port
        self.limits = limits or Limits()
        self.faults = faults or FaultPlan()
        self.certificate = certificate
        self._credentials = list(credentials)
        self._engine = engine
        self._events = events
        self._name = name
        self._running: _Running | None = None
        self.faults.on_injected(
            lambda fault, action: events.append("fault_injected", fault=fault.kind, on=action)
        )

    def start(self) -> None:
        """Listen and serve in threads. Raises OSError when a port cannot be had."""
        if self._running is not None:
            raise RuntimeError(f"the WinRM endpoint of {self._name} already runs")
        running = _Running(self, self._credentials, self._engine, self._events, self._name)
        try:
            if self.https_port is not None:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.minimum_version = ssl.TLSVersion.TLSv1_2
                context.load_cert_chain(self.certificate.certificate_file, self.certificate.key_file)
                self.https_port = running.server.listen(self.https_port, context)
            if self.http_port is not None:
                self.http_port = running.server.listen(self.http_port, None)
        except OSError:
            running.stop()
            raise
        self._running = running
        running.server.start()

    def stop(self) -> None:
        """Stop listening, break every connection, end every shell with what runs in it. May be started
        again.
        """
        running, self._running = self._running, None
        if running is not None:
            running.stop()

    def restart_service(self) -> None:
        """What `Restart-Service WinRM` does to clients: connections break, every shell is unknown
        afterwards.
        """
        if self._running is not None:
            self._running.server.break_connections()
            self._running.shells.drop_all("service restart")

    def shells(self) -> list[soap.ShellState]:
        """The living shells."""
        return self._running.shells.states() if self._running else []

    def connections(self) -> int:
        """How many connections are open."""
        return self._running.server.connections() if self._running else 0


class _Running:
    """Everything that lives from start to stop."""

    def __init__(
        self,
        endpoint: WinRMEndpoint,
        credentials: list[Credential],
        engine: Engine,
        events: EventLog,
        name: str,
    ) -> None:
        self._endpoint = endpoint
        self._events = events
        self._name = name
        self._limits = limits = endpoint.limits
        self._faults = endpoint.faults
        self._stopping = threading.Event()
        self._authenticator = Authenticator(name, credentials, limits, endpoint.certificate.sha256)
        self.shells = Shells(name, engine, limits, events, endpoint.faults)
        self._service = Service(self.shells, limits, endpoint.faults)
        self.server = HttpServer(
            endpoint.address,
            self._handle,
            self._observe,
            self._welcome,
            lambda: self._limits.connection_idle_s,
            lambda: self._limits.max_packet_retrieval_time_s,
        )

    def stop(self) -> None:
        """End shells first: a request that waits for output is answered and its thread is free to end."""
        self._stopping.set()
        self.shells.close()
        self.server.stop()
        self._authenticator.close()

    def _welcome(self, connection: Connection) -> bool:
        self._events.append("connection", client_ip=connection.client_ip, tls=connection.tls)
        for fault in self._faults.take("connection", "Connection"):
            if fault.kind == "mute":
                self._stopping.wait(fault.seconds or None)
            return False
        connection.state = ConnectionAuth(self._authenticator, connection.tls, self._events)
        return True

    def _observe(self, request: HttpRequest, response: HttpResponse, sent: int) -> None:
        self._events.append(
            "http_request",
            status=response.status,
            bytes_in=request.wire_bytes,
            bytes_out=sent,
            **response.note,
        )

    def _handle(self, request: HttpRequest, connection: Connection) -> HttpResponse | None:
        if request.target.partition("?")[0].rstrip("/").lower() != _PATH:
            return HttpResponse(404)
        if request.method != "POST":
            return HttpResponse(405)
        if self.server.connections() > self._limits.max_connections:
            return HttpResponse(503, close=True)
        auth: ConnectionAuth = connection.state
        challenge = auth.authorise(request.headers.get("authorization"))
        if challenge is not None:
            return _unauthorized(challenge)
        response = self._handle_authenticated(request, connection, auth)
        if response is not None and auth.final_token and auth.user:
            response.headers.append(("WWW-Authenticate", auth.final_token))
            auth.final_token = None
        return response

    def _handle_authenticated(
        self, request: HttpRequest, connection: Connection, auth: ConnectionAuth
    ) -> HttpResponse | None:
        if not request.body:
            return HttpResponse(200, note={"action": "Handshake"})
        limit = self._limits.max_envelope_size_kb * 1024
        body, sealed = request.body, sealing.is_sealed(request.headers.get("content-type", ""))
        if len(body) > limit + (_SEAL_OVERHEAD if sealed else 0):
            # Refused before it is opened, so the client's sealing stream is ahead of ours afterwards.
            return HttpResponse(413)
        if sealed:
            try:
                body = sealing.unseal(body, _unwrap(auth.sealing))
            except sealing.SealError as error:
                return HttpResponse(400, note={"reason": str(error)})
            if len(body) > limit:
                return HttpResponse(413)
        elif not connection.tls and not self._limits.allow_unencrypted:
            # Windows logs the reason and tells the client nothing (docs/facts/winrm.md#r53).
            return HttpResponse(500, note={"reason": "unencrypted body refused"})
        address = self._endpoint.address
        host = f"[{address}]" if ":" in address else address
        port = self._endpoint.https_port if connection.tls else self._endpoint.http_port
        url = f"{'https' if connection.tls else 'http'}://{host}:{port}{_PATH}"
        caller = Caller(auth.user or "", connection.client_ip, url, connection.gone)
        try:
            message = soap.parse_request(body)
        except Refusal as refused:
            return self._reply(auth, sealed, 500, soap.render_fault("", refused, self._name), "Malformed")
        return self._exchange(_Exchange(message, caller, auth, sealed))

    def _exchange(self, exchange: _Exchange) -> HttpResponse | None:
        action = exchange.request.action
        for fault in self._faults.take("request", action):
            done, response = self._before(fault, exchange)
            if done:
                return response
        try:
            status, text = 200, self._service.answer(exchange.request, exchange.caller)
        except Refusal as refused:
            status, text = 500, soap.render_fault(exchange.request.message_id, refused, self._name)
        except ClientGone:
            return None
        return self._finish(exchange, status, text)

    def _before(self, fault: Fault, exchange: _Exchange) -> tuple[bool, HttpResponse | None]:
        """Let a fault of the request stage happen; (True, response or None) when that ends the request."""
        if fault.kind == "close_before":
            return True, None
        if fault.kind == "unauthorized":
            exchange.auth.reset()
            return True, _unauthorized(Challenge(self._authenticator.offers(exchange.auth.tls)))
        if fault.kind == "http_status":
            return True, HttpResponse(fault.code, note={"action": exchange.request.action})
        if fault.kind == "fault":
            text = soap.render_fault(exchange.request.message_id, refusal(fault.code), self._name)
            return True, self._reply(exchange.auth, exchange.sealed, 500, text, exchange.request.action)
        if fault.kind == "service_restart":
            self.shells.drop_all("service restart")
        elif fault.kind == "kill_process":
            self._service.kill_processes(exchange.request, exchange.caller)
        elif fault.kind == "delay":
            self._stopping.wait(fault.seconds)
        return False, None

    def _finish(self, exchange: _Exchange, status: int, text: bytes) -> HttpResponse | None:
        action = exchange.request.action
        damage: list[Fault] = []
        for fault in self._faults.take("reply", action):
            if fault.kind == "close_after":
                return None
            if fault.kind == "silence":
                self._stopping.wait(fault.seconds or None)
                return None
            if fault.kind == "delay_reply":
                self._stopping.wait(fault.seconds)
            elif fault.kind == "replace_reply":
                status = 500
                text = soap.render_fault(exchange.request.message_id, refusal(fault.code), self._name)
            else:
                damage.append(fault)
        response = self._reply(exchange.auth, exchange.sealed, status, text, action)
        for fault in damage:
            if fault.kind == "truncate":
                response.body = response.body[: len(response.body) // 2]
            elif fault.kind == "cut":
                response.cut = len(response.body) // 2
            elif fault.kind == "connection_close":
                response.close = True
        return response

    def _reply(
        self, auth: ConnectionAuth, sealed: bool, status: int, text: bytes, action: str
    ) -> HttpResponse:
        content_type, body = _PLAIN_TYPE, text
        if sealed:
            content_type, body = sealing.seal(text, auth.sealing.wrap_winrm)
        return HttpResponse(status, [("Content-Type", content_type)], body, note={"action": action})


def _unauthorized(challenge: Challenge) -> HttpResponse:
    headers = [("WWW-Authenticate", value) for value in challenge.headers]
    return HttpResponse(401, headers, close=challenge.failed, note={"action": "Handshake"})


def _unwrap(context: Any) -> sealing.Unwrap:
    if context is None:
        raise sealing.SealError("this connection has no session key")

    def unwrap(signature: bytes, ciphertext: bytes) -> bytes:
        plain: bytes = context.unwrap_winrm(signature, ciphertext)
        return plain

    return unwrap
