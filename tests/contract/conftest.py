"""Boxes for the contract tests: `box` runs a test on every engine, `wine_box` on real PowerShell alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from case_boxes import CASES, KINDS, left_out
from powershell import EngineBox, engine_box, wine_missing
from powershell51 import coverage
from powershell51.parser import NoPowerShell


@pytest.fixture(scope="session")
def _wine_box() -> Iterator[EngineBox]:
    missing = wine_missing()
    if missing:
        pytest.skip(missing)
    with engine_box("wine") as box:
        yield box


@pytest.fixture(scope="session")
def _python_box() -> Iterator[EngineBox]:
    with engine_box("python") as box:
        yield box


@pytest.fixture
def wine_box(_wine_box: EngineBox) -> EngineBox:
    """A box with PowerShell for Windows under Wine; mark the test with pytest.mark.wine."""
    _wine_box.heal()
    return _wine_box


@pytest.fixture(params=[pytest.param("wine", marks=pytest.mark.wine), "python"])
def box(request: pytest.FixtureRequest) -> EngineBox:
    """A box of each engine in turn."""
    found: EngineBox = request.getfixturevalue(f"_{request.param}_box")
    found.heal()
    return found


def _measures(config: pytest.Config) -> bool:
    """Whether this process, not a worker of pytest-xdist, tells the coverage."""
    return bool(os.environ.get(coverage.VARIABLE)) and not hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    """With NINFER_FLEET_POWERSHELL_COVERAGE=FILE boxes get files that note which statements ran."""
    if os.environ.get(coverage.VARIABLE):
        try:
            coverage.install()
        except NoPowerShell as missing:
            raise pytest.UsageError(str(missing)) from missing


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Too small a share is a failure."""
    if _measures(session.config) and exitstatus == pytest.ExitCode.OK and not coverage.enough():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The cases that are no test of an engine, and the share of the PowerShell that the run reached, file by
    file."""
    told = Counter(
        f"{kind.engine}: {reason}"
        for kind in KINDS
        for case in CASES
        if (reason := left_out(case, kind.engine))
    )
    terminalreporter.section("contract cases that an engine cannot be asked, by their own declaration")
    for line, count in told.items():
        terminalreporter.write_line(f"{count} x {line}")
    if _measures(config):
        terminalreporter.section("coverage of src/winfleet/powershell on wine boxes")
        for line in coverage.report():
            terminalreporter.write_line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The notes are of no use once they are told."""
    if _measures(config):
        coverage.remove()
