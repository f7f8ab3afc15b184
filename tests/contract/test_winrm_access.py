"""Who may speak to a simulated box and how: accounts, schemes, sealing, TLS, HTTP itself."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from winrm.exceptions import (
    InvalidCredentialsError,
    WinRMTransportError,
)
from winrm_box import ADDRESS, PASSWORD, USER, events_of, protocol, running_box, url

from simbox.winrm import Certificate, Credential, Limits, WinRMEndpoint


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
def box(tmp_path: Path, limits: Limits) -> Iterator[WinRMEndpoint]:
    with running_box(tmp_path, limits) as endpoint:
        yield endpoint


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("user", "password"), [(USER, "wrong"), ("nobody", PASSWORD)])
def test_wrong_password_or_user_is_401(box: WinRMEndpoint, scheme: str, user: str, password: str) -> None:
    with pytest.raises(InvalidCredentialsError):
        protocol(box, scheme, username=user, password=password).open_shell()
    assert [event["ok"] for event in events_of(box).events("handshake")] == [False]
    assert PASSWORD not in events_of(box).path.read_text()


@pytest.mark.parametrize("user", [USER.upper(), f"GPU01\\{USER}", f".\\{USER}"])
def test_spellings_of_a_local_account(box: WinRMEndpoint, user: str) -> None:
    client = protocol(box, username=user)
    client.close_shell(client.open_shell())
    assert events_of(box).counts("shell_created") == 1


def test_boxes_of_one_process_keep_their_accounts_apart(tmp_path: Path) -> None:
    first_account, second_account = Credential("admin", "example-1"), Credential("admin", "example-2")
    with (
        running_box(tmp_path / "1", credentials=[first_account]) as first,
        running_box(tmp_path / "2", credentials=[second_account]) as second,
    ):
        for box, good, bad in ((first, "example-1", "example-2"), (second, "example-2", "example-1")):
            client = protocol(box, username="admin", password=good)
            client.close_shell(client.open_shell())
            with pytest.raises(InvalidCredentialsError):
                protocol(box, username="admin", password=bad).open_shell()
    assert "NTLM_USER_FILE" not in os.environ


def test_basic_is_off_by_default(box: WinRMEndpoint) -> None:
    with pytest.raises(InvalidCredentialsError):
        protocol(box, "https", transport="basic").open_shell()
    assert box.shells() == []


def test_basic_over_http_needs_both_switches(box: WinRMEndpoint, limits: Limits) -> None:
    limits.basic = True
    with pytest.raises(InvalidCredentialsError):
        protocol(box, "http", transport="basic").open_shell()
    client = protocol(box, "https", transport="basic")
    client.close_shell(client.open_shell())
    with pytest.raises(InvalidCredentialsError):
        protocol(box, "https", transport="basic", password="wrong").open_shell()
    limits.allow_unencrypted = True
    client = protocol(box, "http", transport="basic")
    client.close_shell(client.open_shell())


def test_unsealed_body_over_http_is_refused(box: WinRMEndpoint, limits: Limits) -> None:
    with pytest.raises(WinRMTransportError) as caught:
        protocol(box, "http", message_encryption="never").open_shell()
    assert caught.value.code == 500
    limits.allow_unencrypted = True
    client = protocol(box, "http", message_encryption="never")
    client.close_shell(client.open_shell())


def test_strict_channel_binding(box: WinRMEndpoint, limits: Limits) -> None:
    limits.cbt_strict = True
    client = protocol(box, "https", send_cbt=True)
    client.close_shell(client.open_shell())
    with pytest.raises(InvalidCredentialsError):
        protocol(box, "https", send_cbt=False).open_shell()
    limits.cbt_strict = False
    client = protocol(box, "https", send_cbt=False)
    client.close_shell(client.open_shell())


def test_certificate_is_for_the_box_and_can_be_validated_and_pinned(box: WinRMEndpoint) -> None:
    path = str(box.certificate.certificate_file)
    client = protocol(box, "https", server_cert_validation="validate", ca_trust_path=path)
    client.close_shell(client.open_shell())
    context = ssl.create_default_context(cafile=path)
    with (
        socket.create_connection((ADDRESS, box.https_port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        seen = secured.getpeercert(binary_form=True)
    assert seen is not None
    assert hashlib.sha256(seen).hexdigest() == box.certificate.sha256
    with (
        socket.create_connection((ADDRESS, box.https_port)) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        context.wrap_socket(plain, server_hostname="other.example")


def test_certificate_is_kept_until_the_box_is_renamed(tmp_path: Path) -> None:
    first = Certificate.load_or_create(tmp_path, "gpu01", "127.0.77.1")
    assert Certificate.load_or_create(tmp_path, "gpu01", "127.0.77.1") == first
    assert Certificate.load_or_create(tmp_path, "gpu02", "127.0.77.1").sha256 != first.sha256
    assert first.key_file.stat().st_mode & 0o077 == 0


def test_plain_http(box: WinRMEndpoint) -> None:
    with requests.Session() as session:
        session.trust_env = False
        answer = session.post(url(box, "http"), data=b"")
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Negotiate"
        assert session.get(url(box, "http")).status_code == 405
        assert session.post(url(box, "http").replace("wsman", "other")).status_code == 404
        chunked = session.post(url(box, "http"), data=iter([b"one", b"two"]))
        assert chunked.status_code == 401
    assert events_of(box).counts("connection") == 1


@pytest.mark.parametrize(
    "token", ["Negotiate !!!", "Negotiate AAAA", "Negotiate TlRMTVNTUAADAAAA", "Basic x"]
)
def test_malformed_tokens_are_refused(box: WinRMEndpoint, token: str) -> None:
    answer = requests.post(url(box, "http"), data=b"", headers={"Authorization": token}, proxies={"http": ""})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "data",
    [b"nonsense\r\n\r\n", b"POST /wsman HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"\x16\x03\x01\r\n\r\n"],
)
def test_what_is_no_http_gets_400(box: WinRMEndpoint, data: bytes) -> None:
    with socket.create_connection((ADDRESS, box.http_port), timeout=10) as sock:
        sock.sendall(data)
        assert sock.recv(100).startswith(b"HTTP/1.1 400 ")


def test_curl_style_expectation_is_answered(box: WinRMEndpoint) -> None:
    with socket.create_connection((ADDRESS, box.http_port), timeout=10) as sock:
        sock.sendall(b"POST /wsman HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"abc")
        assert sock.recv(1000).startswith(b"HTTP/1.1 401 ")
