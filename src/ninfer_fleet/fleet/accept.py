"""`ninfer-fleet accept HOST`: the contract of the box commands on a real box, changing nothing but a scratch folder.

Run it before the first deploy to a box, and after Windows or PowerShell on it was updated: it tells whether every
command answers there as it did in the tests.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from ninfer_fleet.fleet.inventory import Groups, InventoryError, add, read_fleet
from ninfer_fleet.owner import OWNER
from simbox import service
from winfleet.call import Call
from winfleet.contract import Case, Outcome, load_cases, report, run_case
from winfleet.contract.remote import RemoteBox, ScratchLeft, remote_box
from winfleet.secret_reference import SecretUnavailable
from winfleet.wire.errors import WireError

INVENTORY = Path("inventory/fleet.yml")
SCRATCH = r"C:\ProgramData"
_PREFIX = "@winrm/"


class UnknownHost(Exception):
    """No box of that name is known; the text says where it was looked for and what there is."""


@dataclass(frozen=True)
class Target:
    """A box to connect to. Attributes: name, data (of @winrm), platform (windows; of a simulated one its engine)."""

    name: str
    data: dict[str, Any]
    platform: str


def register(subparsers: Any) -> None:
    """Add the command `accept` to an argparse `add_subparsers()` object."""
    text = "run the contract of the box commands on a box, in a scratch folder"
    parser = subparsers.add_parser("accept", help=text, description=__doc__)
    parser.add_argument("host", help="name of the box in the inventory, with or without @winrm/")
    parser.add_argument(
        "--inventory", type=Path, metavar="FILE", help=f"default: {INVENTORY}, else the simulated boxes"
    )
    parser.add_argument(
        "--scratch", default=SCRATCH, metavar="FOLDER", help=f"where the scratch folder is made ({SCRATCH})"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="COMMAND", help="these box commands only, such as Set-BoxFile"
    )
    parser.set_defaults(run=_run)


def find(host: str, inventory: Path | None) -> Target:
    """The box of that name: in the inventory file, or without one among the simulated boxes that are up.

    Args: inventory: a fleet.yml; None: inventory/fleet.yml when there is one and NINFER_FLEET_SIMULATED is not set.

    Raises: UnknownHost, InventoryError.
    """
    name = host.removeprefix(_PREFIX)
    if inventory is None and INVENTORY.exists() and not os.environ.get("NINFER_FLEET_SIMULATED"):
        inventory = INVENTORY
    groups: Groups = {}
    if inventory is not None:
        groups, platform, where = read_fleet(inventory), "windows", str(inventory)
    else:
        fleet = service.fleet()
        if fleet is None:
            raise UnknownHost(
                f"{name}: there is no {INVENTORY}, and no simulated box is up; write it or run `ninfer-fleet sim up`"
            )
        for box in fleet["boxes"]:
            add(groups, box["name"], _declared(box), "the simulated fleet")
        platform, where = fleet["engine"], "the simulated fleet"
    known = {entry.removeprefix(_PREFIX): data for hosts in groups.values() for entry, data in hosts}
    if name not in known:
        raise UnknownHost(f"{name} is not in {where}; there are: {', '.join(sorted(known))}")
    return Target(
        name, {key: value for key, value in known[name].items() if key.startswith("winrm_")}, platform
    )


def accept(target: Target, cases: Sequence[Case], parent: str, tell: Callable[[str], None]) -> list[Outcome]:
    """Run the cases on a box and tell of each command as soon as it is through.

    Args: parent: the folder of the box in which the scratch folder is made; it is removed at the end.

    Raises: the WireError kinds of connecting, SecretUnavailable, ScratchLeft.
    """
    outcomes: list[Outcome] = []
    with remote_box(target.data, target.name, target.platform, parent, OWNER) as box:
        tell(_described(target, box))
        tell(f"scratch folder {box.scratch}, removed at the end\n")
        folders = [f"{box.scratch}\\{number}" for number in range(len(cases))]
        box.run([Call("New-BoxDirectory", Path=folders)])
        numbered = list(enumerate(cases))
        for command, group in groupby(numbered, key=lambda pair: pair[1].command):
            done = [_outcome(case, box, folders[number], number) for number, case in group]
            outcomes += done
            for line in report.block(command, done):
                tell(line)
    return outcomes


def _outcome(case: Case, box: RemoteBox, folder: str, number: int) -> Outcome:
    try:
        return run_case(case, box, folder, number, box.scratch)
    except WireError as error:
        return Outcome(case, "failed", (f"the connection: {error}",))


def _described(target: Target, box: RemoteBox) -> str:
    ready = box.ready
    rights = "administrator" if box.elevated else "no administrator"
    kind = "" if target.platform == "windows" else f" (simulated, {target.platform})"
    return (
        f"{target.name}{kind}  {box.endpoint.label}  {ready.get('ComputerName')}, PowerShell {ready.get('PSVersion')}, "
        f"code page {ready.get('OemCodePage')}, {ready.get('UserName')} ({rights})"
    )


def _declared(box: dict[str, Any]) -> dict[str, Any]:
    return {
        "address": box["address"],
        "port": box["https_port"],
        "user": box["user"],
        "password": f"file:{box['password_file']}",
        "certificate_sha256": box["certificate_sha256"],
    }


def _run(options: argparse.Namespace) -> int:
    cases = load_cases()
    unknown = set(options.only or []) - {case.command for case in cases}
    if unknown:
        print(f"accept: no cases for {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [case for case in cases if options.only is None or case.command in options.only]
    started = time.monotonic()
    try:
        target = find(options.host, options.inventory)
        outcomes = accept(target, chosen, options.scratch, lambda line: print(line, flush=True))
    except (UnknownHost, InventoryError, SecretUnavailable, ScratchLeft, WireError) as error:
        print(f"accept: {error}", file=sys.stderr)
        return 1
    print(f"\n{report.total(outcomes, time.monotonic() - started)}")
    return 1 if report.counts(outcomes)["failed"] else 0
