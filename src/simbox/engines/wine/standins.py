"""Builds the two Windows binaries of a wine box from C, once per source.

`program()` is the executable that stands in for every program a box has (nvidia-smi.exe, git.exe, ...),
`nvcuda()` the driver library. Both are kept in the cache folder of the wine engine under the hash of their
sources.

Example::

    shutil.copy2(build.program(), box.drive_c / "windows/system32/nvidia-smi.exe")
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from simbox.engines.wine.locate import cache_directory

COMPILER = "x86_64-w64-mingw32-gcc"
_HERE = Path(__file__).resolve().parent
_FLAGS = ["-std=c11", "-O2", "-s", "-Wall", "-Wextra", "-Werror"]


class CannotBuild(RuntimeError):
    """The Windows stand-ins could not be compiled; the message says what to do."""


def compiler() -> str | None:
    """The path of the MinGW-w64 compiler for 64-bit Windows, or None when this machine has none."""
    return shutil.which(COMPILER)


def cache_folder() -> Path:
    """Where built stand-ins are kept."""
    return cache_directory() / "standins"


def program() -> Path:
    """The executable that asks the simulator what to do. Raises CannotBuild."""
    return _built("program.c", "program.exe", [], ["-lws2_32", "-lshell32"])


def nvcuda() -> Path:
    """nvcuda.dll. Raises CannotBuild."""
    return _built("../../gpu/nvcuda.c", "nvcuda.dll", ["-shared"], ["-lws2_32"])


def _built(source: str, name: str, flags: list[str], libraries: list[str]) -> Path:
    digest = hashlib.sha256(" ".join([*_FLAGS, *flags, *libraries]).encode())
    for file in (source, "simulator.h"):
        digest.update((_HERE / file).read_bytes())
    folder = cache_folder() / digest.hexdigest()[:16]
    target = folder / name
    if target.is_file():
        return target
    gcc = compiler()
    if gcc is None:
        raise CannotBuild(
            f"{COMPILER} not found: a wine box needs it to build its Windows programs"
            " (Debian: apt-get install gcc-mingw-w64-x86-64; or use the python engine)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    # Built beside its place and renamed, so that two simulators that start at once never see half a file.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / name
        command = [gcc, *_FLAGS, *flags, str(_HERE / source), "-o", str(made), *libraries]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise CannotBuild(
                f"{' '.join(command)} failed with {result.returncode}:\n{result.stderr.strip()}"
            )
        made.replace(target)
    return target
