"""NInfer can be taken off a box again, keeping what is costly: model, cache and logs."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from fleet import Fleet

BOX = "gpu01"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    number = 170 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), f"127.0.{number}", ["rtx4090d"])
    yield fleet
    fleet.down()


def test_teardown_removes_everything_but_model_cache_and_logs_and_a_deploy_brings_it_back(
    fleet: Fleet,
) -> None:
    assert fleet.pyinfra("-y").code == 0
    done = fleet.pyinfra("-y", deploy="deploys/teardown.py", json_results=True)
    assert done.code == 0, done.text
    left = sorted(path.name for path in (fleet.drive_c(BOX) / "ninfer").iterdir())
    assert left == ["logs", "models"]
    status = next(row for row in fleet.ask("status") if row["name"] == BOX)
    assert status["tasks"] == {}
    assert status["listeners"] == []
    again = fleet.pyinfra("-y", deploy="deploys/teardown.py", json_results=True)
    assert again.results["results"]["totals"]["success"] == 0, again.text
    back = fleet.pyinfra("-y", json_results=True)
    assert back.code == 0, back.text
    assert (
        BOX
        in next(one for one in back.results["results"]["operations"] if one["name"] == "Model verified")[
            "no_change"
        ]
    )
