"""What a user sees when a box cannot be entered: one line each, that box only, never the password."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from loop_box import ADDRESS, PASSWORD, LoopBox
from pyinfra.api.exceptions import ConnectError

from winfleet.connectors.winrm import WinRMConnector


def refusal(connector: WinRMConnector) -> str:
    """The one line of a failed connect."""
    with pytest.raises(ConnectError) as raised:
        connector.connect()
    text = str(raised.value.args[0])
    assert "\n" not in text
    assert PASSWORD not in text
    assert "mend: " in text or "set it" in text
    return text


@contextmanager
def listener(serve: Any) -> Iterator[int]:
    """A port on loopback whose connections are handed to serve; the port number."""
    with socket.create_server((ADDRESS, 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                kept.append(connection)
                serve(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for connection in kept:
                connection.close()
            thread.join(5)


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_wrong_password(box: LoopBox, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOP_BOX_PASSWORD", "not the example")
    text = refusal(box.connector(scheme))
    assert "user 'operator' or its password was not accepted" in text
    assert "not the example" not in text
    assert box.count("handshake", ok=True) == 0


def test_unknown_name(box: LoopBox) -> None:
    assert "the name box.invalid is unknown" in refusal(box.connector(winrm_host="box.invalid"))


def test_refused_port(box: LoopBox) -> None:
    with socket.create_server((ADDRESS, 0)) as server:
        port = server.getsockname()[1]
    assert f"{ADDRESS}:{port} refused the connection" in refusal(box.connector(winrm_port=port))


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_a_host_that_accepts_and_stays_silent(box: LoopBox, scheme: str) -> None:
    """R22: an error within the connect timeout."""
    with listener(lambda connection: None) as port:
        text = refusal(box.connector(scheme, winrm_port=port, winrm_connect_timeout_s="0.5"))
    assert "does not answer" in text or "no answer" in text


def test_a_host_that_hangs_up(box: LoopBox) -> None:
    with listener(lambda connection: connection.close()) as port, pytest.raises(ConnectError) as raised:
        box.connector("http", winrm_port=port).connect()
    assert "connection broke" in str(raised.value)


def test_a_web_server_that_is_not_winrm(box: LoopBox) -> None:
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

    def serve(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(answer)

    with listener(serve) as port:
        assert "HTTP status 404" in refusal(box.connector("http", winrm_port=port))


def test_tls_to_a_port_without_tls(box: LoopBox) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with listener(serve) as port:
        assert "does not speak TLS" in refusal(box.connector("https", winrm_port=port))


def test_a_pin_that_does_not_match_sends_nothing(box: LoopBox) -> None:
    text = refusal(box.connector(winrm_certificate_sha256="ab" * 32))
    assert f"its certificate has SHA-256 {box.endpoint.certificate.sha256}" in text
    assert f"the pinned {'ab' * 32}" in text
    assert box.events.counts("http_request") == 0


def test_an_untrusted_certificate_shows_what_to_pin(box: LoopBox) -> None:
    text = refusal(box.connector(winrm_certificate_sha256=None))
    assert "its certificate is not trusted" in text
    assert box.endpoint.certificate.sha256 in text
    assert box.events.counts("http_request") == 0


def test_a_sha1_thumbprint_is_not_a_pin(box: LoopBox) -> None:
    assert "SHA-1 thumbprint" in refusal(box.connector(winrm_certificate_sha256="AB:" * 19 + "AB"))


def test_a_pin_may_be_written_with_colons_and_capitals(box: LoopBox) -> None:
    pin = box.endpoint.certificate.sha256.upper()
    box.connected(winrm_certificate_sha256=":".join(pin[at : at + 2] for at in range(0, 64, 2)))


def test_basic_over_plain_http_is_refused_before_anything_is_sent(box: LoopBox) -> None:
    """R53"""
    text = refusal(box.connector("http", winrm_transport="basic"))
    assert "Basic over plain HTTP" in text
    assert box.events.counts("connection") == 0


def test_basic_over_plain_http_when_it_is_asked_for(box: LoopBox) -> None:
    box.endpoint.limits.basic = box.endpoint.limits.allow_unencrypted = True
    connector = box.connected("http", winrm_transport="basic", winrm_insecure_basic=True)
    assert connector.run_shell_command("print on")[1].stdout == "on"


def test_basic_over_https(box: LoopBox) -> None:
    box.endpoint.limits.basic = True
    assert box.connected(winrm_transport="basic").run_shell_command("print on")[1].stdout == "on"


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_a_scheme_that_the_box_does_not_offer(box: LoopBox, scheme: str) -> None:
    box.endpoint.limits.schemes = ()
    box.endpoint.limits.basic = box.endpoint.limits.allow_unencrypted = True
    assert "the box offers basic; wanted: ntlm" in refusal(box.connector(scheme))


def test_strict_channel_binding_passes(box: LoopBox) -> None:
    """R51"""
    box.endpoint.limits.cbt_strict = True
    assert box.connected().run_shell_command("print on")[1].stdout == "on"


def test_channel_binding_that_is_cut_off_fails_clearly(box: LoopBox, monkeypatch: pytest.MonkeyPatch) -> None:
    """R51: as through a device that ends TLS."""
    from winfleet.wire.endpoint import Endpoint

    box.endpoint.limits.cbt_strict = True
    real = Endpoint.__init__

    def without_binding(self: Any, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs, send_channel_binding=False)

    monkeypatch.setattr(Endpoint, "__init__", without_binding)
    assert "channel binding" in refusal(box.connector())


def test_bodies_over_http_are_always_sealed(box: LoopBox) -> None:
    """A handshake that broke half-way must not lead to a body in clear: the box would refuse it with 500."""
    box.connected("http")
    box.arm("drop")
    box.connected("http")
    assert box.count("http_request", reason="unencrypted body refused") == 0


def test_missing_user_and_password(box: LoopBox) -> None:
    assert "winrm_user is not set" in refusal(box.connector(winrm_user=None))
    assert "winrm_password is not set" in refusal(box.connector(winrm_password=None))


def test_a_password_in_clear_in_the_inventory_is_refused_and_not_shown(box: LoopBox) -> None:
    with pytest.raises(ConnectError) as raised:
        box.connector(winrm_password="plain-example").connect()
    assert "found a literal text" in str(raised.value)
    assert "plain-example" not in str(raised.value)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("winrm_scheme", "ftp"),
        ("winrm_scheme", 5),
        ("winrm_transport", "magic"),
        ("winrm_mode", "x"),
        ("winrm_mode", ["percommand"]),
        ("winrm_host", 17),
        ("winrm_host", "https://box"),
        ("winrm_host", "box:5986"),
        ("winrm_user", True),
        ("winrm_port", "abc"),
        ("winrm_port", True),
        ("winrm_port", 0),
        ("winrm_port", 65536),
        ("winrm_port", "5986.5"),
        ("winrm_port", -1),
        ("winrm_timeout_s", "ten minutes"),
        ("winrm_start_timeout_s", {"seconds": 5}),
        ("winrm_connect_timeout_s", 0),
        ("winrm_operation_timeout_s", 90),
        ("winrm_shell_max_age_s", 10**12),
        ("winrm_certificate_sha256", 12345),
        ("winrm_ca_file", False),
        ("winrm_validate", "maybe"),
        ("winrm_insecure_basic", 1),
    ],
)
def test_settings_that_make_no_sense_fail_the_box_on_connecting(
    box: LoopBox, setting: str, value: object
) -> None:
    told = refusal(box.connector(**{setting: value}))
    assert told.startswith("box")
    assert f"{setting} is {value!r}" in told
    assert "wanted: " in told
    assert box.events.counts("connection") == 0


def test_a_misspelt_setting_is_named(box: LoopBox) -> None:
    told = refusal(box.connector(winrm_certificate_sha265="ab" * 32))
    assert (
        "winrm_certificate_sha265 is no setting of @winrm; wanted: winrm_certificate_sha256, probably" in told
    )
    assert box.events.counts("connection") == 0


@pytest.mark.parametrize(("value", "allowed"), [("false", False), ("FALSE", False), ("true", True)])
def test_a_switch_in_words_means_what_it_says(box: LoopBox, value: str, allowed: bool) -> None:
    connector = box.connector("http", winrm_transport="basic", winrm_insecure_basic=value)
    if not allowed:
        assert "Basic over plain HTTP" in refusal(connector)
        return
    box.endpoint.limits.basic = box.endpoint.limits.allow_unencrypted = True
    connector.connect()


def test_a_password_of_another_type_is_not_shown(box: LoopBox) -> None:
    told = refusal(box.connector(winrm_password=8_141_592))
    assert "winrm_password is no text" in told
    assert "8141592" not in told


def test_the_box_without_powershell(box: LoopBox) -> None:
    box.arm("kill_process", on="Send")
    with pytest.raises(ConnectError, match=r"before it was loaded|has ended"):
        box.connected()


def test_ipv6_addresses_get_brackets() -> None:
    """R54"""
    from winfleet.wire.endpoint import Endpoint

    assert Endpoint("a", "::1").url == "https://[::1]:5986/wsman"
    assert Endpoint("a", "[fd7a::1]").url == "https://[fd7a::1]:5986/wsman"


TRUST = ("validate", "ca", "pin", "ignore")


@pytest.mark.parametrize("trust", TRUST)
@pytest.mark.parametrize("environment", ["none", "bundle that trusts it", "bundle that trusts nothing"])
def test_the_environment_changes_nothing_about_trust(
    box: LoopBox, trust: str, environment: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """R50: REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE neither widen nor narrow what is trusted."""
    own = str(box.endpoint.certificate.certificate_file)
    if environment != "none":
        foreign = tmp_path / "foreign.pem"
        foreign.write_text(_foreign_authority())
        bundle = own if environment == "bundle that trusts it" else str(foreign)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", bundle)
        monkeypatch.setenv("CURL_CA_BUNDLE", bundle)
    settings: dict[str, dict[str, Any]] = {
        "validate": {"winrm_certificate_sha256": None},
        "ca": {"winrm_certificate_sha256": None, "winrm_ca_file": own},
        "pin": {},
        "ignore": {"winrm_certificate_sha256": None, "winrm_validate": False},
    }
    connector = box.connector("https", **settings[trust])
    if trust == "validate":
        assert "not trusted" in refusal(connector)
        assert box.events.counts("http_request") == 0
    else:
        connector.connect()
        assert connector.run_shell_command("print on")[1].stdout == "on"


def _foreign_authority() -> str:
    import certifi

    text = Path(certifi.where()).read_text()
    return text[text.index("-----BEGIN") : text.index("-----END CERTIFICATE-----") + 26]


def test_another_authority_is_refused(box: LoopBox, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.pem"
    foreign.write_text(_foreign_authority())
    text = refusal(box.connector(winrm_certificate_sha256=None, winrm_ca_file=str(foreign)))
    assert "not trusted" in text


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_the_proxies_of_the_environment_are_not_used(
    box: LoopBox, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R49"""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert box.connected(scheme).run_shell_command("print on")[1].stdout == "on"


def test_a_proxy_that_is_configured_is_used(box: LoopBox) -> None:
    with socket.create_server((ADDRESS, 0)) as server:
        port = server.getsockname()[1]
    assert "proxy" in refusal(box.connector(winrm_proxy=f"http://{ADDRESS}:{port}"))


def test_a_wrong_pin_is_refused_through_a_proxy_too(box: LoopBox) -> None:
    connects: list[bytes] = []

    def forward(connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(4096)
        connects.append(request)
        host, port = request.split()[1].decode().split(":")
        target = socket.create_connection((host, int(port)))
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for source, sink in ((connection, target), (target, connection)):
            threading.Thread(target=_pump, args=(source, sink), daemon=True).start()

    with listener(forward) as port:
        wrong = {"winrm_certificate_sha256": "ab" * 32, "winrm_proxy": f"http://{ADDRESS}:{port}"}
        text = refusal(box.connector("https", **wrong))
    assert connects
    assert connects[0].startswith(b"CONNECT ")
    assert "certificate" in text


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
