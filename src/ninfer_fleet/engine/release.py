"""release.json: what a release was made of, and whether a folder on a box still is that release."""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict, ValidationError

from ninfer_fleet.settings import Settings
from winfleet.files.model import Listing

MANIFEST = "release.json"
# Raised when a manifest says less than it should; a release with an older one is staged anew.
FORMAT = 2


class ReleaseFile(BaseModel):
    """One file of a release: its size and SHA-256 (lower-case hex)."""

    model_config = ConfigDict(frozen=True)

    size_bytes: int
    sha256: str


class Release(BaseModel):
    """The manifest of a release.

    Attributes: release_id, repository, commit, sm_count, cuda_architecture, cuda, msvc, cmake (versions found
    on the box that built it), files by name (every file of the release but the manifest itself, as the build
    left them), format (of the manifest: 1 held what lay in the release after the copy).
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
    format: int = 1

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


def release_faults(box: Settings, release: Release | None, listing: Listing) -> list[str]:
    """Why the folder is not the declared release; empty: it is.

    listing: the folder with hashes. Every file is compared, and one that the build did not make is named: a
    program loads a DLL that lies beside it before the one of Windows.
    """
    if release is None:
        return [f"{MANIFEST} is not there" if not listing.exists else f"{MANIFEST} is missing or unreadable"]
    if release.format != FORMAT:
        age = "an older" if release.format < FORMAT else "a newer"
        return [f"{MANIFEST} was written by {age} version: staged anew"]
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
    there = {item.name.lower(): item for item in listing.items}
    recorded = {name.lower() for name in release.files}
    faults += [
        f"{name}: not in {MANIFEST}" for name in box.engine.executables if name.lower() not in recorded
    ]
    for name, one in release.files.items():
        item = there.get(name.lower())
        if item is None or item.kind != "file":
            faults.append(f"{name}: {'not there' if item is None else f'a {item.kind}'}")
        elif item.size_bytes != one.size_bytes:
            faults.append(f"{name}: {item.size_bytes} bytes instead of {one.size_bytes}")
        elif item.sha256 != one.sha256:
            faults.append(f"{name}: not the file that was built (sha256 {item.sha256 or 'none'})")
    for item in listing.items:
        if item.name.lower() not in recorded | {MANIFEST}:
            faults.append(f"{item.name}: a {item.kind} that the build did not make")
    return faults
