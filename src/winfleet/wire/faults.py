"""What the exceptions of pywinrm, requests and TLS mean for a box: one WireError with one line each.

Codes and their meaning: docs/facts/winrm.md#fault-codes; what follows from them:
docs/facts/winrm.md#lost-connections.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import requests
from urllib3.exceptions import NameResolutionError, NewConnectionError
from winrm.exceptions import WinRMOperationTimeoutError, WinRMTransportError, WSManFaultError

from winfleet.wire.endpoint import HTTP_PORT, Endpoint
from winfleet.wire.errors import (
    BoxUnavailable,
    CertificateRefused,
    ConnectionLost,
    CredentialsRefused,
    InputBusy,
    InputDoubtful,
    InputRefused,
    LoginExpired,
    MessageTooLarge,
    ProfileBusy,
    ShellLost,
    TlsRefused,
    Unreachable,
    WireError,
)

OPERATION_TIMEOUT = 2150858793
UNKNOWN_SHELL = 2150858843
SHELL_QUOTAS = frozenset({2150859173, 2150859179, 2150859236, 2150859238})
OPERATION_QUOTAS = frozenset({2150859174, 2150859240})
REQUEST_QUOTAS = frozenset({2150859175, 2150859176})
ACCESS_DENIED = frozenset({5, 2147942405})
HIVE_BUSY = 2147943418
PIPE_TIMEOUT, PIPE_BUSY, PIPE_BROKEN, ABORTED, SHUTTING_DOWN, NO_COMMAND = 1460, 170, 109, 995, 1115, 87

_TLS_LOST = re.compile(r"EOF occurred in violation|unexpected[ _]eof|Connection reset|Broken pipe", re.I)

LIST_SHELLS = "Get-WSManInstance -ResourceURI shell -Enumerate"


@dataclass(frozen=True)
class Circumstances:
    """When a fault came: sending (it answers a Send), entered (the box had let us in before), offered
    (schemes of the last 401).
    """

    sending: bool
    entered: bool
    offered: str = ""


def translate(error: Exception, box: Endpoint, when: Circumstances) -> WireError:
    """The WireError for an exception of the layers below. WireErrors come back unchanged."""
    if isinstance(error, WireError):
        return error
    if isinstance(error, WinRMOperationTimeoutError):
        found = "the service could not finish in time"
        if when.sending:
            return InputDoubtful(box.label, f"{found} handing input to the process")
        return ConnectionLost(box.label, found, delivered=True)
    if isinstance(error, WSManFaultError):
        return _fault(error, box, when)
    if isinstance(error, WinRMTransportError):
        return _http(error.code, box, when)
    if isinstance(error, requests.exceptions.SSLError):
        return _tls(error, box)
    if isinstance(error, requests.exceptions.RequestException):
        return _network(error, box, when)
    # A body that cannot be unsealed or parsed: cut off, or from something in between.
    return ConnectionLost(box.label, f"unreadable answer ({type(error).__name__}: {error})", delivered=True)


def _fault(error: WSManFaultError, box: Endpoint, when: Circumstances) -> WireError:
    code = int(error.wsman_fault_code or error.wmierror_code or 0) & 0xFFFFFFFF
    found = f"WinRM fault {code} (0x{code:08X}): {error.reason}"
    if code == UNKNOWN_SHELL:
        return ShellLost(box.label, "the shell is gone (box or service restarted, or the shell expired)")
    if code == PIPE_BUSY and when.sending:
        return InputBusy(box.label, "the process is still taking earlier input (code 170)")
    if code == PIPE_TIMEOUT and when.sending:
        return InputDoubtful(box.label, "the process is slow to take its input (code 1460)")
    if code == PIPE_BROKEN and when.sending:
        return InputRefused(box.label, "PowerShell has ended or closed its input (code 109)")
    if code in OPERATION_QUOTAS:
        return ShellLost(box.label, f"the box counts too many operations of this user (fault {code})")
    if code in (PIPE_BROKEN, ABORTED, NO_COMMAND):
        return ShellLost(box.label, found)
    if code == SHUTTING_DOWN:
        return ShellLost(box.label, "the box is shutting down (code 1115)", "", "run again when it is up")
    if code == HIVE_BUSY:
        return ProfileBusy(
            box.label, found, "", "run again in a minute; the user's profile was being unloaded"
        )
    if code in REQUEST_QUOTAS:
        return ConnectionLost(box.label, f"too many requests at once (fault {code})", delivered=False)
    if code in SHELL_QUOTAS:
        return BoxUnavailable(
            box.label,
            f"too many shells are open for {box.user} (fault {code})",
            "a free shell (MaxShellsPerUser)",
            f"on the box {LIST_SHELLS} lists them; Remove-WSManInstance or a restart of WinRM ends them",
        )
    if code in ACCESS_DENIED:
        return BoxUnavailable(
            box.label,
            f"{box.user} may log on but not use WinRM (access denied)",
            "a member of Administrators",
            "for a local account other than Administrator set LocalAccountTokenFilterPolicy=1 on the box",
        )
    return BoxUnavailable(box.label, found)


def _http(status: int, box: Endpoint, when: Circumstances) -> WireError:
    if status == requests.codes.unauthorized:
        return _refused(box, when)
    if status == requests.codes.request_entity_too_large:
        return MessageTooLarge(box.label, "the message is larger than the box allows (HTTP 413)")
    if status == requests.codes.bad_request:
        return ConnectionLost(box.label, "the box could not unseal the message (HTTP 400)", delivered=False)
    if when.entered:
        return ConnectionLost(box.label, f"HTTP status {status} instead of an answer", delivered=True)
    wanted, mend = "WinRM at /wsman", "check winrm_port and that nothing else answers there"
    if status == requests.codes.service_unavailable:
        wanted, mend = (
            "a WinRM service that is up",
            "wait until it has started, or Start-Service WinRM on the box",
        )
    elif status == requests.codes.forbidden:
        wanted, mend = "access", "check the firewall and IPv4Filter of the WinRM service"
    elif box.scheme == "http" and box.transport == "basic":
        wanted, mend = "a service that takes unencrypted messages", "use HTTPS or winrm_transport=ntlm"
    return BoxUnavailable(box.label, f"HTTP status {status}", wanted, mend)


def _refused(box: Endpoint, when: Circumstances) -> WireError:
    if when.entered:
        return LoginExpired(box.label)
    offered = when.offered.lower()
    usable = {"ntlm": ("negotiate", "ntlm"), "kerberos": ("negotiate", "kerberos"), "basic": ("basic",)}
    schemes = usable.get(box.transport, ())
    if offered and schemes and not any(scheme in offered for scheme in schemes):
        names = ", ".join(sorted(set(re.findall(r"negotiate|kerberos|ntlm|basic|credssp", offered))))
        return CredentialsRefused(
            box.label,
            f"the box offers {names or 'no known scheme'}",
            f"{box.transport}",
            "enable it on the box (winrm/config/service/auth) or set winrm_transport to one offered",
        )
    also = " (or a device in between breaks channel binding)" if box.scheme == "https" else ""
    return CredentialsRefused(
        box.label,
        f"user {box.user!r} or its password was not accepted{also}",
        "the name and password of an administrator of the box",
        "check winrm_user and what winrm_password refers to; a domain user is DOMAIN\\name",
    )


def _tls(error: Exception, box: Endpoint) -> WireError:
    """An SSLError is a wrong certificate, a port or box that speaks another TLS, or merely a lost connection."""
    text = str(error)
    shown = re.search(r'got "?([0-9a-f]{64})', text.replace(":", ""))
    if "Fingerprints did not match" in text:
        return CertificateRefused(
            box.label,
            f"its certificate has SHA-256 {shown.group(1) if shown else 'something else'}",
            f"the pinned {box.certificate_sha256}",
            "if the certificate was renewed, compare on the box itself, then change winrm_certificate_sha256",
        )
    if "WRONG_VERSION_NUMBER" in text or "record layer failure" in text:
        return CertificateRefused(
            box.label,
            "this port does not speak TLS",
            "HTTPS",
            f"use the HTTPS port, or winrm_scheme=http with winrm_transport=ntlm (port {HTTP_PORT})",
        )
    causes = list(_causes(error))
    verified = [one for one in causes if isinstance(one, ssl.SSLCertVerificationError)]
    reason = re.search(r"certificate verify failed: ([^(\"']+)", text)
    if verified or reason or "doesn't match" in text:
        why = reason.group(1).strip() if reason else str(verified[-1] if verified else text)
        return CertificateRefused(box.label, f"its certificate is not trusted ({why})")
    lost = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, ConnectionError)
    if any(isinstance(one, lost) for one in causes) or _TLS_LOST.search(text):
        # In the handshake or in the middle of an answer: the exception does not tell.
        return ConnectionLost(box.label, "the TLS connection was cut off", delivered=True)
    return _handshake(_plain(causes[-1]), text, box)


def _handshake(detail: str, text: str, box: Endpoint) -> WireError:
    """The line for a TLS handshake that was refused by one of its sides."""
    if re.search(r"PEM|NO_CERTIFICATE_OR_CRL|KEY_VALUES_MISMATCH|NO_START_LINE", text):
        return TlsRefused(
            box.label,
            f"a certificate file on this machine cannot be used ({detail})",
            "PEM files that belong together",
            "check winrm_ca_file, winrm_client_certificate and winrm_client_key",
        )
    if box.transport == "certificate" and re.search("ALERT.*(CERTIFICATE|UNKNOWN_CA)", text, re.I):
        return TlsRefused(
            box.label,
            f"the box does not take the client certificate ({detail})",
            "a client certificate whose issuer the box trusts",
            "check winrm_client_certificate, and Cert:\\LocalMachine\\Root and ClientCertificate mappings on the box",
        )
    return TlsRefused(
        box.label,
        f"no TLS connection came about ({detail})",
        "TLS 1.2 or newer, with a cipher that both sides take",
        "check that the port is that of WinRM; enable TLS 1.2 on the box (Schannel, ciphers); look for a device"
        " between that ends TLS",
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that requests and urllib3 wrapped in it, outermost first.

    Not __context__: while a connection is tried again that is the failure before.
    """
    yield error
    for inner in (*error.args, getattr(error, "reason", None)):
        if isinstance(inner, BaseException):
            yield from _causes(inner)
            return


def untrusted(box: Endpoint, refused: CertificateRefused, shown_sha256: str | None) -> CertificateRefused:
    """The same refusal with the fingerprint that the box showed, if the certificate was the trouble."""
    if "not trusted" not in refused.found:
        return refused
    return CertificateRefused(
        box.label,
        refused.found + (f", its SHA-256 is {shown_sha256}" if shown_sha256 else ""),
        "one that winrm_ca_file vouches for, or that is pinned",
        "compare the SHA-256 on the box itself, then set winrm_certificate_sha256 to it",
    )


def _network(error: requests.exceptions.RequestException, box: Endpoint, when: Circumstances) -> WireError:
    cause = getattr(error.args[0], "reason", None) if error.args else None
    place = f"{box.host}:{box.port}"
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return Unreachable(
            box.label,
            f"no answer from {place} within {box.connect_timeout_s:g} s",
            "an open WinRM port",
            "is the box on, is its tailnet up, does its firewall let this port in?",
        )
    if isinstance(error, requests.exceptions.ProxyError):
        return Unreachable(box.label, f"the proxy failed: {cause or error}", "", "check winrm_proxy")
    if isinstance(cause, NameResolutionError):
        return Unreachable(
            box.label, f"the name {box.host} is unknown", "a name or address", "check winrm_host"
        )
    if isinstance(cause, NewConnectionError):
        detail = (
            "refused the connection" if "refused" in str(cause) else f"cannot be reached ({_plain(cause)})"
        )
        return Unreachable(
            box.label,
            f"{place} {detail}",
            "an open WinRM port",
            "check winrm_host and winrm_port; on the box: winrm enumerate winrm/config/listener",
        )
    if isinstance(error, requests.exceptions.ReadTimeout):
        if not when.entered:
            return Unreachable(
                box.label,
                f"{place} takes connections but does not answer",
                "an answer of the WinRM service",
                "check that the port is that of winrm_scheme; restart the WinRM service; look for a proxy",
            )
        return ConnectionLost(box.label, "no answer in time", delivered=True)
    return ConnectionLost(box.label, f"the connection broke ({_plain(cause or error)})", delivered=True)


def _plain(error: object) -> str:
    """An exception's text without the object addresses that urllib3 puts in."""
    text = re.sub(r"<[^>]*object at 0x[0-9a-f]+>:? ?", "", str(error))
    return re.sub(r"^\w*\(?'?|'?\)?$", "", text) or type(error).__name__
