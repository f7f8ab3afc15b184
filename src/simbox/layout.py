"""Where a simulated fleet keeps its files, and what it was asked to be.

DIR/plan.json      what to bring up               DIR/fleet.json     what is up, for inventories
DIR/control.json   how to reach the simulator     DIR/daemon.{pid,lock,log}
DIR/secrets/       passwords and API keys         DIR/certificates/  one folder a box
DIR/python/BOX, DIR/wine/BOX                      the boxes themselves
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from simbox.box import EngineName

DIRECTORY_VARIABLE = "NINFER_FLEET_SIM_DIR"


def write_json(path: Path, value: Any, mode: int = 0o644) -> None:
    """Write a file by rename, so that a reader sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, ensure_ascii=False)
    os.replace(temporary, path)


@dataclass(frozen=True)
class BoxPlan:
    """One box to bring up; https_port and http_port 0 take free ports."""

    name: str
    address: str
    profile: str
    engine: EngineName
    groups: list[str] = field(default_factory=lambda: ["rtx4090d"])
    https_port: int = 5986
    http_port: int = 5985


@dataclass(frozen=True)
class Plan:
    """A fleet to bring up."""

    engine: EngineName
    mirror_address: str
    boxes: list[BoxPlan]

    @classmethod
    def read(cls, path: Path) -> Plan:
        """From plan.json."""
        data = json.loads(path.read_text("utf-8"))
        return cls(data["engine"], data["mirror_address"], [BoxPlan(**box) for box in data["boxes"]])

    def write(self, path: Path) -> None:
        """To plan.json."""
        write_json(path, asdict(self))


class Layout:
    """The files of one fleet directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.plan = self.directory / "plan.json"
        self.fleet = self.directory / "fleet.json"
        self.control = self.directory / "control.json"
        self.pid = self.directory / "daemon.pid"
        self.lock = self.directory / "daemon.lock"
        self.log = self.directory / "daemon.log"

    def box(self, engine: str, name: str) -> Path:
        """Folder of a box."""
        return self.directory / engine / name

    def secret(self, name: str, kind: str) -> Path:
        """File of a box's secret (kind password or api_key), made at random the first time."""
        path = self.directory / "secrets" / f"{name}.{kind}"
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32) if kind == "api_key" else "Sim-" + secrets.token_urlsafe(18))
        return path


def default_directory() -> Path:
    """NINFER_FLEET_SIM_DIR, else .simbox in the working directory."""
    return Path(os.environ.get(DIRECTORY_VARIABLE) or ".simbox").absolute()
