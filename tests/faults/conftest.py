"""Fixtures of the connector's fault tests."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_box import PASSWORD, LoopBox, running

from winfleet.wire.program import Program

TEXT = b"function Get-BoxSession {}"
PROGRAM = Program(TEXT.decode(), hashlib.sha256(TEXT).hexdigest(), base64.b64encode(gzip.compress(TEXT)))


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopBox]:
    """A running box whose password is in LOOP_BOX_PASSWORD; afterwards it must hold no shell."""
    monkeypatch.setenv("LOOP_BOX_PASSWORD", PASSWORD)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # The small loop runs no PowerShell; it only has to receive some program.
    monkeypatch.setattr("winfleet.connectors.winrm.build_program", lambda: PROGRAM)
    with running(tmp_path) as made:
        yield made
