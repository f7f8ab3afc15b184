"""`ninfer-fleet`: what pyinfra itself does not do for a fleet of NInfer boxes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ninfer_fleet.fleet import accept
from simbox import cli as simulated


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code (0 done, 1 failed, 2 wrong usage).

    Args:
        arguments: without the program's name; None: those of this process.
    """
    parser = argparse.ArgumentParser(prog="ninfer-fleet", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    simulated.register(commands)
    accept.register(commands)
    options = parser.parse_args(arguments)
    code: int = options.run(options)
    return code
