"""Starting processes under Wine: what launch.exe reports, and a Wine that does not get as far as that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from simbox.engines.wine import process, tree
from simbox.engines.wine.launcher import launcher
from simbox.engines.wine.locate import Missing, WineTools
from simbox.engines.wine.report import ERROR_INTERNAL, Report

NUMBERS = "pid 40\nexit 3221225477\ngone 1\n"


@pytest.mark.parametrize("cut", range(len(NUMBERS) + 1))
def test_the_first_ending_counts_however_the_words_arrive(cut: int) -> None:
    report = Report()
    for piece in (NUMBERS[:cut], NUMBERS[cut:]):
        report.feed(piece.encode())
    assert (report.pid, report.exit_code, report.error) == (40, 3221225477, None)


def test_launch_exe_that_ends_without_a_word_is_an_error() -> None:
    report = Report()
    assert not report.told
    report.feed(b"gone 1\n")
    assert (report.told, report.error, report.exit_code) == (True, ERROR_INTERNAL, 1)


def test_the_error_of_windows_stays_when_launch_exe_then_ends() -> None:
    report = Report()
    report.feed(b"error 2\ngone 1\n")
    assert (report.error, report.exit_code, report.pid) == (2, 1, 0)


@pytest.fixture
def stalling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WineTools:
    """A Wine that notes each start and then neither does anything nor ends."""
    try:
        launcher()
    except Missing as missing:
        pytest.skip(str(missing))
    wine = tmp_path / "wine"
    wine.write_text(f'#!/bin/sh\necho "$$ ${tree.MARK}" >>{tmp_path}/starts\nexec sleep 600\n')
    wine.chmod(0o755)
    monkeypatch.setattr(process, "_START_S", 0.5)
    return WineTools(wine, wine, tmp_path)


def test_a_wine_that_dies_is_started_anew(stalling: WineTools, tmp_path: Path) -> None:
    stalling.wine.write_text(f"#!/bin/sh\necho $$ >>{tmp_path}/starts\n")
    with pytest.raises(process.StartFailed) as failed:
        process.start(stalling, tmp_path, "cmd.exe", {}, tmp_path)
    assert failed.value.errno == ERROR_INTERNAL
    assert len((tmp_path / "starts").read_text().split()) == 3


def test_a_wine_that_stalls_is_ended_and_started_anew(stalling: WineTools, tmp_path: Path) -> None:
    with pytest.raises(process.StartFailed) as failed:
        process.start(stalling, tmp_path, "cmd.exe", {}, tmp_path)
    assert failed.value.errno == process.ERROR_TIMEOUT
    starts = [line.split() for line in (tmp_path / "starts").read_text().splitlines()]
    assert len(starts) == 3
    for pid, mark in starts:
        assert tree.members(mark) == []
        assert not os.path.exists(f"/proc/{pid}")


def test_a_console_ends_by_itself_after_its_programs(tmp_path: Path) -> None:
    """Killed together with them it would take the wineserver with it."""
    mark = "example of a console"
    environment = {**os.environ, tree.MARK: mark}
    reads, writes = os.pipe()
    program = subprocess.Popen(["sleep", "600"], env=environment, pass_fds=[writes])
    os.close(writes)
    told = tmp_path / "told"
    # As conhost.exe: it sees the end of the last program of its console, and ends.
    text = f"import pathlib, sys; sys.stdin.read(); pathlib.Path({str(told)!r}).write_text('ended by itself')"
    console = subprocess.Popen(
        ["C:\\windows\\system32\\conhost.exe", "-c", text],
        executable=sys.executable,
        env=environment,
        stdin=reads,
    )
    os.close(reads)
    threading.Thread(target=console.wait, daemon=True).start()
    tree.kill(mark)
    assert program.wait() == -signal.SIGKILL
    assert console.wait() == 0
    assert told.read_text() == "ended by itself"
