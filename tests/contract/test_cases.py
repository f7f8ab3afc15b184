"""Every case of the box commands' contract, on the python engine and on PowerShell for Windows in three languages;
with --box @winrm/HOST also on that box, in a scratch folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from case_boxes import CASES, KINDS, Kind, left_out
from case_runs import CaseRuns
from powershell import wine_missing

from winfleet.contract import Case
from winfleet.contract.case import DIRECTORY
from winfleet.wire.program import build_program

_PARAMETERS = ("place", "case")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The engines, and the box that --box names; place by place, for each has one session."""
    if not set(_PARAMETERS) <= set(metafunc.fixturenames):
        return
    places: list[Kind | str] = [*KINDS]
    if box := metafunc.config.getoption("--box"):
        places.append(box)
    metafunc.parametrize(
        _PARAMETERS,
        [
            pytest.param(
                place,
                case,
                id=f"{place} - {case.title}",
                marks=[pytest.mark.wine] if isinstance(place, Kind) and place.engine == "wine" else [],
            )
            for place in places
            for case in CASES
            if isinstance(place, str) or not left_out(case, place.engine)
        ],
    )


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[CaseRuns]:
    """Of all cases that were chosen on the command line, where this machine has what they need."""
    wanted: dict[Kind | str, list[Case]] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.function is test_case:
            place: Any = item.callspec.params["place"]
            case: Any = item.callspec.params["case"]
            if not _missing(place):
                wanted.setdefault(place, []).append(case)
    started = CaseRuns(wanted)
    yield started
    started.stop()


def _missing(place: Kind | str) -> str | None:
    return wine_missing() if isinstance(place, Kind) and place.engine == "wine" else None


def test_case(place: Kind | str, case: Case, runs: CaseRuns) -> None:
    missing = _missing(place)
    if missing:
        pytest.skip(missing)
    outcome = runs.outcome(place, case)
    if outcome.status == "skipped":
        pytest.skip(outcome.reason)
    if outcome.differences:
        pytest.fail("\n".join(outcome.differences), pytrace=False)


def test_every_command_that_is_sent_has_cases() -> None:
    sent = set(re.findall(r"^function ([A-Z][a-z]+-Box[A-Za-z]+)", build_program().text, re.MULTILINE))
    assert sent
    assert sent - {case.command for case in CASES} == set()
    assert {path.stem for path in DIRECTORY.glob("*/cases/*.yml")} - sent == set(), (
        "cases of a command that there is not"
    )


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 150
    refusals = {case.command for case in CASES if case.error is not None}
    changing = {case.command for case in CASES if not case.command.startswith(("Get-", "Test-"))}
    assert changing - refusals == set(), "a command that changes something has a case of what it refuses"
