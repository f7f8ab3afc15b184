"""Gaps of pyinfra's command line, closed from config.py, which pyinfra reads before everything else.

- `pyinfra inventory deploy.py`, with `inventory` a directory, ends in an IsADirectoryError in pyinfra 3.10.
  Here it means inventory/fleet.py; group_data is loaded as usual.
- After a failure pyinfra asks whether to go on, and without a terminal that question ends in an EOFError
  traceback. Here a run without a terminal goes on with the other boxes (the exit code stays 1), and the
  question whether to apply the plan is answered with no, with exit code 1 when there was something to apply.
- A pattern of --limit or --exclude that matches nothing is a warning and exit code 0 in pyinfra, and a
  misspelt --exclude changes the very box that was to be left alone. Here it ends the run, exit code 1.
- Ctrl+C ends at once, shells deleted, with exit code 130; pyinfra waits for running commands and returns 0.
- Secrets are taken out of everything that pyinfra prints.

All of it replaces functions of pyinfra_cli.cli by name; `check` tells whether they still are what this module
knows, and a test calls it, so an upgrade of pyinfra cannot break this silently.
"""

from __future__ import annotations

import inspect
import signal
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click
from pyinfra.context import ctx_state
from pyinfra_cli import cli  # type: ignore[import-untyped]

from winfleet import redaction
from winfleet.current import run

FLEET_FILE = "fleet.py"
INTERRUPTED = 128 + signal.SIGINT
"""What a shell itself reports for a program that Ctrl+C ended."""
_FAILURE_QUESTIONS = ("One of more hosts failed to connect, continue?", "One of more hosts failed, continue?")


class HookMismatch(RuntimeError):
    """pyinfra has changed where these hooks grip."""


def check() -> None:
    """Raises HookMismatch when pyinfra's functions are not those that this module was written for."""
    wanted = {
        "make_inventory": ["inventory", "override_data", "cwd", "group_data_directories"],
        "_do_confirm": ["msg"],
        "_get_inventory_pattern_matches": ["inventory", "patterns", "option_name"],
    }
    for name, parameters in wanted.items():
        function = getattr(cli, name, None)
        found = list(inspect.signature(function).parameters) if callable(function) else None
        if found != parameters:
            raise HookMismatch(
                f"pyinfra_cli.cli.{name} takes {found}, not {parameters}: another pyinfra than 3.10?"
            )
    questions = inspect.getsource(cli._set_fail_prompts)
    for question in _FAILURE_QUESTIONS:
        if question not in questions:
            raise HookMismatch(f"pyinfra no longer asks {question!r}")


def install() -> None:
    """Put the hooks in place; a second call does nothing. Raises HookMismatch."""
    if getattr(cli.make_inventory, "is_winfleet_hook", False):
        return
    check()
    _install_inventory()
    _install_confirm()
    _install_patterns()
    _install_interrupt()
    redaction.install()


def _install_inventory() -> None:
    original = cli.make_inventory

    def make_inventory(
        inventory: str, override_data: Any = None, cwd: Any = None, group_data_directories: Any = None
    ) -> Any:
        return original(
            inventory_file(inventory),
            override_data=override_data,
            cwd=cwd,
            group_data_directories=group_data_directories,
        )

    make_inventory.is_winfleet_hook = True  # type: ignore[attr-defined]
    cli.make_inventory = make_inventory


def inventory_file(inventory: str) -> str:
    """The file that an inventory argument means: fleet.py of a directory, anything else as it is.

    Raises click.UsageError when a directory has no fleet.py.
    """
    path = Path(inventory)
    if not path.is_dir():
        return inventory
    if not (path / FLEET_FILE).is_file():
        raise click.UsageError(f"{inventory} is a directory without {FLEET_FILE}; name an inventory file")
    return str(path / FLEET_FILE)


def _install_confirm() -> None:
    original = cli._do_confirm

    def _do_confirm(msg: str) -> bool:
        if sys.stdin is not None and sys.stdin.isatty():
            return bool(original(msg))
        if msg in _FAILURE_QUESTIONS:
            click.echo(f"    {msg} No terminal to ask: going on with the others.", err=True)
            return True
        if not _something_to_apply():
            click.echo("    Nothing to apply.", err=True)
            return False
        raise cli.CliError(
            "nothing was applied: there is no terminal to ask on; mend: add -y to apply, --dry for a plan alone"
        )

    cli._do_confirm = _do_confirm


def _something_to_apply() -> bool:
    return any(meta.ops_change for meta in run().meta.values())


def _install_patterns() -> None:
    original = cli._get_inventory_pattern_matches

    def _get_inventory_pattern_matches(inventory: Any, patterns: Any, option_name: str) -> Any:
        for pattern in patterns:
            hosts = inventory.get_group(pattern, None)
            if hosts is None:
                hosts = [host for host in inventory if fnmatch(host.name, pattern)]
            if not hosts:
                names = ", ".join(sorted(host.name for host in inventory)) or "none"
                raise cli.CliError(
                    f"{option_name} {pattern} matches no box and no group with boxes; nothing was done; mend: give"
                    f" one name, group or pattern for each {option_name}; the boxes are: {names}"
                )
        return original(inventory, patterns, option_name)

    cli._get_inventory_pattern_matches = _get_inventory_pattern_matches


def _install_interrupt() -> None:
    theirs = signal.getsignal(signal.SIGINT)
    if getattr(theirs, "__module__", "") != "pyinfra_cli.main":
        return

    def interrupted(signum: int, frame: Any) -> None:
        if ctx_state.isset():  # type: ignore[no-untyped-call]
            # Disconnecting waits for a free place in this pool: a command would hold up the end until its own.
            run().pool.kill(block=False)
        click.echo("Ended with Ctrl+C; jobs on the boxes go on, and the next run finds them.", err=True)
        sys.exit(INTERRUPTED)

    signal.signal(signal.SIGINT, interrupted)
