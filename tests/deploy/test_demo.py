"""The demo passes, and fails when something that it shows does not hold."""

from __future__ import annotations

import subprocess
import sys

from fleet import ROOT


def test_the_demo_shows_what_the_readme_promises() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "demo" / "run.py")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout
    for words in (
        "$ pyinfra inventory deploy.py --dry --diff",
        "$ pyinfra inventory deploy.py -y",
        "operations, every one: No changes",
        "the plan names exactly the three drifted fields",
        "only gpu02 was changed",
        "there is nothing left to change",
    ):
        assert words in done.stdout
    assert "\x1b" not in done.stdout, "colours in a pipe"
