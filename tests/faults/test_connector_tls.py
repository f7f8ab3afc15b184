"""A TLS handshake that fails: what is a lost connection is tried again, and never called a wrong certificate."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from typing import Any

import pytest
import requests
from loop_box import ADDRESS, LoopBox
from test_connector_connect import _pump, listener, refusal
from urllib3.exceptions import MaxRetryError
from urllib3.exceptions import SSLError as PoolSSLError

from winfleet.wire.endpoint import Endpoint
from winfleet.wire.errors import CertificateRefused, ConnectionLost, TlsRefused
from winfleet.wire.faults import Circumstances, translate

UNTRUSTED = {"winrm_certificate_sha256": None}


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("winfleet.wire.session.RECONNECT_PAUSES_S", (0.0, 0.01, 0.01))


def hang_up(connection: socket.socket) -> None:
    """End the connection after the first bytes of the handshake."""
    connection.recv(4096)
    connection.close()


def reset(connection: socket.socket) -> None:
    """The same, with a TCP reset."""
    connection.recv(64)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("cut", [hang_up, reset])
@pytest.mark.parametrize("trust", [{}, UNTRUSTED], ids=["pinned", "validated"])
def test_a_handshake_that_is_cut_off_is_no_wrong_certificate(
    box: LoopBox, cut: Any, trust: dict[str, Any]
) -> None:
    with listener(cut) as port:
        text = refusal(box.connector("https", winrm_port=port, **trust))
    assert "4 attempts to start failed" in text
    assert "not trusted" not in text
    assert "cut off" in text or "the connection broke" in text


@pytest.mark.parametrize("cut", [hang_up, reset])
def test_a_box_that_cuts_off_three_handshakes_is_entered_at_the_fourth(box: LoopBox, cut: Any) -> None:
    seen: list[int] = []

    def sometimes(connection: socket.socket) -> None:
        seen.append(1)
        if len(seen) <= 3:
            cut(connection)
            return
        target = socket.create_connection((ADDRESS, box.endpoint.https_port))
        for source, sink in ((connection, target), (target, connection)):
            threading.Thread(target=_pump, args=(source, sink), daemon=True).start()

    with listener(sometimes) as port:
        connector = box.connected("https", winrm_port=port)
        assert connector.run_shell_command("print on")[1].stdout == "on"
        connector.disconnect()
    assert len(seen) == 4


@pytest.mark.parametrize(("alert", "words"), [(40, "HANDSHAKE_FAILURE"), (70, "PROTOCOL_VERSION")])
def test_a_handshake_that_the_box_refuses_has_a_line_of_its_own(box: LoopBox, alert: int, words: str) -> None:
    seen: list[int] = []

    def refuse(connection: socket.socket) -> None:
        seen.append(1)
        connection.recv(4096)
        connection.sendall(bytes([0x15, 3, 3, 0, 2, 2, alert]))

    with listener(refuse) as port:
        text = refusal(box.connector("https", winrm_port=port))
    assert "no TLS connection came about" in text
    assert words in text.upper()
    assert "enable TLS 1.2 on the box" in text
    assert len(seen) == 1


def of(error: Exception) -> requests.exceptions.SSLError:
    """An error of the TLS library as it comes out of requests."""
    return requests.exceptions.SSLError(MaxRetryError(None, "/wsman", PoolSSLError(error)))  # type: ignore[arg-type]


MISMATCH = ssl.SSLCertVerificationError(1, "certificate is not valid for '127.0.0.2'")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (MISMATCH, CertificateRefused, "not valid for '127.0.0.2'"),
        (
            ssl.SSLError(1, "[SSL: X] certificate verify failed: Hostname mismatch, not 'a' (_ssl.c:1)"),
            CertificateRefused,
            "Hostname mismatch",
        ),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol (_ssl.c:1)"), ConnectionLost, "cut off"),
        (ssl.SSLZeroReturnError(6, "TLS/SSL connection has been closed (EOF)"), ConnectionLost, "cut off"),
        (ConnectionResetError(104, "Connection reset by peer"), ConnectionLost, "cut off"),
        (ssl.SSLError(1, "[SSL: UNSUPPORTED_PROTOCOL] unsupported protocol"), TlsRefused, "TLS 1.2"),
        (ssl.SSLError(9, "[SSL] PEM lib (_ssl.c:1)"), TlsRefused, "check winrm_ca_file"),
    ],
)
def test_each_fault_of_tls_is_told_apart(error: Exception, kind: type, words: str) -> None:
    told = translate(of(error), Endpoint("gpu01", "127.0.0.1"), Circumstances(False, False))
    assert type(told) is kind
    assert words in str(told)


def test_a_refused_client_certificate_is_named() -> None:
    error = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required")
    told = translate(
        of(error), Endpoint("gpu01", "127.0.0.1", transport="certificate"), Circumstances(False, True)
    )
    assert "does not take the client certificate" in str(told)
