"""Builds launch.exe, which starts every program of a wine box; its C is beside this file."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from simbox.engines.wine.locate import Missing, cache_directory
from simbox.engines.wine.standins import COMPILER

_SOURCE = Path(__file__).resolve().with_name("launch.c")
_FLAGS = ["-std=c11", "-O2", "-s", "-municode", "-Wall", "-Wextra", "-Werror"]


def launcher() -> Path:
    """The path of launch.exe in the cache, compiled by whoever comes first. Raises Missing."""
    digest = hashlib.sha256(" ".join(_FLAGS).encode() + _SOURCE.read_bytes()).hexdigest()[:16]
    folder = cache_directory() / "standins" / digest
    target = folder / "launch.exe"
    if target.is_file():
        return target
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise Missing(f"no {COMPILER} in PATH; on Debian: apt-get install gcc-mingw-w64-x86-64")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / target.name
        subprocess.run([compiler, *_FLAGS, str(_SOURCE), "-o", str(made)], check=True)
        made.replace(target)
    return target
