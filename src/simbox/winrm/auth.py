"""Who a connection belongs to: Basic, NTLM and Negotiate (SPNEGO), and the key that seals its bodies.

The handshake is pyspnego's acceptor (docs/facts/winrm.md#sealed-messages). Windows ties an NTLM session to its TCP
connection; so does `ConnectionAuth`, one for each connection.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import spnego
from spnego._ntlm_raw.crypto import ntowfv1
from spnego.channel_bindings import GssChannelBindings

from simbox.eventlog import EventLog
from simbox.winrm.limits import Limits

_USER_FILE = "NTLM_USER_FILE"
_NTLM_MAGIC = b"NTLMSSP\x00"
# pyspnego finds its user file by an environment variable of the whole process, while every box has
# accounts of its own (the same name with another password, say). So the variable is set for the length of
# one step, under this lock.
_USER_FILE_LOCK = threading.Lock()


@dataclass(frozen=True)
class Credential:
    """A local account of a box."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Credential(user={self.user!r}, password=***)"


@dataclass(frozen=True)
class Challenge:
    """A 401 to be sent: the values of its WWW-Authenticate headers; failed ones end the connection."""

    headers: tuple[str, ...]
    failed: bool = False


class Authenticator:
    """The accounts of one box and what its service offers.

    Args:
        machine: the box's name; clients may write it before the user (BOX\\user).
        credentials: its local accounts.
        limits: offered schemes and switches, read anew at each request.
        certificate_sha256: hex fingerprint of the HTTPS certificate, for channel binding.
    """

    def __init__(
        self, machine: str, credentials: Iterable[Credential], limits: Limits, certificate_sha256: str
    ) -> None:
        self.limits = limits
        self._accounts = {item.user.lower(): item for item in credentials}
        # tls-server-end-point hashes the certificate with the hash of its signature; ours is SHA-256 (RFC
        # 5929).
        self.bindings = GssChannelBindings(
            application_data=b"tls-server-end-point:" + bytes.fromhex(certificate_sha256)
        )
        # Without a name from the start: however the simulator ends, no password hash stays on the disk.
        self._user_file = tempfile.TemporaryFile()  # noqa: SIM115 - lives until close
        for account in self._accounts.values():
            # The six-field form: a password with a colon would break the three-field one.
            nt_hash = ntowfv1(account.password).hex().upper()
            for domain in ("", ".\\", f"{machine}\\", "WORKSTATION\\"):
                line = f"{domain}{account.user}:0:{'0' * 32}:{nt_hash}:[U]:LCT-0\n"
                self._user_file.write(line.encode())
        self._user_file.flush()

    def close(self) -> None:
        """Release the file with the password hashes; `step` fails afterwards."""
        self._user_file.close()

    def offers(self, tls: bool) -> tuple[str, ...]:
        """The values of WWW-Authenticate for a client that has not authenticated."""
        basic = ('Basic realm="WSMAN"',) if self.basic_allowed(tls) else ()
        return (*self.limits.schemes, *basic)

    def basic_allowed(self, tls: bool) -> bool:
        """Whether Basic may be used on a connection."""
        return self.limits.basic and (tls or self.limits.allow_unencrypted)

    def check_basic(self, token: str) -> str | None:
        """The account of a Basic token, or None when user or password are wrong."""
        try:
            user, _, password = base64.b64decode(token, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            return None
        account = self.account(user)
        known = account.password if account else ""
        same = hmac.compare_digest(known.encode(), password.encode())
        return account.user if account and same else None

    def account(self, principal: str) -> Credential | None:
        """The account of a name as clients write it: user, BOX\\user, .\\user."""
        return self._accounts.get(principal.rpartition("\\")[2].lower())

    def step(
        self, context: Any, token: bytes, bindings: GssChannelBindings | None
    ) -> tuple[Any, bytes | None]:
        """Feed a token to an acceptor context, made when None; return the context and its answer.

        bindings: not None: the client must have bound its proof to them. Raises pyspnego's errors for a
        bad token, a wrong password or an unknown user.
        """
        with _USER_FILE_LOCK:
            before = os.environ.get(_USER_FILE)
            # Where opening /dev/fd/N shares the position (macOS), it has to be at the start each time.
            self._user_file.seek(0)
            os.environ[_USER_FILE] = f"/dev/fd/{self._user_file.fileno()}"
            try:
                if context is None:
                    context = _acceptor(token)
                return context, context.step(token, channel_bindings=bindings)
            finally:
                if before is None:
                    os.environ.pop(_USER_FILE, None)
                else:
                    os.environ[_USER_FILE] = before


def _acceptor(token: bytes) -> Any:
    # The options choose pyspnego's own NTLM: an installed gssapi would be taken otherwise.
    if token.startswith(_NTLM_MAGIC):
        return spnego.server(protocol="ntlm", options=spnego.NegotiateOptions.use_ntlm)
    return spnego.server(protocol="negotiate", options=spnego.NegotiateOptions.use_negotiate)


class ConnectionAuth:
    """The authentication state of one connection.

    Attributes: user (the account, or None), sealing (context with wrap_winrm and unwrap_winrm, or None),
    final_token (the value of WWW-Authenticate that ends a handshake, to be sent once, or None).
    """

    def __init__(self, authenticator: Authenticator, tls: bool, events: EventLog) -> None:
        self._authenticator = authenticator
        self.tls = tls
        self._events = events
        self._handshake: Any = None
        self.user: str | None = None
        self.sealing: Any = None
        self.final_token: str | None = None

    def reset(self) -> None:
        """Forget who this is, as a restarted service does."""
        self._handshake = self.sealing = self.user = self.final_token = None

    def authorise(self, header: str | None) -> Challenge | None:
        """Take a request's Authorization header. None: go on, `user` is known; else the 401 to answer."""
        if header is None:
            return None if self.user else Challenge(self._authenticator.offers(self.tls))
        scheme, _, value = header.strip().partition(" ")
        if scheme.lower() == "basic":
            return self._basic(value.strip())
        offered = {offer.lower(): offer for offer in self._authenticator.limits.schemes}
        # NTLM tokens may also come under their own name where Negotiate is offered, as http.sys allows.
        if scheme.lower() not in offered and not (scheme.lower() == "ntlm" and "negotiate" in offered):
            return Challenge(self._authenticator.offers(self.tls))
        return self._negotiate(scheme, value.strip())

    def _basic(self, token: str) -> Challenge | None:
        if not self._authenticator.basic_allowed(self.tls):
            return Challenge(self._authenticator.offers(self.tls))
        user = self._authenticator.check_basic(token)
        if user is None or self.user is None:
            self._events.append("handshake", scheme="Basic", ok=user is not None, user=user)
        self.user, self.sealing = user, None
        return None if user else Challenge(self._authenticator.offers(self.tls))

    def _negotiate(self, scheme: str, value: str) -> Challenge | None:
        if self.user:
            self.reset()
        strict = self.tls and self._authenticator.limits.cbt_strict
        bindings = self._authenticator.bindings if strict else None
        try:
            token = base64.b64decode(value, validate=True)
            self._handshake, answer = self._authenticator.step(self._handshake, token, bindings)
        except Exception as error:
            # pyspnego raises its own errors for a wrong password or user, and others for a malformed token.
            self.reset()
            self._events.append("handshake", scheme=scheme, ok=False, reason=type(error).__name__)
            return Challenge(self._authenticator.offers(self.tls), failed=True)
        reply = f"{scheme} {base64.b64encode(answer).decode()}" if answer else None
        if not self._handshake.complete:
            return Challenge((reply or scheme,))
        account = self._authenticator.account(self._handshake.client_principal or "")
        self.sealing, self._handshake = self._handshake, None
        self.user = account.user if account else None
        self.final_token = reply
        self._events.append("handshake", scheme=scheme, ok=account is not None, user=self.user)
        return None if account else Challenge(self._authenticator.offers(self.tls), failed=True)
