"""What launch.exe tells of the process that it started."""

from __future__ import annotations

ERROR_INTERNAL = 1359


class Report:
    """The words that arrived so far: "pid N", then "exit N"; "error N" when Windows could not create the
    process; "gone 1" from this side when launch.exe itself has ended.

    The first ending counts: "gone" follows every "exit", often in the same read.

    Attributes: pid (0 before it is known), error (Win32), exit_code, told (something is known).
    """

    def __init__(self) -> None:
        self.pid = 0
        self.error: int | None = None
        self.exit_code: int | None = None
        self._rest = b""

    @property
    def told(self) -> bool:
        return bool(self.pid) or self.error is not None or self.exit_code is not None

    def feed(self, data: bytes) -> None:
        """Take bytes as they come, in any pieces."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, number = line.split()
            self._note(word, int(number))

    def _note(self, word: bytes, number: int) -> None:
        if word == b"pid":
            self.pid = number
        elif word == b"error":
            self.error = number
        elif self.exit_code is None:
            self.exit_code = number
            if word == b"gone" and not self.pid and self.error is None:
                self.error = ERROR_INTERNAL
