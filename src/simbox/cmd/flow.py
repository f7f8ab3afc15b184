"""How control leaves a command other than by its end."""

from __future__ import annotations


class Goto(Exception):
    """GOTO: the present batch context goes on at the label that is the message."""


class EndBatch(Exception):
    """The present batch context ends: EXIT /B, GOTO :EOF, or a batch file run without CALL."""


class EndShell(Exception):
    """EXIT: the whole cmd.exe ends."""
