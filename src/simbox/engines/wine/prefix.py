"""The Wine prefix of a box: made from a template, started, removed with its own wineserver.

Measured on 2 cores with Wine 8.0: the template takes 11 s and 695 MB once; a box made from it 0.1 s and 8 MB,
for its C:\\windows is linked file by file and only the registry and the rest are copied.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from simbox.engines.wine.locate import WineTools, cache_directory

_QUIET = {"WINEDEBUG": "-all"}
# The first boot neither asks for Mono and Gecko nor writes menu entries of the desktop. Only then:
# PowerShell's own assemblies do not load without mscoree.
_FIRST_BOOT = {"WINEDLLOVERRIDES": "mscoree,mshtml=;winemenubuilder.exe=d"}


def environment(box: Path) -> dict[str, str]:
    """Environment in which Wine works on this prefix and no other; nothing else of the caller's leaks in."""
    own = {name: os.environ[name] for name in ("PATH", "HOME", "LOGNAME") if name in os.environ}
    # UTF-8 always: in the C locale Wine could not name files beyond ASCII.
    return {**own, **_QUIET, "LC_ALL": "C.UTF-8", "WINEPREFIX": str(box)}


def template(tools: WineTools) -> Path:
    """The template prefix in the cache, made by whoever comes first while the others wait."""
    home = cache_directory() / "wine"
    home.mkdir(parents=True, exist_ok=True)
    ready = home / f"template-{_version(tools)}"
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            fresh = Path(tempfile.mkdtemp(prefix="template.", dir=home))
            try:
                for command in (["wineboot", "-i"], ["winecfg", "-v", "win10"]):
                    _run([str(tools.wine), *command], fresh, _FIRST_BOOT)
                _run([str(tools.wineserver), "-w"], fresh)
                fresh.rename(ready)
            except BaseException:
                stop_server(tools, fresh)
                shutil.rmtree(fresh, ignore_errors=True)
                raise
    return ready


def create(tools: WineTools, box: Path) -> None:
    """Make the prefix of a box in the folder `box`; files already there stay. Made already: does nothing."""
    if (box / "system.reg").exists():
        return
    source = template(tools)
    (box / "drive_c").mkdir(parents=True, exist_ok=True)
    shutil.copytree(source / "dosdevices", box / "dosdevices", symlinks=True, dirs_exist_ok=True)
    for item in (source / "drive_c").iterdir():
        # Linked, not copied: 690 MB of Windows that no box changes.
        flags = "-as" if item.name == "windows" else "-a"
        subprocess.run(["cp", flags, str(item.resolve()), str(box / "drive_c")], check=True)
    for item in sorted(source.iterdir(), key=lambda path: path.name == "system.reg"):
        if item.is_file():
            shutil.copy2(item, box / item.name)


def boot(tools: WineTools, box: Path) -> None:
    """Boot Windows in the prefix; its wineserver then stays until `stop_server`, even with no program
    running."""
    _quiet([str(tools.wineserver), "-p"], box)  # ends with 2 when it runs already
    _run([str(tools.wine), "wineboot"], box)


def stop_server(tools: WineTools, box: Path) -> None:
    """End every Windows process of this prefix, and its wineserver; other prefixes are not touched."""
    for action in ("-k", "-w"):
        _quiet([str(tools.wineserver), action], box)


def remove(tools: WineTools, box: Path) -> None:
    """End the box and delete its folder."""
    if box.exists():
        stop_server(tools, box)
        shutil.rmtree(box)


def windows_path(path: Path) -> str:
    """The path of a file of this machine as programs in a box see it (drive Z:)."""
    return "Z:" + str(path.resolve()).replace("/", "\\")


def _version(tools: WineTools) -> str:
    done = subprocess.run([str(tools.wine), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[0].strip()


def _quiet(command: list[str], box: Path, more: dict[str, str] | None = None) -> int:
    # No pipes: a wineserver that this starts would inherit them and keep the caller waiting for their end.
    return subprocess.run(
        command,
        env={**environment(box), **(more or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=False,
    ).returncode


def _run(command: list[str], box: Path, more: dict[str, str] | None = None) -> None:
    code = _quiet(command, box, more)
    if code != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {code} in {box}")
