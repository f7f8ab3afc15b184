"""`ninfer-fleet sim ...`: simulated boxes to learn with, to rehearse on and to test against."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simbox import box_profile as profiles
from simbox import service

JOBS = "\\NInferFleet\\"
MOST_BOXES = 254  # each has an address of its own in one /24


def register(subparsers: Any) -> None:
    """Add the command `sim` to an argparse `add_subparsers()` object; each command sets `run(options) ->
    int`.
    """
    parser = subparsers.add_parser("sim", help="simulated Windows boxes", description=__doc__)
    commands = parser.add_subparsers(dest="sim_command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
        made.add_argument(
            "--dir", type=Path, help="fleet directory (default: $NINFER_FLEET_SIM_DIR or .simbox)"
        )
        made.set_defaults(run=lambda options: _guarded(run, options))
        return made

    up = command("up", _up, "start the boxes; does nothing when they are up")
    up.add_argument("--engine", choices=("python", "wine"), help="what runs PowerShell (default: python)")
    which = up.add_mutually_exclusive_group()
    which.add_argument("--boxes", type=_count, metavar="N", help="number of healthy boxes (default: 3)")
    which.add_argument(
        "--profile", nargs="+", metavar="NAME", help=f"one box each: {', '.join(profiles.names())}"
    )
    up.add_argument(
        "--network", metavar="A.B.C", help=f"first three numbers of their addresses ({service.NETWORK})"
    )
    command("down", _down, "stop the boxes; their state stays")
    status = command("status", _status, "show the boxes")
    status.add_argument("--json", action="store_true", help="everything, as JSON")
    drift = command(
        "drift", _drift, "change a box by hand: firewall scope, task time limit, one line of the bat"
    )
    drift.add_argument("box")
    reboot = command("reboot", _reboot, "switch a box off and on")
    reboot.add_argument("box")
    events = command("events", _events, "print what happened on a box, one JSON object a line")
    events.add_argument("box")
    events.add_argument("--since", default="", metavar="TIME", help="ISO 8601 time; only later events")
    events.add_argument("--kind", help="only events of this kind")
    faults = command("faults", _faults, "arm or disarm faults of a box's WinRM service")
    faults.add_argument("box")
    faults.add_argument(
        "fault", nargs="*", help="kind, or kind:field=value,... such as close_after:on=Send,times=2"
    )
    faults.add_argument("--clear", action="store_true", help="disarm all first (stands before the box)")
    command("reset", _reset, "stop the boxes and delete them")


def main(arguments: list[str] | None = None) -> int:
    """`python -m simbox.cli sim ...`."""
    parser = argparse.ArgumentParser(prog="ninfer-fleet")
    register(parser.add_subparsers(dest="command", required=True))
    options = parser.parse_args(arguments)
    code: int = options.run(options)
    return code


def _guarded(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    try:
        return run(options)
    except service.SimError as error:
        print(f"sim: {error}", file=sys.stderr)
        return 1


def _up(options: argparse.Namespace) -> int:
    fleet = service.up(
        engine=options.engine,
        boxes=options.boxes,
        profiles=options.profile,
        network=options.network,
        directory=options.dir,
    )
    for box in fleet["boxes"]:
        print(f"{box['name']}  {box['address']}:{box['https_port']}  {fleet['engine']}  {box['profile']}")
    return 0


def _down(options: argparse.Namespace) -> int:
    print("stopped" if service.down(options.dir) else "no simulated fleet is up")
    return 0


def _reset(options: argparse.Namespace) -> int:
    print("deleted" if service.reset(options.dir) else "no simulated fleet to delete")
    return 0


def _status(options: argparse.Namespace) -> int:
    rows = service.ask("status", directory=options.dir)
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    table = [
        (
            "BOX",
            "ADDRESS",
            "ENGINE",
            "PROFILE",
            "SHELLS",
            "TASKS",
            "SERVE PID",
            "REQUESTS",
            "HANDSHAKES",
            "STARTS",
        )
    ]
    for row in rows:
        tasks = _tasks(row["tasks"])
        serving = [str(item["OwningProcess"]) for item in row["listeners"]]
        table.append(
            (row["name"], row["address"], row["engine"], row["profile"], str(row["shells"]), tasks,
             ", ".join(serving) or "-", str(row["requests"]), str(row["handshakes"]), str(row["starts"]))
        )  # fmt: skip
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_BOXES:
        raise argparse.ArgumentTypeError(f"wanted: a number of 1 to {MOST_BOXES}; found {text!r}")
    return int(text)


def _tasks(states: dict[str, str]) -> str:
    """Those of jobs by their number, for a deploy leaves one for each: their names would fill three lines."""
    jobs = Counter(state for path, state in states.items() if path.startswith(JOBS))
    told = [f"{path} {state}" for path, state in states.items() if not path.startswith(JOBS)]
    told += [f"{count} job{'s' if count > 1 else ''} {state}" for state, count in jobs.items()]
    return ", ".join(told) or "-"


def _drift(options: argparse.Namespace) -> int:
    done = service.ask("drift", {"box": options.box}, directory=options.dir)
    for text in done:
        print(f"{options.box}: {text}")
    if not done:
        print(f"{options.box}: nothing to drift yet; deploy to it first", file=sys.stderr)
    return 0 if done else 1


def _reboot(options: argparse.Namespace) -> int:
    service.ask("reboot", {"box": options.box}, directory=options.dir)
    print(f"{options.box}: rebooted")
    return 0


def _events(options: argparse.Namespace) -> int:
    fleet = service.fleet(options.dir)
    if fleet is None:
        raise service.SimError("no simulated fleet is up; start one: ninfer-fleet sim up")
    box = next((box for box in fleet["boxes"] if box["name"] == options.box), None)
    if box is None:
        raise service.SimError(f"no box {options.box!r}")
    with open(box["events"], encoding="utf-8") as file:
        for line in file:
            event = json.loads(line)
            if event["time"] > options.since and options.kind in (None, event["kind"]):
                print(line.rstrip())
    return 0


def _fault(text: str) -> dict[str, Any]:
    kind, _, rest = text.partition(":")
    fault: dict[str, Any] = {"kind": kind}
    for part in rest.split(",") if rest else []:
        name, separator, value = part.partition("=")
        if not separator:
            raise service.SimError(f"{text!r}: expected field=value, found {part!r}")
        number = value.lstrip("-").replace(".", "", 1).isdigit()
        fault[name] = None if value == "always" else json.loads(value) if number else value
    return fault


def _faults(options: argparse.Namespace) -> int:
    params = {"box": options.box, "clear": options.clear, "add": [_fault(text) for text in options.fault]}
    armed = service.ask("faults", params, directory=options.dir)
    for fault in armed:
        print(json.dumps(fault))
    if not armed:
        print("no faults armed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
