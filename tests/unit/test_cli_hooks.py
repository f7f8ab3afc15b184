"""Runs cli_hooks_cases.py in a process of its own: importing pyinfra_cli patches the sockets and threads of
the whole process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_hooks_in_a_process_of_their_own() -> None:
    cases = Path(__file__).with_name("cli_hooks_cases.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(cases)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
