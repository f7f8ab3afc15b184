"""The demo: three simulated boxes are planned, applied, found unchanged, drifted by hand and repaired.

Runs the commands that a user would type, as a user would, and fails when any of them does not do what the
README says. Each command's whole output stays in .simbox/demo/logs/.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
DIRECTORY = ROOT / ".simbox" / "demo"
DRIFTED = "gpu02"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
# What `sim drift` changes, as the plan has to name it: the fields, each old and new.
EXPECTED_DIFF = [
    "- remote: any",
    "+ remote: 100.64.0.0/10, fd7a:115c:a1e0::/48",
    '- set "SERVE=%SERVE% --max-concurrency 4 --max-pending-requests 16"',
    '+ set "SERVE=%SERVE% --max-concurrency 4 --max-pending-requests 64"',
    "- settings.execution_time_limit: 259200 s (P3D)",
    "+ settings.execution_time_limit: 0 s (PT0S)",
]
ENVIRONMENT = {**os.environ, "NINFER_FLEET_SIM_DIR": str(DIRECTORY), "NINFER_FLEET_SIMULATED": "1"}


class DemoFailed(Exception):
    """A command did not do what the README says."""


@dataclass(frozen=True)
class Output:
    """What a command printed, without colours."""

    lines: list[str]

    def box_lines(self, box: str) -> list[str]:
        """The lines of one box, without its name."""
        return [match[1] for line in self.lines if (match := re.match(rf"\s+\[{box}\] (.*)", line))]

    def totals(self) -> dict[str, int]:
        """The last line of the table of results: hosts, success, error, no change."""
        for line in reversed(self.lines):
            if line.strip().startswith("Grand total"):
                numbers = [0 if cell == "-" else int(cell) for cell in line.split()[2:]]
                return dict(zip(("hosts", "success", "error", "no_change"), numbers, strict=True))
        raise DemoFailed("the command printed no table of results")


def coloured(code: int, text: str) -> str:
    """Text in a colour or weight of the terminal; as it is where none reads (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or not sys.stdout.isatty()
    return text if plain else f"\033[{code}m{text}\033[0m"


def run(title: str, *command: str, show: str = "all") -> Output:
    """Run one command from the root of the project; print it and what it says (all, or the last table)."""
    print("\n" + coloured(1, f"$ {' '.join(command)}"), flush=True)
    result = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=ROOT,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    text = ANSI.sub("", result.stdout.decode(errors="replace"))
    log = DIRECTORY / "logs" / f"{title}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text, "utf-8")
    lines = [line.rstrip() for line in text.splitlines()]
    tables = [i for i, line in enumerate(lines) if line.startswith(("--> Detected changes", "--> Results"))]
    first = tables[-1] if show == "table" and tables and result.returncode == 0 else 0
    if first:
        print(f"    ... {first} lines above, in {log.relative_to(ROOT)}")
    print("\n".join(lines[first:]), flush=True)
    if result.returncode != 0:
        raise DemoFailed(f"exit code {result.returncode}")
    return Output(lines)


def expect(holds: bool, what: str) -> None:
    """Say that something was shown, or end the demo."""
    if not holds:
        raise DemoFailed(f"not so: {what}")
    print(coloured(32, f"=> {what}"), flush=True)


def changed_fields(output: Output, box: str) -> list[str]:
    """The lines of a diff that were taken away or added."""
    return [line.strip() for line in output.box_lines(box) if re.match(r"\s+[-+] ", line)]


@contextmanager
def simulated_boxes() -> Iterator[list[str]]:
    """Three fresh boxes, taken down at the end; yields their names."""
    run("0-reset", "ninfer-fleet", "sim", "reset")
    up = run("0-up", "ninfer-fleet", "sim", "up", "--boxes", "3", "--network", "127.0.78")
    try:
        yield [line.split()[0] for line in up.lines if "127.0.78." in line]
    finally:
        run("9-down", "ninfer-fleet", "sim", "down")


def demo(boxes: list[str]) -> None:
    """The story; raises DemoFailed at the first thing that does not hold."""
    deploy = ("pyinfra", "inventory", "deploy.py")
    expect(len(boxes) == 3, "three simulated boxes are up")

    plan = run("1-plan", *deploy, "--dry", "--diff", show="table")
    wanted = [box for box in boxes if any("Will create task" in line for line in plan.box_lines(box))]
    expect(wanted == boxes, "the plan shows what would be done on each box, and nothing was done")

    first = run("2-apply", *deploy, "-y", show="table").totals()
    expect(first["success"] > 0 and first["error"] == 0, f"{first['success']} operations changed the boxes")

    again = run("3-again", *deploy, "-y", show="table").totals()
    expect(again["no_change"] == again["hosts"], f"{again['no_change']} operations, every one: No changes")

    run("4-drift", "ninfer-fleet", "sim", "drift", DRIFTED)
    found = run("5-drift-plan", *deploy, "--dry", "--diff")
    expect(changed_fields(found, DRIFTED) == EXPECTED_DIFF, "the plan names exactly the three drifted fields")
    others = [box for box in boxes if box != DRIFTED and changed_fields(found, box)]
    expect(not others, "and nothing on the other boxes")

    repair = run("6-repair", *deploy, "-y")
    touched = [box for box in boxes if "Success" in repair.box_lines(box)]
    expect(touched == [DRIFTED], f"only {DRIFTED} was changed")
    # launcher, firewall rule, task; and the restart that makes the server run with the repaired launcher
    expect(
        repair.totals()["success"] == 4,
        "the three were repaired, the server restarted on the repaired launcher",
    )

    last = run("7-clean", *deploy, "--dry", "--diff", show="table")
    expect(not any(changed_fields(last, box) for box in boxes), "and there is nothing left to change")
    run("8-status", "ninfer-fleet", "sim", "status")


def main() -> int:
    try:
        with simulated_boxes() as boxes:
            demo(boxes)
    except DemoFailed as error:
        print("\n" + coloured(31, f"The demo failed: {error}"), file=sys.stderr)
        return 1
    print("\nThe demo passed. For your own boxes: README.md, 'First real box in ten minutes'.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
