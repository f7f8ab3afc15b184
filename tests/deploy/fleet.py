"""A simulated fleet for one test module, and pyinfra run on it exactly as a user runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simbox import service

ROOT = Path(__file__).parents[2]
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class Outcome:
    """Attributes: code, text (both streams as seen, colours taken out), results (of --json, else None)."""

    code: int
    text: str
    results: Any = None

    def lines(self, box: str) -> list[str]:
        """What was printed for one box."""
        mark = re.compile(rf"\[{re.escape(box)}\] *")
        return [mark.split(line, maxsplit=1)[1] for line in self.text.splitlines() if mark.search(line)]

    def operations(self, kind: str, box: str) -> list[str]:
        """Names of the operations with that result (success, error, no_change) on a box."""
        return [one["name"] for one in self.results["results"]["operations"] if box in one[kind]]


class Fleet:
    """Boxes of the given profiles, in a directory and on addresses of their own."""

    def __init__(self, directory: Path, network: str, profiles: list[str], engine: str = "python") -> None:
        self.directory = directory
        self.found = service.up(
            directory=directory,
            network=network,
            profiles=profiles,
            engine="wine" if engine == "wine" else "python",
        )

    def box(self, name: str) -> dict[str, Any]:
        """The entry of fleet.json."""
        found: dict[str, Any] = next(one for one in self.found["boxes"] if one["name"] == name)
        return found

    def name(self, profile: str) -> str:
        """Name of the box with that profile."""
        return str(next(one["name"] for one in self.found["boxes"] if one["profile"] == profile))

    def down(self) -> None:
        """Stop the simulator."""
        service.down(self.directory)

    def drive_c(self, name: str) -> Path:
        """C: of a box as a folder of this machine."""
        return Path(self.box(name)["events"]).parent / "drive_c"

    def events(self, name: str, since: int = 0) -> list[dict[str, Any]]:
        """Events of a box from the given number on."""
        lines = Path(self.box(name)["events"]).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines[since:]]

    def ask(self, method: str, **params: Any) -> Any:
        """A control request to the simulator."""
        return service.ask(method, params, directory=self.directory)

    def environment(self) -> dict[str, str]:
        """Environment of a user of this fleet, without any proxy or terminal."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, "NINFER_FLEET_SIM_DIR": str(self.directory), "PYINFRA_PROGRESS": "off"}

    def pyinfra(self, *arguments: str, deploy: str = "deploy.py", json_results: bool = False) -> Outcome:
        """`pyinfra inventory deploy.py ARGUMENTS`, from the project's folder."""
        extra = ["--json"] if json_results else []
        done = subprocess.run(
            [sys.executable, "-m", "pyinfra", "inventory", deploy, *arguments, *extra],
            cwd=ROOT,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        text = _COLOUR.sub("", done.stderr + ("" if json_results else done.stdout))
        results = json.loads(done.stdout) if json_results and done.stdout.strip() else None
        return Outcome(done.returncode, text, results)
