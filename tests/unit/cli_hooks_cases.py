"""The hooks still fit the pyinfra that is installed, and do what they say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import pytest
from pyinfra.api import Inventory
from pyinfra_cli import cli

from winfleet import cli_hooks


class Terminal:
    def __init__(self, is_terminal: bool) -> None:
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.fixture
def hooked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []

    def make_inventory(
        inventory: str, override_data: Any = None, cwd: Any = None, group_data_directories: Any = None
    ) -> str:
        calls.append(("inventory", inventory, group_data_directories))
        return inventory

    def _do_confirm(msg: str) -> bool:
        calls.append(("asked", msg))
        return False

    monkeypatch.setattr(cli, "make_inventory", make_inventory)
    monkeypatch.setattr(cli, "_do_confirm", _do_confirm)
    monkeypatch.setattr(cli, "_get_inventory_pattern_matches", cli._get_inventory_pattern_matches)
    cli_hooks.install()
    return calls


def test_the_installed_pyinfra_is_the_one_that_the_hooks_know() -> None:
    cli_hooks.check()


def test_another_signature_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_do_confirm", lambda msg, default: True)
    with pytest.raises(cli_hooks.HookMismatch, match="_do_confirm"):
        cli_hooks.check()


def test_a_directory_means_its_fleet_file(hooked: list[Any], tmp_path: Path) -> None:
    (tmp_path / "fleet.py").write_text("")
    cli.make_inventory(str(tmp_path), group_data_directories=["x"])
    cli.make_inventory("inventory.py")
    assert hooked == [("inventory", str(tmp_path / "fleet.py"), ["x"]), ("inventory", "inventory.py", None)]


def test_a_directory_without_a_fleet_file_is_said_so(hooked: list[Any], tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"without fleet\.py"):
        cli.make_inventory(str(tmp_path))


def test_without_a_terminal_failures_do_not_stop_the_others_and_plans_are_not_applied(
    hooked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(False))
    assert cli._do_confirm("One of more hosts failed, continue?") is True
    assert cli._do_confirm("One of more hosts failed to connect, continue?") is True
    monkeypatch.setattr(cli_hooks, "_something_to_apply", lambda: False)
    assert cli._do_confirm("Detected changes displayed above, skip this step with -y") is False
    monkeypatch.setattr(cli_hooks, "_something_to_apply", lambda: True)
    with pytest.raises(cli.CliError, match="add -y to apply") as ended:
        cli._do_confirm("Detected changes displayed above, skip this step with -y")
    assert ended.value.exit_code == 1
    assert hooked == []


@pytest.mark.parametrize("option", ["--limit", "--exclude"])
def test_a_pattern_that_matches_nothing_ends_the_run(hooked: list[Any], option: str) -> None:
    inventory = Inventory((["gpu01", "gpu02"], {}), berlin=(["gpu02"], {}), nobody=([], {}))
    for pattern in ("gpu1", "nobody", "gpu01,gpu02"):
        with pytest.raises(cli.CliError, match="the boxes are: gpu01, gpu02") as ended:
            cli._get_inventory_pattern_matches(inventory, ["gpu01", pattern], option)
        assert f"{option} {pattern} matches no box" in str(ended.value.message)
        assert ended.value.exit_code == 1
    matched = cli._get_inventory_pattern_matches(inventory, ["berlin", "gpu*"], option)
    assert {host.name for host in matched} == {"gpu01", "gpu02"}


def test_on_a_terminal_pyinfra_asks(hooked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(True))
    assert cli._do_confirm("One of more hosts failed, continue?") is False
    assert hooked == [("asked", "One of more hosts failed, continue?")]


def test_a_second_call_installs_nothing_more(hooked: list[Any]) -> None:
    before = cli.make_inventory
    cli_hooks.install()
    assert cli.make_inventory is before
