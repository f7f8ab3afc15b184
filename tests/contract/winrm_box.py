"""A WinRM endpoint on loopback whose engine is this machine's /bin/sh, for tests of the endpoint itself."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from winrm.protocol import Protocol

from simbox.engines.engine import Process
from simbox.eventlog import EventLog
from simbox.hostprocess import HostProcess
from simbox.winrm import Certificate, Credential, Fault, FaultPlan, Limits, WinRMEndpoint

ADDRESS = "127.0.0.1"
USER = "operator"
# A colon breaks one form of pyspnego's user file, the others break careless encoders.
PASSWORD = "ex:am ple-\u00e4\u4e2d%"
_CERTIFICATE_DIRECTORY = Path(tempfile.mkdtemp(prefix="simbox-test-"))


class ShellEngine:
    """Runs command lines with /bin/sh, or as programs without it when the shell is to be skipped."""

    def start(
        self,
        command_line: str,
        environment: dict[str, str],
        working_directory: str | None,
        skip_cmd_shell: bool,
    ) -> Process:
        arguments = command_line.split() if skip_cmd_shell else ["/bin/sh", "-c", command_line]
        directory = Path(working_directory) if working_directory else None
        return HostProcess(arguments, {**os.environ, **environment}, directory)


@contextmanager
def running_box(
    directory: Path,
    limits: Limits | None = None,
    credentials: list[Credential] | None = None,
    engine: Any = None,
) -> Iterator[WinRMEndpoint]:
    """An endpoint that listens on free ports, stopped at the end."""
    events = EventLog(directory / "events.jsonl")
    endpoint = WinRMEndpoint(
        ADDRESS,
        0,
        0,
        credentials or [Credential(USER, PASSWORD)],
        engine or ShellEngine(),
        events,
        Certificate.load_or_create(_CERTIFICATE_DIRECTORY, "localhost", ADDRESS),
        limits,
        FaultPlan(),
        name="GPU01",
    )
    endpoint.start()
    try:
        yield endpoint
    finally:
        endpoint.stop()
        events.close()


def url(box: WinRMEndpoint, scheme: str) -> str:
    port = box.https_port if scheme == "https" else box.http_port
    return f"{scheme}://{ADDRESS}:{port}/wsman"


def protocol(box: WinRMEndpoint, scheme: str = "http", **options: Any) -> Protocol:
    """A pywinrm client; NTLM unless options say otherwise."""
    values: dict[str, Any] = {
        "transport": "ntlm",
        "username": USER,
        "password": PASSWORD,
        "server_cert_validation": "ignore",
        "proxy": None,
        "operation_timeout_sec": 10,
        "read_timeout_sec": 20,
    }
    values.update(options)
    if values["transport"] == "basic":
        # requests would encode a text as latin-1.
        values["password"] = values["password"].encode()
    return Protocol(endpoint=url(box, scheme), **values)


def events_of(box: WinRMEndpoint) -> EventLog:
    return box._events


def arm(box: WinRMEndpoint, kind: Any, **fields: Any) -> None:
    box.faults.add(Fault(kind, **fields))
