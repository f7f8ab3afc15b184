"""HTTP from the box to a server on its own address, on every engine."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from powershell import BoxFault, EngineBox


class Handler(BaseHTTPRequestHandler):
    """Answers what a probe may meet."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.server.closing.wait(30)  # type: ignore[attr-defined]
            return
        if self.path == "/drip":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while not self.server.closing.wait(0.2):  # type: ignore[attr-defined]
                    self.wfile.write(b".")
            return
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/text")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path == "/key":
            self.answer(200 if self.headers["Authorization"] == "Bearer example-key" else 401, b"{}")
            return
        self.answer(404 if self.path == "/none" else 200, "\u4e2d\u6587".encode(), "text/plain")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, self.headers["Content-Type"].encode() + b" " + body)

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Not on the test's output."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, Handler)
        self.closing = threading.Event()


@pytest.fixture
def url(box: EngineBox) -> Iterator[str]:
    """A server that listens on the box's address, as the box itself calls it."""
    with Server((box.box.address, 0)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.closing.set()
        server.shutdown()


def test_an_answer_has_its_status_headers_and_text(box: EngineBox, url: str) -> None:
    found = box.call("Get-BoxHttp", Url=f"{url}/text", TimeoutSeconds=10)
    assert (found["StatusCode"], found["Body"], found["ErrorKind"]) == (200, "\u4e2d\u6587", None)
    assert found["Headers"]["Content-Type"] == "text/plain"
    assert found["BodyTruncated"] is False


def test_an_error_status_is_an_answer(box: EngineBox, url: str) -> None:
    found = box.call("Get-BoxHttp", Url=f"{url}/none", TimeoutSeconds=10)
    assert (found["StatusCode"], found["Body"], found["ErrorKind"]) == (404, "\u4e2d\u6587", None)


def test_a_redirect_is_not_followed(box: EngineBox, url: str) -> None:
    assert box.call("Get-BoxHttp", Url=f"{url}/moved", TimeoutSeconds=10)["StatusCode"] == 302


def test_the_key_comes_from_a_file_of_the_box(box: EngineBox, url: str) -> None:
    box.host("C:\\probe").mkdir(exist_ok=True)
    box.host("C:\\probe\\key.txt").write_bytes(b"  example-key\r\n")
    assert box.call("Get-BoxHttp", Url=f"{url}/key", TimeoutSeconds=10)["StatusCode"] == 401
    found = box.call("Get-BoxHttp", Url=f"{url}/key", TimeoutSeconds=10, BearerFile="C:\\probe\\key.txt")
    assert found["StatusCode"] == 200
    with pytest.raises(BoxFault):
        box.call("Get-BoxHttp", Url=f"{url}/key", BearerFile="C:\\probe\\none.txt")


def test_a_long_body_is_cut(box: EngineBox, url: str) -> None:
    found = box.call("Get-BoxHttp", Url=f"{url}/text", TimeoutSeconds=10, MaxBodyBytes=3)
    assert (found["Body"], found["BodyTruncated"]) == ("\u4e2d", True)


def test_a_body_is_posted_as_utf8(box: EngineBox, url: str) -> None:
    found = box.call(
        "Invoke-BoxHttp", Url=f"{url}/x", Method="POST", Body='{"a": "\u4e2d"}', TimeoutSeconds=10
    )
    assert found["Body"] == 'application/json {"a": "\u4e2d"}'


@pytest.mark.parametrize("path", ["/slow", "/drip"])
def test_an_answer_that_does_not_end_is_a_timeout(box: EngineBox, url: str, path: str) -> None:
    found = box.call("Get-BoxHttp", Url=url + path, TimeoutSeconds=1)
    assert (found["StatusCode"], found["ErrorKind"]) == (None, "timeout")


def test_a_closed_port_is_refused(box: EngineBox) -> None:
    with socket.create_server((box.box.address, 0)) as listener:
        port = listener.getsockname()[1]
    found = box.call("Get-BoxHttp", Url=f"http://127.0.0.1:{port}/", TimeoutSeconds=5)
    assert (found["StatusCode"], found["ErrorKind"]) == (None, "refused")
    assert found["ErrorMessage"]


def test_a_name_that_there_is_not(box: EngineBox) -> None:
    found = box.call("Get-BoxHttp", Url="http://no-such-host.invalid/", TimeoutSeconds=5)
    assert found["ErrorKind"] == "dns"


def test_no_tls_on_the_other_side(box: EngineBox, url: str) -> None:
    found = box.call("Get-BoxHttp", Url=url.replace("http:", "https:"), TimeoutSeconds=5)
    assert found["ErrorKind"] == "tls"


def test_the_proxy_of_the_environment_is_not_used(box: EngineBox, url: str) -> None:
    """Nothing listens on that proxy: a probe that used it would fail."""
    proxied = box.engine.start(
        "powershell.exe -NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command -",
        {"HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1"},
        None,
        False,
    )
    from powershell import Loop

    loop = Loop(proxied)
    try:
        loop.open()
        assert loop.call("Get-BoxHttp", Url=f"{url}/text", TimeoutSeconds=10)["StatusCode"] == 200
    finally:
        loop.close()


def test_only_http_is_asked(box: EngineBox) -> None:
    with pytest.raises(BoxFault) as fault:
        box.call("Get-BoxHttp", Url="file:///C:/Windows/win.ini")
    assert fault.value.type == "BadRequest"
