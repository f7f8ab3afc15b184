"""HTTP from the box: real connections, no proxy, loopback addresses of the box mapped to its own address."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

from simbox.engines.python.answers import Call, Command, bad_request
from simbox.files.boxfiles import BoxFiles

DEFAULT_BODY_BYTES = 1 << 20


def _own_names(call: Call) -> set[str]:
    """Names and addresses under which a box reaches itself."""
    names = {"localhost", "127.0.0.1", "::1", call.box.address}
    names.add(str(call.box.store.get("system", "computer_name")).lower())
    for row in call.box.windows.network.connections():
        names.update(str(address).lower() for address in row["Addresses"])
    return names


def _bearer(call: Call) -> str | None:
    path = call.text("BearerFile")
    if not path:
        return None
    with BoxFiles(call.box).reading(path) as file:
        return str(file.read().decode("utf-8-sig")).strip()


def _failed(kind: str, message: str, began: float) -> dict[str, Any]:
    return {
        "StatusCode": None,
        "Headers": {},
        "Body": None,
        "BodyTruncated": False,
        "ElapsedMs": int((time.monotonic() - began) * 1000),
        "ErrorKind": kind,
        "ErrorMessage": message,
    }


def _connection(call: Call, url: str, timeout_s: float) -> tuple[http.client.HTTPConnection, str]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host:
        raise bad_request(f"'{url}' is no http or https address")
    target = call.box.address if host.lower() in _own_names(call) else host
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if parts.scheme == "https":
        secure = http.client.HTTPSConnection(
            target, parts.port or 443, timeout=timeout_s, context=ssl.create_default_context()
        )
        return secure, path
    return http.client.HTTPConnection(target, parts.port or 80, timeout=timeout_s), path


def _exchange(call: Call, method: str, body: bytes | None) -> dict[str, Any]:
    url = call.text("Url")
    timeout_s = float(call.get("TimeoutSeconds", 0) or 10)
    limit = int(call.get("MaxBodyBytes", 0) or DEFAULT_BODY_BYTES)
    headers = {"Host": urlsplit(url).netloc, "Accept-Encoding": "identity"}
    token = _bearer(call)
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        headers["Content-Type"] = call.text("ContentType") or "application/json"
        headers["Content-Length"] = str(len(body))
    connection, path = _connection(call, url, timeout_s)
    began = time.monotonic()
    with contextlib.closing(connection):
        try:
            connection.connect()
        except ConnectionRefusedError:
            return _failed(
                "refused",
                "No connection could be made because the target machine actively refused it.",
                began,
            )
        except TimeoutError:
            return _failed("timeout", f"No connection within {timeout_s:g} s.", began)
        except socket.gaierror:
            return _failed("dns", f"The remote name could not be resolved: '{urlsplit(url).hostname}'", began)
        except ssl.SSLError as error:
            return _failed("tls", f"The SSL connection could not be established: {error.reason}", began)
        except OSError as error:
            return _failed("other", str(error), began)
        try:
            _stay_within(connection, began, timeout_s)
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            data = bytearray()
            while len(data) <= limit:
                _stay_within(connection, began, timeout_s)
                piece = answer.read1(min(65536, limit + 1 - len(data)))
                if not piece:
                    break
                data += piece
        except TimeoutError:
            return _failed("timeout", f"No answer within {timeout_s:g} s.", began)
        except (OSError, http.client.HTTPException) as error:
            return _failed("other", f"The connection was closed: {error}", began)
    return {
        "StatusCode": answer.status,
        "Headers": dict(answer.headers.items()),
        "Body": bytes(data[:limit]).decode("utf-8", "replace"),
        "BodyTruncated": len(data) > limit,
        "ElapsedMs": int((time.monotonic() - began) * 1000),
        "ErrorKind": None,
        "ErrorMessage": None,
    }


def _stay_within(connection: http.client.HTTPConnection, began: float, timeout_s: float) -> None:
    left = timeout_s - (time.monotonic() - began)
    if left <= 0:
        raise TimeoutError
    if connection.sock is not None:
        connection.sock.settimeout(left)


def get(call: Call) -> dict[str, Any]:
    """Get-BoxHttp."""
    return _exchange(call, "GET", None)


def invoke(call: Call) -> dict[str, Any]:
    """Invoke-BoxHttp."""
    body = call.get("Body")
    method = (call.text("Method") or ("POST" if body is not None else "GET")).upper()
    return _exchange(call, method, None if body is None else str(body).encode())


COMMANDS: dict[str, Command] = {"get-boxhttp": get, "invoke-boxhttp": invoke}
