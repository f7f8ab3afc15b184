"""A small HTTP/1.1 server on raw sockets: keep-alive, one thread and one state object for each connection.

Raw sockets, because Windows ties authentication to the TCP connection, and because faults have to be
injected where they happen: between request and reply, in the middle of a body, on an idle connection.
"""

from __future__ import annotations

import contextlib
import select
import selectors
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

_MAX_HEAD_BYTES = 65536
_MAX_BODY_BYTES = 64 * 1024 * 1024
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Request Entity Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class BadRequest(Exception):
    """A request that is no HTTP/1.1; the connection is closed after a 400."""


@dataclass
class HttpRequest:
    """A request. Header names are in lower case; wire_bytes counts head and body as they came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    wire_bytes: int


@dataclass
class HttpResponse:
    """A response.

    Attributes: headers (in order, without Content-Length), close (end the connection afterwards), cut
    (send only this many bytes of the body, then break the connection), note (fields for the event log).
    """

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    close: bool = False
    cut: int | None = None
    note: dict[str, Any] = field(default_factory=dict)


class Connection:
    """One accepted connection.

    Attributes: client_ip, tls, state (whatever the handler keeps for this connection).
    """

    def __init__(self, sock: socket.socket, client_ip: str, tls: bool) -> None:
        self.client_ip = client_ip
        self.tls = tls
        self.state: Any = None
        self._sock = sock
        self._buffer = bytearray()

    def secure(self, context: ssl.SSLContext) -> None:
        """Do the TLS handshake. Raises OSError."""
        self._sock = context.wrap_socket(self._sock, server_side=True)

    def gone(self) -> bool:
        """Whether the client has closed the connection while its request is being worked on."""
        poll = select.poll()
        poll.register(self._sock.fileno(), select.POLLIN)
        if not poll.poll(0):
            return False
        if self.tls:
            # No client sends anything before it has its answer, so this is an alert or the end.
            return True
        try:
            return not self._sock.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def set_timeout(self, seconds: float) -> None:
        """Longest wait for one piece of data, in seconds."""
        self._sock.settimeout(seconds)

    def read_request(self, idle_s: float, transfer_s: float) -> HttpRequest | None:
        """Wait idle_s for a request to begin and transfer_s for each further piece; None when there is none.

        Raises BadRequest, or OSError when the connection breaks within a request.
        """
        self.set_timeout(idle_s)
        try:
            if not self._buffer and not self._fill():
                return None
        except TimeoutError:
            return None
        self.set_timeout(transfer_s)
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES or not self._fill():
                raise BadRequest("incomplete head")
        head = bytes(self._buffer[:end]).decode("latin-1")
        del self._buffer[: end + 4]
        first, *lines = head.split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise BadRequest(first[:80])
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        if headers.get("expect", "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self._read_body(headers)
        return HttpRequest(words[0], words[1], headers, body, end + 4 + len(body))

    def send(self, data: bytes) -> None:
        """Send all of data. Raises OSError."""
        self._sock.sendall(data)

    def abort(self) -> None:
        """Break the connection at once; its thread then ends. Safe from any thread."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the socket; by the connection's own thread only."""
        self.abort()
        self._sock.close()

    def _fill(self) -> bool:
        data = self._sock.recv(262144)
        self._buffer += data
        return bool(data)

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not self._fill():
                raise BadRequest("incomplete body")
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _take_line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES or not self._fill():
                raise BadRequest("incomplete chunk")
        return self._take(end + 2)[:-2]

    def _read_body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = bytearray()
            while size := self._chunk_size():
                body += self._take(size)
                self._take_line()
            while self._take_line():
                pass
            return bytes(body)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > _MAX_BODY_BYTES:
            raise BadRequest(f"Content-Length {length[:20]}")
        return self._take(int(length))

    def _chunk_size(self) -> int:
        try:
            size = int(self._take_line().partition(b";")[0], 16)
        except ValueError as error:
            raise BadRequest("bad chunk size") from error
        if not 0 <= size <= _MAX_BODY_BYTES:
            raise BadRequest("chunk too large")
        return size


def encode_head(response: HttpResponse) -> bytes:
    """Status line and headers of a response, with the empty line."""
    lines = [f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in response.headers]
    lines += ["Server: Microsoft-HTTPAPI/2.0", f"Date: {formatdate(usegmt=True)}"]
    if response.close:
        lines.append("Connection: close")
    lines.append(f"Content-Length: {len(response.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


Handler = Callable[[HttpRequest, Connection], HttpResponse | None]
Observer = Callable[[HttpRequest, HttpResponse, int], None]


class HttpServer:
    """Listens on one address, on a plain and a TLS port, and serves each connection in a thread of its own.

    Args:
        address: the IP address to listen on.
        handler: answers a request; None breaks the connection without an answer.
        observer: told of each exchange just before its response is sent, with the response's size in bytes.
        welcome: called with each new connection; sets its state; False refuses the connection.
        idle_s, transfer_s: current time limits in seconds (see Connection.read_request).
    """

    def __init__(
        self,
        address: str,
        handler: Handler,
        observer: Observer,
        welcome: Callable[[Connection], bool],
        idle_s: Callable[[], float],
        transfer_s: Callable[[], float],
    ) -> None:
        self._address = address
        self._handler = handler
        self._observer = observer
        self._welcome = welcome
        self._idle_s = idle_s
        self._transfer_s = transfer_s
        self._selector = selectors.DefaultSelector()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._connections: dict[Connection, threading.Thread] = {}
        self._acceptor: threading.Thread | None = None

    def listen(self, port: int, context: ssl.SSLContext | None) -> int:
        """Bind a port (0: any) before `start`; with TLS when there is a context. Returns the port. Raises
        OSError."""
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((self._address, port))
            sock.listen(128)
        except OSError:
            sock.close()
            raise
        self._selector.register(sock, selectors.EVENT_READ, (sock, context))
        return int(sock.getsockname()[1])

    def start(self) -> None:
        """Begin to accept connections."""
        name = f"winrm-accept-{self._address}"
        self._acceptor = threading.Thread(target=self._accept, name=name, daemon=True)
        self._acceptor.start()

    def connections(self) -> int:
        """How many connections are open."""
        with self._lock:
            return len(self._connections)

    def break_connections(self) -> None:
        """Break every open connection."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.abort()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Stop listening, break all connections and wait for their threads, timeout_s seconds each at
        most."""
        self._wake_writer.send(b"x")
        if self._acceptor is not None:
            self._acceptor.join()
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                key.data[0].close()
        self._selector.close()
        self._wake_reader.close()
        self._wake_writer.close()
        with self._lock:
            threads = dict(self._connections)
        for connection in threads:
            connection.abort()
        for thread in threads.values():
            thread.join(timeout_s)

    def _accept(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                listener, context = key.data
                try:
                    sock, peer = listener.accept()
                except OSError:
                    continue
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection = Connection(sock, peer[0], context is not None)
                thread = threading.Thread(
                    target=self._run,
                    args=(connection, context),
                    name=f"winrm-{self._address}-{peer[1]}",
                    daemon=True,
                )
                with self._lock:
                    self._connections[connection] = thread
                thread.start()

    def _run(self, connection: Connection, context: ssl.SSLContext | None) -> None:
        try:
            if self._welcome(connection):
                connection.set_timeout(self._transfer_s())
                if context is not None:
                    connection.secure(context)
                self._serve(connection)
        except (OSError, BadRequest):
            pass  # The peer went away, or has had its 400: nothing is left to tell it.
        finally:
            with self._lock:
                self._connections.pop(connection, None)
            connection.close()

    def _serve(self, connection: Connection) -> None:
        while True:
            try:
                request = connection.read_request(self._idle_s(), self._transfer_s())
            except BadRequest:
                connection.send(encode_head(HttpResponse(400, close=True)))
                raise
            if request is None:
                return
            response = self._handler(request, connection)
            if response is None:
                return
            if request.headers.get("connection", "").lower() == "close":
                response.close = True
            head = encode_head(response)
            body = response.body if response.cut is None else response.body[: response.cut]
            self._observer(request, response, len(head) + len(body))
            connection.send(head + body)
            if response.close or response.cut is not None:
                return
