"""`ninfer-fleet accept` against simulated boxes over WinRM, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from powershell import wine_missing

from ninfer_fleet.cli import main
from simbox import service


class SimulatedBox:
    """One box that is up, in a fleet of its own."""

    def __init__(self, directory: Path, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        # The folder has no inventory/fleet.yml: the simulated boxes are the inventory.
        monkeypatch.chdir(directory)
        monkeypatch.setenv("NINFER_FLEET_SIM_DIR", str(directory / "sim"))
        monkeypatch.setenv("XDG_STATE_HOME", str(directory / "state"))
        number = os.getpid() % 250 + 1
        fleet = service.up(
            engine=engine,
            boxes=1,
            network=f"127.{5 if engine == 'wine' else 6}.{number}",
            directory=directory / "sim",
        )
        self.box: dict[str, Any] = fleet["boxes"][0]
        self.folder = Path(self.box["events"]).parent

    def files(self) -> dict[str, int]:
        """Every file of C:, but for those that Windows and the session themselves write."""
        root = self.folder / "drive_c"
        return {
            str(path.relative_to(root)): path.stat().st_size
            for path in root.rglob("*")
            if path.is_file() and not path.is_symlink() and "AppData" not in path.parts
        }

    def changes(self) -> dict[str, Any]:
        """What the simulator keeps of tasks and the firewall."""
        kept = json.loads((self.folder / "state.json").read_text("utf-8"))
        return {name: kept.get(name) for name in ("tasks", "firewall", "registry", "environment")}

    def starts(self, kind: str) -> int:
        lines = Path(self.box["events"]).read_text("utf-8").splitlines()
        return sum(json.loads(line)["kind"] == kind for line in lines)


FEW = [
    "Copy-BoxItem",
    "Get-BoxChildItem",
    "Get-BoxDisk",
    "Get-BoxSystem",
    "Invoke-BoxScript",
    "New-BoxJunction",
    "Register-BoxTask",
    "Set-BoxAcl",
    "Set-BoxFile",
    "Stop-BoxProcess",
    "Write-BoxFilePart",
]
"""Enough for every way in which cases use a box; all of them run under Wine in test_cases.py."""


@pytest.mark.parametrize(
    ("engine", "commands", "least"),
    [("python", [], 200), pytest.param("wine", ["--only", *FEW], 70, marks=pytest.mark.wine)],
)
def test_a_box_is_accepted_and_nothing_stays_on_it(
    engine: str,
    commands: list[str],
    least: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = wine_missing() if engine == "wine" else None
    if missing:
        pytest.skip(missing)
    box = SimulatedBox(tmp_path, engine, monkeypatch)
    try:
        before = box.files(), box.changes()
        code = main(["accept", "@winrm/gpu01", *commands])
        out = capsys.readouterr().out
        assert code == 0, out
        assert "FAILED" not in out
        assert f"gpu01 (simulated, {engine})" in out
        assert "would change the machine: Register-BoxTask" in out
        passed = int(out.splitlines()[-1].split(",")[0].removeprefix("passed "))
        assert passed > least
        assert (box.files(), box.changes()) == before
        assert box.starts("shell_created") == box.starts("shell_deleted")
    finally:
        service.down(tmp_path / "sim")


def test_a_difference_is_told_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The GPU cases want a card and a driver that works; this box has none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NINFER_FLEET_SIM_DIR", str(tmp_path / "sim"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    service.up(profiles=["no-driver"], network=f"127.8.{os.getpid() % 250 + 1}", directory=tmp_path / "sim")
    try:
        assert main(["accept", "gpu01", "--only", "Get-BoxGpu", "Get-BoxSession"]) == 1
        out = capsys.readouterr().out
        assert "FAILED   what is asked of nvidia-smi and of the driver" in out
        assert "answer.Driver.Loaded: wanted True, found False" in out
        assert "failed 1, skipped 1" in out.splitlines()[-1]
    finally:
        service.down(tmp_path / "sim")


def test_a_box_that_nobody_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NINFER_FLEET_SIM_DIR", str(tmp_path / "sim"))
    assert main(["accept", "gpu07"]) == 1
    assert "ninfer-fleet sim up" in capsys.readouterr().err
    (tmp_path / "fleet.yml").write_text("boxes: {gpu01: {address: 192.0.2.1, user: a, password: 'env:NONE'}}")
    assert main(["accept", "gpu07", "--inventory", "fleet.yml"]) == 1
    assert "there are: gpu01" in capsys.readouterr().err


def test_a_command_without_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["accept", "gpu01", "--only", "Get-BoxNothing"]) == 2
    assert "Get-BoxNothing" in capsys.readouterr().err
