"""release.json: what a release was made of, and whether a folder on a box still is that release."""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict, ValidationError

from ninfer_fleet.settings import Settings
from winfleet.models.file import FileState, Listing


class ReleaseFile(BaseModel):
    """One file of a release: its size and SHA-256 (lower-case hex)."""

    model_config = ConfigDict(frozen=True)

    size_bytes: int
    sha256: str


class Release(BaseModel):
    """The manifest of a release.

    Attributes: release_id, repository, commit, sm_count, cuda_architecture, cuda, msvc, cmake (versions found
    on the box that built it), files by name.
    """

    model_config = ConfigDict(frozen=True)

    release_id: str
    repository: str
    commit: str
    sm_count: int
    cuda_architecture: int
    cuda: str
    msvc: str
    cmake: str
    files: dict[str, ReleaseFile]

    @classmethod
    def parse(cls, content: bytes) -> Release | None:
        """From the bytes of release.json; None when they are no manifest."""
        try:
            return cls.model_validate_json(content)
        except (ValidationError, ValueError):
            return None

    def encode(self) -> bytes:
        """The bytes of release.json: ASCII, sorted, the same for the same release."""
        return (json.dumps(self.model_dump(), indent=2, sort_keys=True) + "\n").encode("ascii")


def release_faults(
    box: Settings, release: Release | None, executables: dict[str, FileState], listing: Listing
) -> list[str]:
    """Why the folder is not the declared release; empty: it is.

    The executables are compared by hash, the DLLs by size: hashing 200 MB of them on every run would cost
    more than it finds.
    """
    if release is None:
        return [
            "release.json is not there" if not listing.exists else "release.json is missing or unreadable"
        ]
    faults = []
    declared = {
        "release_id": box.engine.release_id,
        "commit": box.engine.commit,
        "sm_count": box.engine.sm_count,
        "cuda_architecture": box.engine.cuda_architecture,
    }
    for name, wanted in declared.items():
        found = getattr(release, name)
        if found != wanted:
            faults.append(f"{name}: {found} instead of {wanted}")
    sizes = {item.name.lower(): item.size_bytes for item in listing.items}
    for name, one in release.files.items():
        if sizes.get(name.lower()) != one.size_bytes:
            faults.append(f"{name}: {sizes.get(name.lower(), 'no')} bytes instead of {one.size_bytes}")
    for path, state in executables.items():
        name = path.rpartition("\\")[2]
        recorded = release.files.get(name)
        if recorded is None or state.sha256 != recorded.sha256:
            faults.append(f"{name}: not the file that was built (sha256 {state.sha256 or 'none'})")
    return faults
