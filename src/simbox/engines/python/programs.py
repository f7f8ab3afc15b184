"""Running a program of the box for an answer: its output as bytes."""

from __future__ import annotations

import io
from dataclasses import dataclass

from simbox.account import environment as account
from simbox.cmd.machine import Streams
from simbox.engines.python import launcher, systemprograms
from simbox.engines.python.answers import Call


@dataclass(frozen=True)
class Run:
    """What a program did. Attributes: exit_code (None: it did not end in time), output, error_output."""

    exit_code: int | None
    output: bytes
    error_output: bytes


def run(call: Call, path: str, arguments: str, timeout_s: float = 60) -> Run:
    """Run a program to its end. Raises WindowsError when it cannot start."""
    out, err = io.BytesIO(), io.BytesIO()
    child = launcher.launch(
        call.box,
        path,
        f'"{path}" {arguments}',
        systemprograms.SYSTEM32,
        account.environment(call.box),
        Streams(io.BytesIO(), out, err),
        parent_pid=call.process_id,
    )
    code = child.wait(timeout_s)
    if code is None:
        child.kill_tree()
        child.wait(5)
    return Run(code, out.getvalue(), err.getvalue())


def text(data: bytes) -> str:
    """UTF-8 text without a byte order mark."""
    return data.decode("utf-8", "replace").removeprefix("\ufeff")
