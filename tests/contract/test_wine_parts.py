"""What the README tells somebody to put together on an ordinary machine is enough for a wine box."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from powershell import engine_box, wine_missing

from simbox.engines.wine import locate

pytestmark = pytest.mark.wine


def _link(source: str, destination: str) -> None:
    try:
        os.link(source, destination)
    except OSError:  # the cache is on another disk
        shutil.copy2(source, destination)


def test_a_folder_of_the_two_public_archives_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := wine_missing():
        pytest.skip(missing)
    found = locate.locate().powershell
    for part in ("ps", "dotnet"):  # PowerShell-*-win-fxdependent.zip and dotnet-runtime-*-win-x64.zip
        shutil.copytree(found / part, tmp_path / part, copy_function=_link)
    monkeypatch.setenv("NINFER_FLEET_PWSH_WIN", str(tmp_path))
    assert locate.locate().pwsh_exe == tmp_path / "ps" / "pwsh.exe"
    with engine_box("wine") as box:
        text = "(Get-Process -Id $PID).Path"
        told = box.reply("Invoke-BoxScript", Text=text).output("stdout").decode()
    assert str(tmp_path).replace("/", "\\") in told


def test_what_is_missing_is_told_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINFER_FLEET_PWSH_WIN", "/nowhere")
    with pytest.raises(locate.Missing, match=r"/nowhere.*ps/pwsh\.exe.*README"):
        locate.locate()
