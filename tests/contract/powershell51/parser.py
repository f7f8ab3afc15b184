"""PowerShell's own parser, on a PowerShell 7 of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from simbox.engines.wine.locate import cache_directory


class NoPowerShell(Exception):
    """No PowerShell for this machine; the text says how to get one."""


def powershell() -> Path:
    """pwsh of this machine: NINFER_FLEET_PWSH, PATH, or ../shared/pwsh unpacked into the cache.

    Raises NoPowerShell.
    """
    named = os.environ.get("NINFER_FLEET_PWSH") or shutil.which("pwsh")
    if named:
        return Path(named)
    unpack = Path(__file__).resolve().parents[4] / "shared" / "pwsh" / "unpack"
    if unpack.is_file():
        folder = cache_directory() / "pwsh-parser"
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([str(unpack), "linux", str(folder)], capture_output=True, text=True, check=True)
        return Path(done.stdout.split()[-1]) / "pwsh"
    raise NoPowerShell(
        "no PowerShell for this machine: set NINFER_FLEET_PWSH to a pwsh 7, put one into PATH, "
        f"or provide {unpack}"
    )
