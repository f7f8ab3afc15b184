"""A simulated Windows box: a folder with its drives and its state, and the Windows services on top."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from simbox import box_profile as profiles
from simbox import seed
from simbox.box_profile import Profile
from simbox.eventlog import EventLog
from simbox.filesystem import Filesystem
from simbox.store import Store
from simbox.windows import Windows

if TYPE_CHECKING:
    from simbox.task.starter import ProcessStarter

EngineName = Literal["python", "wine"]


class Box:
    """One box; everything that the endpoints, engines, programs and stand-ins need of it.

    Attributes:
        name: its name in the fleet and its Windows computer name (upper case there).
        directory: BOX; of a wine box also its Wine prefix.
        address: its own loopback address, 127.x.y.z.
        engine: python or wine.
        profile: what it was made of.
        drive_c: host folder of C:.
        store: persisted state. events: counted and logged happenings. filesystem: path translation.
        windows: the services (scheduler, firewall, gpu, disk, acl, account, network, process, system,
        junction).
        simulator_environment: SIMBOX_PORT and SIMBOX_TOKEN, which every process of a wine box must have; the
            stand-ins reach this simulator by them. Empty while no simulator serves the box.
    """

    def __init__(
        self, directory: Path, name: str, address: str, profile: Profile, engine: EngineName
    ) -> None:
        self.directory = directory.absolute()
        self.name = name
        self.address = address
        self.profile = profile
        self.engine: EngineName = engine
        self.drive_c = self.directory / "drive_c"
        self.drive_c.mkdir(parents=True, exist_ok=True)
        self.filesystem = Filesystem(self.directory)
        fresh = not (self.directory / "state.json").exists()
        self.store = Store(self.directory / "state.json", seed.state(name, profile) if fresh else None)
        self.events = EventLog(self.directory / "events.jsonl")
        self.simulator_environment: dict[str, str] = {}
        self.windows = Windows(self)
        if fresh:
            seed.drives(self)
            (self.directory / "box.json").write_text(
                json.dumps({"name": name, "address": address, "profile": profile.name, "engine": engine}),
                "utf-8",
            )

    @classmethod
    def open(
        cls, directory: Path, name: str, address: str, profile: str | Profile, engine: EngineName = "python"
    ) -> Box:
        """The box in that folder, made from the profile when the folder holds none yet.

        A wine box's prefix must be in the folder already (simbox.engines.wine.prefix makes it).
        """
        loaded = profiles.load(profile) if isinstance(profile, str) else profile
        return cls(directory, name, address, loaded, engine)

    def boot(self, starter: ProcessStarter | None = None) -> None:
        """Switch on: boot and logon triggers fire, repeating ones begin. `starter` starts task actions."""
        self.windows.boot(starter)

    def shut_down(self) -> None:
        """Switch off: every process of the box ends, timers stop. The state on disk stays."""
        self.windows.shut_down()
