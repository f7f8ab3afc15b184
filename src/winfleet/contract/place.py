"""Where cases run: a box that answers calls and can run a second program beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from winfleet.call import Call
from winfleet.wire.exchange import Answer
from winfleet.wire.frames import Frame

Listener = Callable[[Frame], None]


class Started(Protocol):
    """A program that was started beside the session."""

    def end(self) -> None:
        """End it and all that it started; returns when it is gone."""


class Place(Protocol):
    """One box with an open session."""

    @property
    def platform(self) -> str:
        """windows, wine or python; chooses what a case says of that platform."""

    @property
    def elevated(self) -> bool:
        """True when the session has an administrator's rights."""

    @property
    def scratch_only(self) -> bool:
        """True when nothing outside of the scratch folder may change: a real box."""

    @property
    def simulated(self) -> bool:
        """True when the machine is that of the simulator's profile rtx4090d."""

    @property
    def values(self) -> Mapping[str, str]:
        """Texts for {culture} and {url}; a case that wants one that is missing is skipped."""

    def run(self, calls: Sequence[Call], listen: Listener | None = None) -> list[Answer]:
        """Ask calls in one request; listen gets the output and progress frames."""

    def start(self, command_line: str) -> Started:
        """Start a command line of cmd.exe beside the session."""

    def owns(self, process_id: int) -> None:
        """Note a process that the run itself started: a case may stop it."""

    def host(self, path: str) -> Path | None:
        """The box's file as this machine sees it, past the box's own commands; None where there is no such way."""
