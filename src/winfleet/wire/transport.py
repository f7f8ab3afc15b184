"""HTTP below pywinrm: one connection, our own rules for certificates, proxies, timeouts and sealed bodies.

pywinrm is used for NTLM, Kerberos and message encryption. What it leaves open is closed here
(docs/facts/winrm.md#what-pywinrm-leaves-open, docs/facts/winrm.md#tls-and-proxies): the certificate pin, the
environment's proxies and CA bundles, connect timeouts, a handshake that failed half-way (after which pywinrm would
send the next body in clear), and clear bodies in answer to sealed ones.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from winrm.exceptions import WinRMTransportError
from winrm.protocol import Protocol
from winrm.transport import Transport

from winfleet.wire.endpoint import Endpoint

MAX_ENVELOPE_BYTES = 512_000
"""MaxEnvelopeSizekb of Windows since WMF 3 (500); WinRM 2 takes 150."""
READ_MARGIN_S = 15.0
"""An answer to a long poll may come that much after its operation timeout (ansible PR#78869)."""
CREATE_MARGIN_S = 20.0
"""The first answer may wait for the user's profile to be loaded."""


def _expanded(path: str | None) -> str | None:
    return str(Path(path).expanduser()) if path else None


def _utf8(text: str | None) -> Any:
    return (text or "").encode()


class _OneConnection(HTTPAdapter):
    """A pool of one connection without silent retries: a POST must never be sent twice unseen."""

    def __init__(self, fingerprint_sha256: str | None) -> None:
        self._fingerprint = fingerprint_sha256
        super().__init__(pool_connections=1, pool_maxsize=1, max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pool; a pinned fingerprint is checked in the TLS handshake, before any HTTP byte."""
        if self._fingerprint is not None:
            kwargs["assert_fingerprint"] = self._fingerprint
        super().init_poolmanager(*args, **kwargs)

    def proxy_manager_for(self, proxy: str, **proxy_kwargs: Any) -> Any:
        """The pool through a proxy is another one; it checks the same fingerprint."""
        if self._fingerprint is not None:
            proxy_kwargs["assert_fingerprint"] = self._fingerprint
        return super().proxy_manager_for(proxy, **proxy_kwargs)


class BoxTransport(Transport):
    """pywinrm's transport with the rules above. Attributes: offered_schemes (of the last 401), wait_s."""

    endpoint: str
    session: requests.Session | None
    encryption: Any

    def __init__(self, box: Endpoint) -> None:
        pinned_only = box.certificate_sha256 is not None and box.ca_file is None
        super().__init__(
            endpoint=box.url,
            username=box.user,
            password=box.password.unmask() if box.password is not None else None,
            auth_method=box.transport,  # type: ignore[arg-type]
            ca_trust_path=_expanded(box.ca_file),  # type: ignore[arg-type]
            cert_pem=_expanded(box.client_certificate),
            cert_key_pem=_expanded(box.client_key),
            server_cert_validation="ignore" if pinned_only or not box.validate else "validate",
            message_encryption="always" if box.sealed else "auto",
            send_cbt=box.send_channel_binding,
            proxy=box.proxy,
            service="HTTP",
        )
        if box.transport == "basic":
            # requests would write text as latin-1, and fail for a password that has no such form.
            self.username, self.password = _utf8(self.username), _utf8(self.password)
        self._box = box
        self.wait_s: float = box.connect_timeout_s
        self.offered_schemes: str = ""

    def build_session(self) -> requests.Session:
        """The HTTP session, made and authenticated when there is none."""
        if self.session is not None:
            return self.session
        try:
            session: requests.Session = super().build_session()
        except BaseException:
            # pywinrm keeps the half-made session and would use it unsealed next time.
            self.close_session()
            raise
        self._harden(session)
        return session

    def setup_encryption(self, session: requests.Session) -> None:
        """The handshake of a sealed connection: blank POSTs, each answered within the connect timeout."""
        self._harden(session)
        allowed_s, self.wait_s = self.wait_s, self._box.connect_timeout_s
        try:
            super().setup_encryption(session)
        finally:
            self.wait_s = allowed_s
        if self._box.transport == "ntlm" and getattr(session.auth, "session_security", None) is None:
            raise WinRMTransportError("http", 200, "the box let us in without a handshake")

    def close_session(self) -> None:
        """Drop the connection and its keys."""
        super().close_session()
        self.encryption = None

    def send_message(self, message: str | bytes) -> bytes:
        """POST a SOAP message, sealed where it has to be; return the SOAP answer."""
        self.build_session()
        if self._box.sealed and self.encryption is None:
            raise AssertionError("a sealed connection has no keys; nothing was sent")
        return bytes(super().send_message(message))

    def _harden(self, session: requests.Session) -> None:
        session.trust_env = False  # no proxy, CA bundle or .netrc of the environment
        if not isinstance(session.adapters.get("https://"), _OneConnection):
            session.mount("https://", _OneConnection(self._box.certificate_sha256))
            session.mount("http://", _OneConnection(None))

    def _send_message_request(self, session: requests.Session, prepared_request: Any) -> requests.Response:
        timeout = (self._box.connect_timeout_s, self.wait_s)
        response: requests.Response = session.send(prepared_request, timeout=timeout, allow_redirects=False)
        if response.status_code == requests.codes.ok:
            return response
        if response.status_code == requests.codes.unauthorized:
            self.offered_schemes = response.headers.get("WWW-Authenticate", "")
        text = b""
        if response.content and (self.encryption is None or self._is_sealed(response)):
            text = self._get_message_response_text(response)
        raise WinRMTransportError("http", response.status_code, text.decode("utf-8", "replace"))

    def _get_message_response_text(self, response: requests.Response) -> bytes:
        if self.encryption is not None and not self._is_sealed(response):
            # Anybody on the way could have written it.
            raise WinRMTransportError("http", response.status_code, "")
        return bytes(super()._get_message_response_text(response))

    @staticmethod
    def _is_sealed(response: requests.Response) -> bool:
        return "session-encrypted" in response.headers.get("Content-Type", "")


class BoxProtocol(Protocol):
    """pywinrm's protocol over a BoxTransport, with our envelope size and a timeout per message."""

    transport: BoxTransport

    def __init__(self, box: Endpoint, envelope_bytes: int) -> None:
        super().__init__(
            box.url,
            transport=box.transport,  # type: ignore[arg-type]
            username=box.user,
            password=box.password.unmask() if box.password is not None else None,
            cert_pem=_expanded(box.client_certificate),
            cert_key_pem=_expanded(box.client_key),
            ca_trust_path=None,  # type: ignore[arg-type]
            server_cert_validation="validate",
            proxy=None,
        )
        self.transport = BoxTransport(box)
        self.envelope_bytes = envelope_bytes

    def build_wsman_header(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The header with our own MaxEnvelopeSize (pywinrm's is fixed)."""
        header: dict[str, Any] = super().build_wsman_header(*args, **kwargs)
        header["env:Header"]["w:MaxEnvelopeSize"]["#text"] = str(self.envelope_bytes)
        return header

    def allow(self, operation_s: float, read_s: float | None = None) -> None:
        """Set the operation timeout of the next messages and how long to wait for their answer."""
        self.operation_timeout_sec = max(1, int(operation_s))
        self.transport.wait_s = read_s or self.operation_timeout_sec + READ_MARGIN_S


def shown_certificate_sha256(box: Endpoint) -> str | None:
    """The fingerprint of the certificate that a box shows to anybody; None when there is none to be had.

    Nothing but a TLS handshake is exchanged. It says what to compare with the box itself, not whom to trust.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((box.host, box.port), box.connect_timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=box.host) as tls,
        ):
            shown = tls.getpeercert(binary_form=True)
    except (OSError, ValueError):
        return None
    return hashlib.sha256(shown).hexdigest() if shown else None
