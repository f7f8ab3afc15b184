"""Runs cli_hooks_cases.py in a process of its own: importing pyinfra_cli patches the sockets and threads of
the whole process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_hooks_in_a_process_of_their_own() -> None:
    cases = Path(__file__).with_name("cli_hooks_cases.py")
    # pyinfra's command line patches the locks of the process; before pytest, which holds some while it imports.
    first = "import sys; from pyinfra_cli import cli; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", first, "-q", "-p", "no:cacheprovider", "-p", "no:rerunfailures", str(cases)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
