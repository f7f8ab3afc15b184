"""The engine: which source, how it is built."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated

from pydantic import Field, field_validator

from ninfer_fleet.settings.trap import Values, WindowsPath, Word, check_name, check_url, refuse


class Engine(Values):
    """Source and build of ninfer-serve.

    Everything that decides what comes out of the build is part of `release_id`, so a change of any of it
    makes a new release beside the old one, and nothing else does.
    """

    repository: str = Field(
        default="https://github.com/UDPSendToFailed/ninfer-4090.git",
        description="git URL of the source",
    )
    commit: str = Field(
        default="3d11fd64", description="the commit that the published figures were measured with"
    )
    sm_count: int = Field(
        default=114,
        description="NINFER_TARGET_SM_COUNT: decode grids of 112 CTAs then fill 114 SMs in one wave (0.98)",
    )
    cuda_architecture: int = Field(
        default=89, description="CMAKE_CUDA_ARCHITECTURES: the engine's own default is 86"
    )
    cuda: str = Field(
        default="13.3", pattern=r"^\d{1,3}\.\d{1,3}$", description="CUDA toolkit, major.minor, as proven"
    )
    minimum_cmake: str = Field(
        default="3.28", pattern=r"^\d{1,3}\.\d{1,3}$", description="enforced by the engine's CMakeLists"
    )
    vcpkg_root: WindowsPath = Field(
        default=r"C:\vcpkg", description="vcpkg checkout that gives curl and ffmpeg"
    )
    vcpkg_triplet: str = Field(
        default="x64-windows",
        pattern=r"^[a-z0-9][a-z0-9-]*$",
        description="vcpkg's build flavour of curl and ffmpeg",
    )
    targets: tuple[Word, ...] = Field(
        default=("ninfer", "ninfer-serve"), min_length=1, description="what ninja builds"
    )
    executables: tuple[str, ...] = Field(
        default=("ninfer.exe", "ninfer-serve.exe"),
        min_length=1,
        description="must exist in a release; hashed on every run",
    )
    parallel_jobs: int = Field(
        default=24,
        ge=1,
        le=1024,
        description="nvcc jobs; each takes 2 to 4 GiB of RAM, so 24 suits a box of 512 GiB",
    )
    minimum_build_free_gib: int = Field(
        default=60, ge=1, le=100_000, description="vcpkg's ffmpeg and the objects take 40 to 60 GiB"
    )
    container_versions: tuple[Annotated[int, Field(ge=0, le=255)], ...] = Field(
        default=(2,),
        min_length=1,
        description="model container versions this commit reads; v3 files are 'bad magic' to it",
    )

    @field_validator("commit")
    @classmethod
    def _pinned(cls, commit: str) -> str:
        if not re.fullmatch(r"[0-9a-f]{7,40}", commit):
            raise refuse(
                f"{commit!r} is no commit; a branch or tag moves, so two boxes would get two engines",
                "give the commit as 7 to 40 lower-case hex digits",
            )
        return commit

    @field_validator("repository")
    @classmethod
    def _without_login(cls, repository: str) -> str:
        return check_url(repository, ("https", "ssh", "file"))

    @field_validator("executables")
    @classmethod
    def _file_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_-])?\.exe", name, re.IGNORECASE):
                raise refuse(
                    f"{name!r} is no file name of a program; a release holds its programs side by side",
                    "give the name alone, such as ninfer-serve.exe",
                )
            check_name(name)
        return names

    @field_validator("sm_count")
    @classmethod
    def _even(cls, count: int) -> int:
        if not 66 <= count <= 1024 or count % 2:
            raise refuse(
                f"{count} is not taken by NINFER_TARGET_SM_COUNT (an even number from 66 on, and no card has 1024)",
                "114 for a 4090 D, 128 for a 4090",
            )
        return count

    @field_validator("cuda_architecture")
    @classmethod
    def _known_architecture(cls, architecture: int) -> int:
        if architecture not in (86, 89):
            raise refuse(
                f"the engine runs on SM 8.6 and 8.9 only, not on {architecture}", "89 for RTX 40 cards"
            )
        return architecture

    @field_validator("cuda")
    @classmethod
    def _new_enough(cls, version: str) -> str:
        major, minor = (int(part) for part in version.split("."))
        if (major, minor) < (12, 8):
            raise refuse(f"CUDA {version} is older than 12.8, the engine's floor", "use the proven 13.3")
        return version

    @property
    def inputs_hash(self) -> str:
        """Twelve hex digits over everything that decides the build's result."""
        inputs = {
            "repository": self.repository,
            "commit": self.commit,
            "sm_count": self.sm_count,
            "cuda_architecture": self.cuda_architecture,
            "cuda": self.cuda,
            "vcpkg_triplet": self.vcpkg_triplet,
            "targets": list(self.targets),
        }
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def release_id(self) -> str:
        """Folder name of the release, such as 3d11fd64-sm114-cuda13.3-0a1b2c3d4e5f."""
        return f"{self.commit[:12]}-sm{self.sm_count}-cuda{self.cuda}-{self.inputs_hash}"
