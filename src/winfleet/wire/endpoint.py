"""Where a box listens and how its connection is protected: checked before anything is sent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyinfra.api.hiddenvalue import HiddenValue

from winfleet.wire.errors import SettingRefused

TRANSPORTS = ("ntlm", "basic", "kerberos", "certificate")
HTTPS_PORT, HTTP_PORT = 5986, 5985
SHA256_HEX_DIGITS, SHA1_HEX_DIGITS = 64, 40


@dataclass(frozen=True)
class Endpoint:
    """A WinRM endpoint with all that is needed to trust and enter it.

    Attributes: name (of the box, for messages), host, port, scheme, transport, user, password,
    certificate_sha256 (pin: lower-case hex of the leaf certificate), ca_file (trusted instead of the usual
    authorities), validate, insecure_basic (Basic over plain HTTP is allowed), client_certificate and
    client_key (PEM files), proxy (URL; None: no proxy, whatever the environment says), connect_timeout_s,
    operation_timeout_s (longest wait of one request at the box, below its limit of 60), idle_rehandshake_s (a
    sealed connection that was quiet for longer is made anew: http.sys closes it after about 120 s),
    send_channel_binding, ledger (note open shells on disk, so that those of a killed run are found).
    """

    name: str
    host: str
    port: int = HTTPS_PORT
    scheme: str = "https"
    transport: str = "ntlm"
    user: str | None = None
    password: HiddenValue | None = None
    certificate_sha256: str | None = None
    ca_file: str | None = None
    validate: bool = True
    insecure_basic: bool = False
    client_certificate: str | None = None
    client_key: str | None = None
    proxy: str | None = None
    connect_timeout_s: float = 10.0
    operation_timeout_s: int = 45
    idle_rehandshake_s: float = 60.0
    send_channel_binding: bool = True
    ledger: bool = True

    @property
    def url(self) -> str:
        """The URL, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host and not self.host.startswith("[") else self.host
        return f"{self.scheme}://{host}:{self.port}/wsman"

    @property
    def label(self) -> str:
        """How messages name the box."""
        return f"{self.name} ({self.url.removesuffix('/wsman')})"

    @property
    def sealed(self) -> bool:
        """True when messages are encrypted by NTLM or Kerberos instead of TLS."""
        return self.scheme == "http" and self.transport in ("ntlm", "kerberos")

    def checked(self) -> Endpoint:
        """The endpoint itself. Raises SettingRefused for unsafe or contradictory settings."""
        refuse = self._refusal()
        if refuse is not None:
            raise SettingRefused(self.label, *refuse)
        return self

    def _refusal(self) -> tuple[str, str, str] | None:
        if not re.fullmatch(r"[\w.-]+|\[?[0-9A-Fa-f:.]+(%[\w.-]+)?\]?", self.host) or self.host.startswith(
            "-"
        ):
            return (
                f"winrm_host is {self.host!r}",
                "a name or an address alone, without scheme, user, port or blanks",
                "correct it in the inventory; the port is winrm_port",
            )
        if self.scheme not in ("http", "https"):
            return f"winrm_scheme is {self.scheme!r}", "https or http", "correct it in the inventory"
        if self.transport not in TRANSPORTS:
            return (
                f"winrm_transport is {self.transport!r}",
                " or ".join(TRANSPORTS),
                "correct it in the inventory",
            )
        if self.scheme == "http" and self.transport == "basic" and not self.insecure_basic:
            return (
                "Basic over plain HTTP would show the password and everything else to the network",
                "HTTPS, or NTLM, which encrypts its messages",
                "set winrm_scheme=https or winrm_transport=ntlm (a closed lab: winrm_insecure_basic=true)",
            )
        if self.scheme == "http" and self.transport == "certificate":
            return "a client certificate over plain HTTP", "HTTPS", "set winrm_scheme=https"
        if self.transport == "certificate":
            for key, path in (
                ("winrm_client_certificate", self.client_certificate),
                ("winrm_client_key", self.client_key),
            ):
                if not path or not Path(path).expanduser().is_file():
                    return f"{key} is {path!r}", "an existing PEM file", "correct the path"
        elif self.transport != "kerberos":
            if not self.user:
                return "winrm_user is not set", "the name of an administrator of the box", "set winrm_user"
            if self.password is None:
                return (
                    "winrm_password is not set",
                    "a reference env:NAME, file:PATH or cmd:COMMAND",
                    "set winrm_password, for example winrm_password=env:BOX_PASSWORD",
                )
        if self.ca_file and not Path(self.ca_file).expanduser().is_file():
            return f"winrm_ca_file {self.ca_file} does not exist", "a PEM file", "correct the path"
        if self.scheme == "http" and (self.certificate_sha256 or self.ca_file):
            return (
                "a certificate is expected, but winrm_scheme=http uses none",
                "HTTPS, or no certificate settings",
                "set winrm_scheme=https",
            )
        return self._pin_refusal()

    def _pin_refusal(self) -> tuple[str, str, str] | None:
        pin = self.certificate_sha256
        if pin is None or re.fullmatch(f"[0-9a-f]{{{SHA256_HEX_DIGITS}}}", pin):
            return None
        found = f"winrm_certificate_sha256 has {len(pin)} characters"
        if len(pin) == SHA1_HEX_DIGITS:
            found = "winrm_certificate_sha256 holds a SHA-1 thumbprint"
        return (
            found,
            f"the SHA-256 of the certificate, {SHA256_HEX_DIGITS} hex digits",
            "openssl x509 -in cert.pem -noout -fingerprint -sha256, or on the box: (Get-ChildItem"
            " Cert:\\LocalMachine\\My).GetCertHashString('SHA256')",
        )


def normal_pin(text: str | None) -> str | None:
    """A fingerprint as people write it (colons, spaces, capitals) as lower-case hex; None when empty."""
    return re.sub(r"[\s:.-]", "", text).lower() or None if text else None
