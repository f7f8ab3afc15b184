"""An engine configured for another card is never built, and no output mode shows a secret."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import Fleet


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    number = 150 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), f"127.0.{number}", ["macro-lost"])
    yield fleet
    fleet.down()


def test_a_lost_macro_stops_the_build_before_anything_is_compiled(fleet: Fleet) -> None:
    done = fleet.pyinfra("-y")
    assert done.code == 1
    said = "\n".join(done.lines("gpu01"))
    assert "NINFER_TARGET_SM_COUNT=114 is wanted in every CUDA command" in said
    assert "Nothing was built" in said
    ninfer = fleet.drive_c("gpu01") / "ninfer"
    assert list(ninfer.rglob("compile_commands.json"))
    assert not list(ninfer.rglob("ninfer-serve.exe"))
    assert not (ninfer / "jobs" / "engine-build").exists()
    assert not (ninfer / "serve_task.bat").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--dry", "--diff", "-vvv", "--debug"),
        ("--dry", "--json"),
        ("--dry", "--debug-operations"),
        ("--debug-facts",),
    ],
)
def test_no_output_mode_shows_the_key_or_the_password(fleet: Fleet, arguments: tuple[str, ...]) -> None:
    box = fleet.box("gpu01")
    done = fleet.pyinfra(*arguments, json_results="--json" in arguments)
    shown = done.text + str(done.results)
    assert len(shown) > 100
    for file in ("api_key_file", "password_file"):
        assert Path(box[file]).read_text().strip() not in shown
