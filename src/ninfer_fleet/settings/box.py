"""Where things lie on a box, and what hardware and driver it must have."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from ninfer_fleet.settings.trap import OwnFolder, Values, refuse


class Layout(Values):
    r"""Folders on the box, all below one root.

    Example::

        Layout(root=r"D:\ninfer").current   # D:\ninfer\current
    """

    root: OwnFolder = Field(default=r"C:\ninfer", description="short: the build appends long names below it")

    @field_validator("root")
    @classmethod
    def _short(cls, root: str) -> str:
        if len(root) > 40:
            raise refuse(
                f"{root!r} has {len(root)} characters; the build below it then passes Windows' 260",
                r"use a root such as C:\ninfer",
            )
        odd = "".join(sorted(set(re.sub(r"[A-Za-z0-9._:\\-]", "", root))))
        if odd:
            raise refuse(
                f"{root!r} holds {odd!r}: build tools split on blanks, and cmd.exe on signs in the path of "
                "the .bat that the task starts",
                r"use a root of letters, digits, dots and hyphens such as C:\ninfer",
            )
        return root

    def below(self, *parts: str) -> str:
        """The path of parts below the root."""
        return "\\".join((self.root, *parts))

    @property
    def releases(self) -> str:
        return self.below("releases")

    @property
    def current(self) -> str:
        """The junction to the release in use."""
        return self.below("current")

    @property
    def executable(self) -> str:
        return self.below("current", "ninfer-serve.exe")

    @property
    def models(self) -> str:
        return self.below("models")

    @property
    def secrets(self) -> str:
        return self.below("secrets")

    @property
    def key_file(self) -> str:
        return self.below("secrets", "api_key.txt")

    @property
    def state(self) -> str:
        return self.below("state")

    @property
    def draft_file(self) -> str:
        """Holds the draft depth, one digit; read by the .bat at each start, changed by a controller."""
        return self.below("state", "draft_tokens.txt")

    @property
    def stop_flag(self) -> str:
        """While this file exists the .bat starts nothing."""
        return self.below("state", "stop.flag")

    @property
    def logs(self) -> str:
        return self.below("logs")

    @property
    def source(self) -> str:
        return self.below("src")

    @property
    def build(self) -> str:
        return self.below("build")

    @property
    def jobs(self) -> str:
        return self.below("jobs")

    @property
    def launcher(self) -> str:
        return self.below("serve_task.bat")

    def folders(self) -> list[str]:
        """Every folder to be made, parents first."""
        return [
            self.root,
            self.releases,
            self.models,
            self.secrets,
            self.state,
            self.logs,
            self.build,
            self.jobs,
        ]


class Gpu(Values):
    """The card that this fleet is for, and its driver."""

    name: str = Field(
        default="NVIDIA GeForce RTX 4090 D", min_length=1, description="product name as the driver gives it"
    )
    sm_count: int = Field(
        default=114, ge=2, le=1024, description="multiprocessors the driver counts: 114 = 4090 D, 128 = 4090"
    )
    memory_mib: int = Field(
        default=49140, gt=0, le=2**24, description="49140 = the 48 GB variant; below it the pool shrinks"
    )
    minimum_driver: str = Field(
        default="616.56",
        pattern=r"^\d+\.\d+$",
        description="oldest driver proven with this engine and CUDA 13.3",
    )
    index: int = Field(
        default=0, ge=0, le=63, description="CUDA device index (not nvidia-smi's order), given as --device"
    )
    display: bool = Field(
        default=True,
        description="a monitor or a desktop uses this card; False only for a card with nothing attached",
    )
