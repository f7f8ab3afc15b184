"""curl.exe: real downloads over HTTP, with resume, retries and the exit codes that scripts look at."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request

from simbox.programs.invocation import Invocation

_WITH_VALUE = {
    "-o": "output",
    "--output": "output",
    "-C": "continue",
    "--continue-at": "continue",
    "--retry": "retry",
    "--retry-delay": "ignored",
    "--retry-max-time": "ignored",
    "--connect-timeout": "connect",
    "-m": "limit",
    "--max-time": "limit",
    "-H": "header",
    "--header": "header",
    "-A": "agent",
    "--user-agent": "agent",
    "--noproxy": "ignored",
    "--speed-limit": "ignored",
    "--speed-time": "ignored",
    "-Y": "ignored",
    "-y": "ignored",
    "-w": "write",
    "--write-out": "write",
    "--url": "url",
    "--limit-rate": "ignored",
    "--max-filesize": "ignored",
    "--proto": "ignored",
    "--proto-redir": "ignored",
}
_SWITCHES = {
    "-f": "fail",
    "--fail": "fail",
    "-L": "location",
    "--location": "location",
    "-s": "silent",
    "--silent": "silent",
    "-S": "show",
    "--show-error": "show",
    "--retry-all-errors": "",
    "--ssl-no-revoke": "",
    "--create-dirs": "dirs",
    "-O": "remote_name",
    "-#": "",
    "--progress-bar": "",
    "-k": "",
    "--compressed": "",
    "--retry-connrefused": "",
    "-q": "",
    "--disable": "",
    "--no-progress-meter": "silent",
    "--ssl-revoke-best-effort": "",
    "--fail-with-body": "fail",
    "--remove-on-error": "",
}
_CHUNK_BYTES = 1 << 20


def run(invocation: Invocation) -> int:
    """Exit codes of curl: 2 usage, 6 no such host, 7 refused, 18 less than announced, 22 HTTP error with -f,
    23 cannot write, 28 timeout, 33 range not served, 56 broken off."""
    options: dict[str, str] = {}
    headers: dict[str, str] = {}
    rest = _expanded(invocation.arguments)
    if "--version" in rest or "-V" in rest:
        invocation.out(
            f"curl {invocation.box.profile.get('toolchain', 'curl')} (Windows) libcurl Schannel zlib"
        )
        invocation.out("Protocols: dict file ftp ftps http https")
        return 0
    while rest:
        text = rest.pop(0)
        if text in _WITH_VALUE:
            value = rest.pop(0) if rest else ""
            if _WITH_VALUE[text] == "header":
                name, _, content = value.partition(":")
                headers[name.strip()] = content.strip()
            options[_WITH_VALUE[text]] = value
        elif text in _SWITCHES:
            options[_SWITCHES[text]] = "on"
        elif text.startswith("-"):
            invocation.err(f"curl: option {text}: is unknown")
            return 2
        else:
            options["url"] = text
    if "url" not in options:
        invocation.err("curl: (2) no URL specified")
        return 2
    code = 0
    for _ in range(int(options.get("retry", "0")) + 1):
        code = _get(invocation, options, headers)
        if code not in (7, 18, 28, 56) or invocation.stopping.is_set():
            break
        options.setdefault("continue", "-" if "continue" in options else "0")
    return code


def _expanded(arguments: list[str]) -> list[str]:
    """Short switches may be written together: -fsSL is -f -s -S -L; a value may follow in the same word."""
    result = []
    for text in arguments:
        if text[:1] == "-" and text[1:2] not in ("-", "") and len(text) > 2 and text not in _SWITCHES:
            letters = text[1:]
            while letters:
                flag, letters = "-" + letters[0], letters[1:]
                result.append(flag)
                if flag in _WITH_VALUE and letters:
                    result.append(letters)
                    break
        elif text.startswith("--") and "=" in text:
            result += text.split("=", 1)
        else:
            result.append(text)
    return result


def _get(invocation: Invocation, options: dict[str, str], headers: dict[str, str]) -> int:
    url = options["url"]
    if invocation.box.store.get("faults", "no_internet"):
        return _fail(invocation, options, 6, f"Could not resolve host: {urllib.parse.urlsplit(url).hostname}")
    path = None
    if "output" in options or "remote_name" in options:
        name = options.get("output") or urllib.parse.urlsplit(url).path.rpartition("/")[2]
        path = invocation.box.filesystem.host(name, invocation.cwd)
        if "dirs" in options:
            path.parent.mkdir(parents=True, exist_ok=True)
    start = 0
    if path is not None and options.get("continue") not in (None, "0"):
        start = (
            (path.stat().st_size if path.exists() else 0)
            if options["continue"] == "-"
            else int(options["continue"])
        )
    request = urllib.request.Request(url, headers=headers | ({"Range": f"bytes={start}-"} if start else {}))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(
            request, timeout=float(options.get("connect", options.get("limit", "60")))
        ) as response:
            if start and response.status != 206:
                if response.length == start:  # "The entire document is already downloaded"
                    return 0
                return _fail(
                    invocation,
                    options,
                    33,
                    "HTTP server does not seem to support byte ranges. Cannot resume.",
                )
            return _receive(invocation, options, response, path, start)
    except urllib.error.HTTPError as error:
        if error.code == 416 and start and _forgives(invocation, "Content-Range" in error.headers):
            return 0
        if "fail" in options:
            return _fail(invocation, options, 22, f"The requested URL returned error: {error.code}")
        if not (error.code == 416 and start):
            invocation.stdout(error.read())
        return 0
    except urllib.error.URLError as error:
        reason = error.reason
        if isinstance(reason, TimeoutError):
            return _fail(invocation, options, 28, "Connection timed out")
        if isinstance(reason, ConnectionRefusedError):
            return _fail(
                invocation, options, 7, f"Failed to connect to {request.host}: Could not connect to server"
            )
        return _fail(invocation, options, 6, f"Could not resolve host: {request.host}")
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        return _fail(invocation, options, 56, f"Recv failure: {error}")
    except (FileNotFoundError, PermissionError) as error:
        return _fail(invocation, options, 23, f"Failure writing output to destination: {error.strerror}")


def _forgives(invocation: Invocation, sized: bool) -> bool:
    """Whether this curl takes "nothing beyond that offset" (416) for a resumed download that is whole.

    With --fail none did before 7.76 (curl/curl#6753), and until 8.5 none for an answer with Content-Range
    (curl/curl#12176), as nginx and most others send it: exit code 22. The file's size is never compared.
    """
    text = str(invocation.box.profile.get("toolchain", "curl"))
    version = tuple(int(part) for part in text.split(".")[:2])
    return version >= ((8, 5) if sized else (7, 76))


def _receive(
    invocation: Invocation,
    options: dict[str, str],
    response: http.client.HTTPResponse,
    path: object,
    start: int,
) -> int:
    from pathlib import Path

    if not isinstance(path, Path):
        invocation.stdout(response.read())
        return 0
    with path.open("ab" if start else "wb") as file:
        while chunk := response.read(_CHUNK_BYTES):
            if invocation.stopping.is_set():
                return 1
            file.write(chunk)
    if response.length:  # closed before all of it came
        return _fail(invocation, options, 18, f"end of response with {response.length} bytes missing")
    return 0


def _fail(invocation: Invocation, options: dict[str, str], code: int, text: str) -> int:
    if "silent" not in options or "show" in options:
        invocation.err(f"curl: ({code}) {text}")
    return code
