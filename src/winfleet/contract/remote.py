"""A place over the connector's own session: any box that WinRM reaches."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from winfleet.call import Call
from winfleet.connectors import winrm_data
from winfleet.contract.guard import forbidden
from winfleet.contract.lay import told
from winfleet.contract.place import Listener
from winfleet.owner import Owner
from winfleet.wire.endpoint import Endpoint
from winfleet.wire.exchange import Answer
from winfleet.wire.program import bootstrap_line, build_program
from winfleet.wire.session import Session
from winfleet.wire.winrs import Envelope, WinRSShell

CONNECT_TIMEOUT_S = 15.0


class OutOfBounds(Exception):
    """A call that would change more than the scratch folder reached the session; it was not sent."""


class ScratchLeft(Exception):
    """The scratch folder is still there at the end; the text says why."""


class RemoteProgram:
    """A command line in a shell of its own, beside the session."""

    def __init__(self, shell: WinRSShell, command_line: str) -> None:
        self._shell = shell
        shell.open(command_line)

    def end(self) -> None:
        """See winfleet.contract.place.Started."""
        self._shell.close()


class RemoteBox:
    """Implements winfleet.contract.place.Place for one box.

    Attributes: scratch (full path of the folder in which everything happens; not there yet), ready (what the box
    said of itself), endpoint.
    """

    simulated = False
    scratch_only = True

    def __init__(
        self,
        endpoint: Endpoint,
        session: Session,
        envelope: Envelope,
        platform: str,
        parent: str,
        owner: Owner,
    ) -> None:
        self.endpoint, self.platform = endpoint, platform
        self._session, self._envelope = session, envelope
        self._processes: set[int] = set()
        self.ready = session.open()
        # With a blank: every case meets one.
        self.scratch = f"{parent.rstrip(chr(92))}\\{owner.name} accept {secrets.token_hex(4)}"
        self.values: Mapping[str, str] = {}

    @property
    def elevated(self) -> bool:
        """See winfleet.contract.place.Place."""
        return bool(self.ready.get("Elevated"))

    def run(self, calls: Sequence[Call], listen: Listener | None = None) -> list[Answer]:
        """See winfleet.contract.place.Place. Raises OutOfBounds before anything is sent."""
        for call in calls:
            reason = forbidden(call, self.scratch, frozenset(self._processes))
            if reason is not None:
                raise OutOfBounds(f"{call}: {reason}")
        self._session.read_only = all(call.reads for call in calls)
        return self._session.run(calls, listen)

    def start(self, command_line: str) -> RemoteProgram:
        """See winfleet.contract.place.Place."""
        return RemoteProgram(WinRSShell(self.endpoint, self._envelope), command_line)

    def owns(self, process_id: int) -> None:
        """A process that the run started itself, and may stop."""
        self._processes.add(process_id)

    def host(self, path: str) -> Path | None:
        """See winfleet.contract.place.Place."""
        return None


@contextmanager
def remote_box(
    data: Mapping[str, Any], name: str, platform: str, parent: str, owner: Owner
) -> Iterator[RemoteBox]:
    """An open session to the box that the host data of @winrm describe, and an empty scratch folder on it; both are
    gone at the end.

    Raises: the WireError kinds of connecting, SettingRefused, SecretUnavailable, ScratchLeft.
    """
    whole = {key: meta.default for key, meta in winrm_data.META.items()} | dict(data)
    endpoint = winrm_data.endpoint(whole, name, CONNECT_TIMEOUT_S)
    envelope = Envelope()
    session = Session(
        lambda: WinRSShell(endpoint, envelope),
        build_program(),
        bootstrap_line,
        winrm_data.session_settings(whole, name),
    )
    try:
        box = RemoteBox(endpoint, session, envelope, platform, parent, owner)
        box.run([Call("New-BoxDirectory", Path=[box.scratch])])
        try:
            yield box
        finally:
            (answer,) = box.run([Call("Remove-BoxItem", Path=[box.scratch], Recurse=True)])
            if not answer.ok:
                raise ScratchLeft(
                    f"{name}: {box.scratch} could not be removed, do it by hand: {told(answer)}"
                )
    finally:
        session.close()
