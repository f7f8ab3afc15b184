"""The bytes of the PowerShell that ships, whatever a PowerShell would say of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from powershell51 import check

from winfleet.wire.program import bootstrap_line, build_program

REPOSITORY = Path(__file__).resolve().parents[2]
# One request of a remote shell whose administrators left MaxEnvelopeSizekb at 150 carries this much base64.
MAX_PACKED_CHARACTERS = 100_000
MAX_COMMAND_LINE_CHARACTERS = 8191


def test_what_is_sent_keeps_within_the_limits_of_the_way() -> None:
    built = build_program()
    assert len(built.packed) < MAX_PACKED_CHARACTERS
    assert len(bootstrap_line("0" * 32, built.sha256)) < MAX_COMMAND_LINE_CHARACTERS


@pytest.mark.parametrize("path", check.shipped_files(REPOSITORY), ids=lambda path: path.name)
def test_shipped_files_are_ascii_with_line_feeds(path: Path) -> None:
    content = path.read_bytes()
    assert content.isascii()
    assert b"\r" not in content
    assert b"\t" not in content
