"""Every command that the README shows after a `$` does what a newcomer expects, in the order of the page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet import ROOT

from simbox import service

# The first two are run by other means: the demo in test_demo.py, and this very suite.
ELSEWHERE = {"make demo", "make test"}
README = (ROOT / "README.md").read_text("utf-8")


def commands() -> list[str]:
    """The commands of the console blocks, without their comments."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line[:2] == "$ "]
    return [re.split(r"\s+#\s", line)[0].strip() for line in lines]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    directory = tmp_path_factory.mktemp("readme") / "fleet"
    number = 180 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    yield {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "NINFER_FLEET_SIM_DIR": str(directory),
        "NINFER_FLEET_SIM_NETWORK": f"127.0.{number}",
        "NINFER_FLEET_SIMULATED": "1",
    }
    service.down(directory)


def test_the_first_screen_shows_the_two_commands_and_the_daily_two() -> None:
    first_screen = "\n".join(README.splitlines()[:30])
    for command in (*ELSEWHERE, "pyinfra inventory deploy.py --dry --diff", "pyinfra inventory deploy.py -y"):
        assert f"$ {command} " in first_screen


@pytest.mark.parametrize("command", [command for command in commands() if command not in ELSEWHERE])
def test_command(command: str, environment: dict[str, str]) -> None:
    done = subprocess.run(
        shlex.split(command),
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_settings_page_is_that_of_the_models() -> None:
    from ninfer_fleet.settings.reference import page

    wanted = page()
    assert (ROOT / "docs" / "settings.md").read_text("utf-8") == wanted, (
        "run: python -m ninfer_fleet.settings.reference > docs/settings.md"
    )


def test_every_setting_says_what_it_means() -> None:
    from ninfer_fleet.settings.reference import NOUNS

    silent = [
        f"{noun}.{name}"
        for noun, model in NOUNS.items()
        for name, field in model.model_fields.items()
        if not field.description
    ]
    assert silent == []
