"""Every case of the box commands' contract, on the python engine and on PowerShell for Windows in three languages;
with --box @winrm/HOST also on that box, in a scratch folder.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from case_boxes import CASES, KINDS, DirectBox, Kind, direct_box
from powershell import wine_missing

from winfleet.contract import Case, run_case


@pytest.fixture(scope="module")
def direct(request: pytest.FixtureRequest) -> Iterator[DirectBox]:
    kind: Kind = request.param
    missing = wine_missing() if kind.engine == "wine" else None
    if missing:
        pytest.skip(missing)
    with direct_box(kind) as box:
        yield box


_DIRECT = [
    pytest.param(kind, id=kind.name, marks=[pytest.mark.wine] if kind.engine == "wine" else [])
    for kind in KINDS
]


@pytest.mark.parametrize("direct", _DIRECT, indirect=True)
@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_case(direct: DirectBox, case: Case) -> None:
    number = CASES.index(case)
    outcome = run_case(case, direct, direct.folder(number), number)
    if outcome.status == "skipped":
        pytest.skip(outcome.reason)
    if outcome.differences:
        pytest.fail("\n".join(outcome.differences), pytrace=False)
