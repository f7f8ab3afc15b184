"""Where this machine keeps Wine and PowerShell for Windows, or what it lacks."""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCE_VARIABLE = "NINFER_FLEET_PWSH_WIN"
CACHE_VARIABLE = "NINFER_FLEET_CACHE_DIR"
_HOW = 'README, "Real PowerShell on your machine"'
_DEBIAN = Path("/usr/lib/wine")


@dataclass(frozen=True)
class WineTools:
    """What a wine box needs from this machine.

    Attributes: wine and wineserver (programs), powershell (folder with ps/pwsh.exe, dotnet/ and modules/).
    """

    wine: Path
    wineserver: Path
    powershell: Path

    @property
    def pwsh_exe(self) -> Path:
        return self.powershell / "ps" / "pwsh.exe"


class Missing(Exception):
    """This machine cannot run wine boxes; the text is one line that tells what to get and how."""


def cache_directory() -> Path:
    """Folder for what is made once per machine (unpacked PowerShell, template prefix)."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ninfer-fleet"


def locate() -> WineTools:
    """Find Wine and PowerShell for Windows, unpacking the latter into the cache when only its archive is
    here.

    PowerShell comes from NINFER_FLEET_PWSH_WIN (an unpacked folder, or an archive pwsh-*-win-x64.tar.xz) or
    from ../shared/pwsh beside the repository. Raises Missing.
    """
    wine = _program("wine64", "wine")
    if wine is None:
        raise Missing("no wine in PATH; on Debian: apt-get install --no-install-recommends wine wine64")
    server = _program("wineserver")
    if server is None:
        raise Missing("wine is here but its wineserver is not; on Debian: apt-get install wine64")
    return WineTools(wine, server, _powershell())


def _program(*names: str) -> Path | None:
    """The first of these programs that is here; Debian keeps the real ones beside each other.

    Its /usr/bin/wine is a script that writes advice about 32-bit Wine to the stderr of every program.
    """
    for name in names:
        found = _DEBIAN / name if (_DEBIAN / name).exists() else shutil.which(name)
        if found:
            return Path(found)
    return None


def _powershell() -> Path:
    named = os.environ.get(SOURCE_VARIABLE)
    if named:
        path = Path(named).expanduser()
        if (path / "ps" / "pwsh.exe").exists():
            return path.resolve()
        if path.is_file():
            return _unpacked(path)
        raise Missing(
            f"{SOURCE_VARIABLE}={named} is neither a folder with ps/pwsh.exe nor an archive; "
            f"point it at an unpacked PowerShell for Windows or at pwsh-*-win-x64.tar.xz ({_HOW})"
        )
    shared = Path(__file__).resolve().parents[5] / "shared" / "pwsh"
    archives = sorted(shared.glob("pwsh-*-win-x64.tar.xz"))
    if archives:
        return _unpacked(archives[-1])
    raise Missing(
        f"no PowerShell for Windows; set {SOURCE_VARIABLE} to a folder with ps/pwsh.exe and dotnet/, "
        f"or put pwsh-<version>-win-x64.tar.xz into {shared} ({_HOW})"
    )


def _unpacked(archive: Path) -> Path:
    """The folder of an archive in the cache, unpacked by whoever comes first."""
    home = cache_directory() / "pwsh"
    home.mkdir(parents=True, exist_ok=True)
    folder = home / archive.name.removesuffix(".tar.xz")
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ps" / "pwsh.exe").exists():
            with tempfile.TemporaryDirectory(dir=home) as fresh:
                with tarfile.open(archive) as tar:
                    tar.extractall(fresh, filter="tar")
                (inner,) = Path(fresh).iterdir()
                shutil.rmtree(folder, ignore_errors=True)
                inner.rename(folder)
    return folder
