"""Boxes for the contract tests: `box` runs a test on every engine, `wine_box` on real PowerShell alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from powershell import EngineBox, engine_box, wine_missing


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
    return _wine_box


@pytest.fixture(params=[pytest.param("wine", marks=pytest.mark.wine), "python"])
def box(request: pytest.FixtureRequest) -> EngineBox:
    """A box of each engine in turn."""
    found: EngineBox = request.getfixturevalue(f"_{request.param}_box")
    return found
