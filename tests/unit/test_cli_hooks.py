"""Runs cli_hooks_cases.py in a process of its own: importing pyinfra_cli patches the sockets and threads of
the whole process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_hooks_in_a_process_of_their_own(tmp_path: Path) -> None:
    cases = Path(__file__).with_name("cli_hooks_cases.py")
    # pyinfra's command line patches the locks of the process; before pytest, which holds some while it imports.
    first = "import sys; from pyinfra_cli import cli; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    # A base of its own: without one pytest clears the directories that earlier runs left, and gevent's os.close
    # (gevent/os.py) only closes when its loop runs next, so that clearing some thousands runs out of handles.
    base = f"--basetemp={tmp_path / 'cases'}"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            first,
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:rerunfailures",
            base,
            str(cases),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
