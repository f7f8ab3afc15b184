"""The batch interpreter of a python box, and Wine's cmd.exe, on the same batch files."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest
from cmd_cases import CASES, Case

from simbox.account import environment as account
from simbox.box import Box
from simbox.cmd.machine import Streams
from simbox.engines.python import launcher, systemprograms
from simbox.engines.wine import locate, prefix


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _content(case: Case) -> bytes:
    return ("@echo off\r\n" + case.text.replace("\n", "\r\n") + "\r\n").encode("ascii")


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Box:
    made = Box.open(tmp_path_factory.mktemp("box"), "gpu01", "127.0.88.1", "rtx4090d")
    systemprograms.install(made)
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_interpreter(case: Case, box: Box) -> None:
    folder = f"C:\\cases\\{CASES.index(case)}"
    box.filesystem.make_directory(folder)
    for name, text in case.files.items():
        box.filesystem.write(f"{folder}\\{name}", text.encode())
    box.filesystem.write(f"{folder}\\case.bat", _content(case))
    out = io.BytesIO()
    streams = Streams(io.BytesIO(), out, io.BytesIO())
    shell = launcher.launch(box, f"{folder}\\case.bat", "case.bat", folder, account.environment(box), streams)
    assert shell.wait(30) is not None, "the batch file does not end"
    assert _lines(out.getvalue().decode("cp437")) == _lines(case.output)


@pytest.fixture(scope="module")
def wine_outputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What Wine's cmd.exe prints for each case; one start of Wine for all of them."""
    try:
        tools = locate.locate()
    except locate.Missing as missing:
        pytest.skip(str(missing))
    directory = tmp_path_factory.mktemp("wine") / "box"
    prefix.create(tools, directory)
    drive = directory / "drive_c"
    driver = ["@echo off"]
    for number, case in enumerate(CASES):
        folder = drive / "cases" / str(number)
        folder.mkdir(parents=True)
        for name, text in case.files.items():
            (folder / name).write_bytes(text.encode())
        (folder / "case.bat").write_bytes(_content(case))
        driver += [f"cd /d C:\\cases\\{number}", "cmd /c case.bat >output <nul 2>nul"]
    (drive / "cases" / "driver.bat").write_bytes("\r\n".join([*driver, ""]).encode())
    environment = prefix.environment(directory)
    try:
        subprocess.run(
            [str(tools.wine), "cmd", "/c", "C:\\cases\\driver.bat"],
            env=environment, check=True, timeout=280, stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
    finally:
        prefix.stop_server(tools, directory)
    return [_read(drive / "cases" / str(number) / "output") for number in range(len(CASES))]


def _read(path: Path) -> str:
    return path.read_bytes().decode("cp437") if path.exists() else ""


@pytest.mark.wine
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wine_agrees(case: Case, wine_outputs: list[str]) -> None:
    expected = case.output if case.wine is None else case.wine
    assert _lines(wine_outputs[CASES.index(case)]) == _lines(expected)
