"""Boxes that must not be deployed to are refused alone, under --dry too, and the healthy one goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from fleet import Fleet

REASONS = {
    "rtx4090-24gb": ["128 SMs, the engine is built for 114", "24564 MiB of memory found"],
    "old-driver": ["driver 560.94 found, 616.56 is the oldest proven one"],
    "sata-cache": ["needs NVMe"],
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    number = 140 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), f"127.0.{number}", ["rtx4090d", *REASONS])
    yield fleet
    fleet.down()


@pytest.mark.parametrize("arguments", [("--dry", "--diff"), ("--dry",)])
def test_each_is_refused_alone_with_its_reason_in_a_plan(fleet: Fleet, arguments: tuple[str, ...]) -> None:
    plan = fleet.pyinfra(*arguments)
    assert plan.code == 1
    assert "Traceback" not in plan.text
    for profile, reasons in REASONS.items():
        lines = "\n".join(plan.lines(fleet.name(profile)))
        for reason in reasons:
            assert reason in lines
        assert "Remedy: " in lines
        assert not any(reason in lines for other in REASONS if other != profile for reason in REASONS[other])
    assert "Server answers" in plan.text
    assert "refused" not in "\n".join(plan.lines(fleet.name("rtx4090d")))


def test_applying_deploys_to_the_healthy_one_only(fleet: Fleet) -> None:
    done = fleet.pyinfra("-y", json_results=True)
    assert done.code == 1
    healthy = fleet.name("rtx4090d")
    assert "Server answers" in done.operations("success", healthy)
    for profile in REASONS:
        name = fleet.name(profile)
        assert name in done.results["results"]["failed_hosts"]
        assert not (fleet.drive_c(name) / "ninfer").exists()
