"""A download mirror for the simulated boxes: small files at the addresses where a model hub has the large
ones.
"""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ARTIFACT_PATH = (
    "/neroued/Qwen3.8-27B-NInfer/resolve/3526913004b1cf552cb57b88d6a5c6f5e4a89a70/qwen3_8_27b.ninfer"
)
ARTIFACT_BYTES = 4 << 20


@dataclass(frozen=True)
class Artifact:
    """A file of the mirror: url, size_bytes, sha256 (lower-case hex), magic_hex of its first 8 bytes."""

    url: str
    size_bytes: int
    sha256: str
    magic_hex: str

    def as_dict(self) -> dict[str, Any]:
        """For fleet.json."""
        return asdict(self)


def artifact_bytes(container_version: int = 2) -> bytes:
    """A container as NInfer reads it: the magic, then bytes that compress badly and are always the same."""
    body = bytearray(b"NINFER\0" + bytes([container_version]))
    block = hashlib.sha256(b"qwen3.8-27b").digest()
    while len(body) < ARTIFACT_BYTES:
        block = hashlib.sha256(block).digest()
        body += block
    return bytes(body[:ARTIFACT_BYTES])


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        self._answer(True)

    def _answer(self, body: bool) -> None:
        path = (self.root / self.path.partition("?")[0].lstrip("/")).resolve()
        if not path.is_file() or not path.is_relative_to(self.root.resolve()):
            self.send_error(404)
            return
        size = path.stat().st_size
        start, end = 0, size
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked:
            start, end = int(asked[1]), min(size, int(asked[2]) + 1 if asked[2] else size)
            if start >= size:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
        self.send_response(206 if asked else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - start))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.end_headers()
        if body:
            with path.open("rb") as file:
                file.seek(start)
                self.wfile.write(file.read(end - start))

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the boxes' own event logs tell what matters."""


class Mirror:
    """Serves the folder over HTTP.

    Args:
        directory: made and filled when empty. address: loopback address. port: 0 takes a free one; a fixed
        one keeps the
            declared URL the same from one start to the next.
    """

    def __init__(self, directory: Path, address: str, port: int = 8000) -> None:
        file = directory / ARTIFACT_PATH.lstrip("/")
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(artifact_bytes())
        handler = type("Handler", (_Handler,), {"root": directory})
        self._server = http.server.ThreadingHTTPServer((address, port), handler)
        self.port: int = self._server.server_address[1]
        content = file.read_bytes()
        self.artifact = Artifact(
            f"http://{address}:{self.port}{ARTIFACT_PATH}",
            len(content),
            hashlib.sha256(content).hexdigest(),
            content[:8].hex(),
        )
        self._thread = threading.Thread(target=self._server.serve_forever, name="mirror", daemon=True)

    def start(self) -> None:
        """Serve on a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
