"""What a deploy costs on the wire, counted by the box: requests, handshakes, bytes, PowerShell starts.

Counts, not seconds: a slow machine adds a poll or two, no more. Prints the table of docs/wire.md.

    python benchmarks/bench_wire.py [--engine wine] [--mode persistent]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from simbox import service
from simbox.eventlog import EventLog

ROOT = Path(__file__).parents[1]
RUNS = {
    "first apply (builds the engine)": ("-y",),
    "apply, nothing to change": ("-y",),
    "plan, nothing to change": ("--dry", "--diff"),
}
MODES = {"persistent": (), "percommand": ("--data", "winrm_mode=percommand")}


def counts(box: dict[str, Any]) -> Counter[str]:
    """Totals of a box's event log."""
    return Counter(EventLog(Path(box["events"])).totals())


def deploy(directory: Path, *arguments: str) -> None:
    """Run the deploy as a user does; raises CalledProcessError with its output shown."""
    environment = {**os.environ, "NINFER_FLEET_SIM_DIR": str(directory), "NINFER_FLEET_SIMULATED": "1"}
    subprocess.run(
        [sys.executable, "-m", "pyinfra", "inventory", "deploy.py", *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def measure(engine: str, network: str, mode: tuple[str, ...]) -> dict[str, Counter[str]]:
    """The runs of RUNS, one after another on a fresh box; by name what each added to the counts."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "fleet"
        fleet = service.up(
            engine="wine" if engine == "wine" else "python", boxes=1, network=network, directory=directory
        )
        try:
            for name, arguments in RUNS.items():
                before = counts(fleet["boxes"][0])
                deploy(directory, *arguments, *mode)
                results[name] = counts(fleet["boxes"][0]) - before
        finally:
            service.down(directory)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("python", "wine"), default="python")
    parser.add_argument("--network", default="127.0.79")
    parser.add_argument("--mode", choices=tuple(MODES), action="append")
    options = parser.parse_args()
    print("| run | mode | HTTP requests | handshakes | PowerShell starts | KiB to the box | KiB from it |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for mode in options.mode or MODES:
        for run, total in measure(options.engine, options.network, MODES[mode]).items():
            cells = [total["http_request"], total["handshake"], total["process_start"]]
            cells += [round(total["bytes_in"] / 1024), round(total["bytes_out"] / 1024)]
            print(f"| {run} | {mode} | " + " | ".join(str(cell) for cell in cells) + " |")


if __name__ == "__main__":
    main()
