"""The whole deploy as a user runs it: plan, apply, nothing left to do, drift found by name, repair."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import Fleet

OPERATIONS = [
    "Folders",
    "Access to folders",
    "Engine built for this card",
    "Release in use",
    "Model verified",
    "Port open to Tailscale only",
    "Port closed to everybody else",
    "API key",
    "Draft depth",
    "Launcher",
    "Task that keeps the server running",
    "Server answers",
]
# It looks, and changes nothing on a box without rules of a first-listen prompt.
LOOKS = "Port closed to everybody else"
# What `sim drift` changes by hand, as the plan names it: one line of the launcher, one field of rule and task
# each.
DRIFT = [
    '- set "SERVE=%SERVE% --max-concurrency 4 --max-pending-requests 16"',
    '+ set "SERVE=%SERVE% --max-concurrency 4 --max-pending-requests 64"',
    "- remote: any",
    "+ remote: 100.64.0.0/10, fd7a:115c:a1e0::/48",
    "- settings.execution_time_limit: 259200 s (P3D)",
    "+ settings.execution_time_limit: 0 s (PT0S)",
]
MOST_REQUESTS = 20
BOX = "gpu01"


def _worker() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.fixture(scope="module", params=["python", pytest.param("wine", marks=pytest.mark.wine)])
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    if request.param == "wine":
        from simbox.engines.wine import locate

        try:
            locate.locate()
        except locate.Missing as missing:
            pytest.skip(str(missing))
    number = {"python": 120, "wine": 130}[request.param] + _worker()
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), f"127.0.{number}", ["rtx4090d"], request.param)
    yield fleet
    fleet.down()


def plan_names_everything_and_touches_nothing(fleet: Fleet) -> None:
    before = sorted(fleet.drive_c(BOX).rglob("*")) if fleet.found["engine"] == "python" else []
    plan = fleet.pyinfra("--dry", "--diff")
    assert plan.code == 0, plan.text
    for name in OPERATIONS:
        assert name in plan.text
    assert "Preflight: NVIDIA GeForce RTX 4090 D, 114 SMs, driver 616.56" in plan.text
    assert "NINFER_TARGET_SM_COUNT=114" in plan.text
    assert '+ set "SERVE=%SERVE% --kv-dtype rk4v4-e8 --kv-capacity auto"' in plan.text
    assert not (fleet.drive_c(BOX) / "ninfer").exists()
    if before:
        assert sorted(fleet.drive_c(BOX).rglob("*")) == before


def apply_changes_every_operation_and_the_server_answers(fleet: Fleet) -> None:
    done = fleet.pyinfra("-y", json_results=True)
    assert done.code == 0, done.text
    assert done.operations("success", BOX) == [one for one in OPERATIONS if one != LOOKS]
    assert done.operations("no_change", BOX) == [LOOKS]
    drive = fleet.drive_c(BOX)
    release = json.loads((drive / "ninfer" / "current" / "release.json").read_text())
    assert (release["sm_count"], release["cuda_architecture"], release["commit"]) == (114, 89, "3d11fd64")
    assert (drive / "ninfer" / "state" / "draft_tokens.txt").read_text().strip() == "7"


def the_key_is_in_its_file_and_nowhere_else(fleet: Fleet) -> None:
    key = Path(fleet.box(BOX)["api_key_file"]).read_text().strip()
    places = [
        path
        for path in (fleet.drive_c(BOX) / "ninfer").rglob("*")
        if path.is_file() and not path.is_symlink() and key.encode() in path.read_bytes()
    ]
    assert [path.name for path in places] == ["api_key.txt"]


def a_second_run_changes_nothing_and_costs_little(fleet: Fleet) -> None:
    since = len(fleet.events(BOX))
    done = fleet.pyinfra("-y", json_results=True)
    assert done.code == 0, done.text
    assert done.operations("no_change", BOX) == OPERATIONS, done.text
    kinds = [event["kind"] for event in fleet.events(BOX, since)]
    requests, starts = kinds.count("http_request"), kinds.count("process_start")
    print(
        f"{BOX} ({fleet.found['engine']}): {requests} HTTP requests, {starts} PowerShell starts, "
        f"nothing changed"
    )
    assert requests <= MOST_REQUESTS
    assert starts == 1


def drift_is_found_by_name_and_only_that_is_repaired(fleet: Fleet) -> None:
    assert len(fleet.ask("drift", box=BOX)) == 3
    plan = fleet.pyinfra("--dry", "--diff")
    assert plan.code == 0, plan.text
    changed = [line for line in plan.lines(BOX) if line.lstrip().startswith(("+", "-"))]
    assert sorted(line.strip() for line in changed) == sorted(DRIFT), plan.text
    done = fleet.pyinfra("-y", json_results=True)
    assert done.code == 0, done.text
    assert done.operations("success", BOX) == [
        "Port open to Tailscale only",
        "Launcher",
        "Task that keeps the server running",
        "Server answers",
    ]
    again = fleet.pyinfra("-y", json_results=True)
    assert again.operations("no_change", BOX) == OPERATIONS, again.text


def a_rotated_key_restarts_the_server_and_leaves_the_launcher_alone(fleet: Fleet) -> None:
    path = Path(fleet.box(BOX)["api_key_file"])
    path.write_text("0f3b9c77d1e2a45566b7c8d9e0f1a2b3\n")
    plan = fleet.pyinfra("--dry", "--diff")
    assert "Will restart ninfer-serve" in plan.lines(BOX), plan.text
    assert "because what it is started from will change: API key" in plan.text
    done = fleet.pyinfra("-y", json_results=True)
    assert done.code == 0, done.text
    assert done.operations("success", BOX) == ["API key", "Server answers"]
    assert fleet.pyinfra("-y", json_results=True).operations("no_change", BOX) == OPERATIONS


def another_draft_depth_takes_effect_at_once(fleet: Fleet) -> None:
    plan = fleet.pyinfra("--dry", "--diff", "--data", 'serve={"draft_tokens": 3}')
    assert "because what it is started from will change: draft depth" in plan.text, plan.text
    data = ("--data", 'serve={"draft_tokens": 3}')
    assert fleet.pyinfra("-y", *data, json_results=True).operations("success", BOX) == [
        "Draft depth",
        "Server answers",
    ]
    assert fleet.pyinfra("-y", *data, json_results=True).operations("no_change", BOX) == OPERATIONS


def serving(fleet: Fleet) -> list[int]:
    """Ids of the processes that listen on the box."""
    status = next(row for row in fleet.ask("status") if row["name"] == BOX)
    return sorted(one["OwningProcess"] for one in status["listeners"])


def an_altered_program_is_replaced_and_no_longer_runs(fleet: Fleet) -> None:
    before = serving(fleet)
    program = fleet.drive_c(BOX) / "ninfer" / "current" / "ninfer-serve.exe"
    with program.open("ab") as file:
        file.write(b"altered by hand")
    # Of the same size, and one that Windows would load before its own: neither shows in sizes of known files.
    dll = next(program.parent.glob("*.dll"))
    dll.write_bytes(bytes(dll.stat().st_size))
    (program.parent / "version.dll").write_bytes(b"planted")
    plan = fleet.pyinfra("--dry", "--diff")
    assert f"{dll.name}: not the file that was built" in plan.text, plan.text
    assert "version.dll: a file that the build did not make" in plan.text, plan.text
    done = fleet.pyinfra("-y", json_results=True)
    assert done.code == 0, done.text
    assert done.operations("success", BOX) == ["Engine built for this card", "Server answers"]
    assert serving(fleet) not in ([], before)
    assert not (program.parent / "version.dll").exists()
    assert any(dll.read_bytes())
    assert fleet.pyinfra("-y", json_results=True).operations("no_change", BOX) == OPERATIONS


def a_manifest_of_an_older_version_is_staged_anew_without_a_build(fleet: Fleet) -> None:
    root = fleet.drive_c(BOX) / "ninfer"
    manifest, built = root / "current" / "release.json", root / "jobs" / "engine-build" / "started"
    release, when = json.loads(manifest.read_text()), built.read_text()
    manifest.write_text(json.dumps({name: value for name, value in release.items() if name != "format"}))
    plan = fleet.pyinfra("--dry", "--diff")
    assert "release.json was written by an older version: staged anew" in plan.text, plan.text
    assert "Will run job" not in plan.text, plan.text
    assert fleet.pyinfra("-y", json_results=True).code == 0
    assert json.loads(manifest.read_text()) == release
    assert built.read_text() == when


def test_plan_apply_nothing_left_drift_repair_and_a_new_key(fleet: Fleet) -> None:
    # One test, since each part goes on from the one before, and a runner may spread tests over processes.
    plan_names_everything_and_touches_nothing(fleet)
    apply_changes_every_operation_and_the_server_answers(fleet)
    the_key_is_in_its_file_and_nowhere_else(fleet)
    a_second_run_changes_nothing_and_costs_little(fleet)
    drift_is_found_by_name_and_only_that_is_repaired(fleet)
    a_rotated_key_restarts_the_server_and_leaves_the_launcher_alone(fleet)
    if fleet.found["engine"] == "python":
        an_altered_program_is_replaced_and_no_longer_runs(fleet)
        a_manifest_of_an_older_version_is_staged_anew_without_a_build(fleet)
        another_draft_depth_takes_effect_at_once(fleet)
