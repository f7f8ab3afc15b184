"""What a run that changes nothing asks of a box, so that preflight can fetch all of it in one request.

Each list belongs to an operation of deploy.py and must hold exactly the calls that it makes: a call more
costs a round trip, a call less as well. The deploy tests count them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ninfer_fleet.engine.release import MANIFEST
from ninfer_fleet.settings import Settings
from winfleet.account.fact import Accounts
from winfleet.acl.fact import Acls
from winfleet.acl.model import Rights
from winfleet.call import Call
from winfleet.disk.fact import Disks
from winfleet.files.fact import ChildItems, Files
from winfleet.files.operations import SHOWN_BYTES
from winfleet.firewall.fact import Firewall
from winfleet.gpu.fact import Gpu
from winfleet.network.fact import Listeners
from winfleet.process.fact import Processes
from winfleet.session.fact import Session as RightsFact
from winfleet.system.fact import System
from winfleet.task.fact import Tasks
from winfleet.toolchain.fact import Toolchain

MANIFEST_BYTES = 64 * 1024
PROGRAM = "ninfer-serve.exe"
ENGINE_JOBS = ("engine-source", "engine-configure", "engine-build", "engine-smoke")
MODEL_JOB = "model"
JOBS = (*ENGINE_JOBS, MODEL_JOB)


def release_folder(box: Settings) -> str:
    """Where the declared release lies."""
    return f"{box.layout.releases}\\{box.engine.release_id}"


def manifest_path(box: Settings) -> str:
    """The release's release.json, written last."""
    return f"{release_folder(box)}\\{MANIFEST}"


def stamp_path(box: Settings) -> str:
    """Written beside the artifact by the job that verified it."""
    return f"{box.model_path}.verified.json"


# Arguments of facts: used by the operation and by the list below alike.
def manifest_files(box: Settings) -> dict[str, Any]:
    return {"paths": [manifest_path(box)], "max_content_bytes": MANIFEST_BYTES}


def release_files(box: Settings) -> dict[str, Any]:
    return {"path": release_folder(box), "hash": True}


def model_files(box: Settings) -> dict[str, Any]:
    return {"paths": [box.model_path, stamp_path(box)], "max_content_bytes": 4096}


def draft_files(box: Settings) -> dict[str, Any]:
    return {"paths": [box.layout.draft_file], "max_content_bytes": 64}


def disk_paths(box: Settings) -> list[str]:
    paths = [box.layout.root, box.layout.models]
    return paths + ([box.serve.disk_cache_dir] if box.serve.disk_cache_dir and box.serve.disk_cache else [])


def guarded(box: Settings) -> list[tuple[str, Rights]]:
    """Folders with an access list of their own, and what the server's account may do there.

    The root, since whoever may change the launcher or the program has the rights of the task (and a folder
    below C:\\ lets every user do so, as Windows makes it), first; state, logs and cache, where the server writes;
    secrets.
    """
    found: list[tuple[str, Rights]] = [
        (box.layout.root, "read"),
        (box.layout.secrets, "read"),
        (box.layout.state, "modify"),
        (box.layout.logs, "modify"),
    ]
    if box.serve.disk_cache and box.serve.disk_cache_dir:
        found.append((box.serve.disk_cache_dir, "modify"))
    return found


def inheriting(box: Settings) -> tuple[list[str], list[str]]:
    """Folders and files that must have no more access than the root hands down to them: what runs with the
    rights of the task (launcher, release) or of SYSTEM (jobs, and what they build) comes from there."""
    layout = box.layout
    jobs = [f"{layout.jobs}\\{name}" for name in JOBS]
    release = release_folder(box)
    below = [layout.releases, release, layout.models, layout.source, layout.build, layout.jobs, *jobs]
    programs = [f"{release}\\{name}" for name in box.engine.executables]
    return below, [layout.launcher, *programs, *(f"{job}\\run.ps1" for job in jobs)]


def folders(box: Settings) -> list[str]:
    """All folders of a box, parents first."""
    cache = [box.serve.disk_cache_dir] if box.serve.disk_cache and box.serve.disk_cache_dir else []
    return [*box.layout.folders(), *cache]


def account_names(box: Settings, connection_user: str | None) -> list[str]:
    """Account names whose SIDs are needed: the task's account."""
    name = box.task.account or connection_user
    return [name] if name else []


def calls(box: Settings, connection_user: str | None) -> Iterator[Call]:
    """Every reading call of an unchanged run, except those whose answer must be fresh when the server is
    looked at."""
    # preflight
    yield System.call()
    yield Gpu.call()
    yield Toolchain.call(vcpkg_root=box.engine.vcpkg_root)
    yield Disks.call(disk_paths(box))
    yield Listeners.call([box.serve.port])
    yield Processes.call([PROGRAM])
    # folders and access
    yield Files.call(folders(box))
    for folder, _ in guarded(box):
        yield Acls.call([folder])
        yield Files.call([folder])
    yield Acls.call([path for paths in inheriting(box) for path in paths])
    yield RightsFact.call()
    names = account_names(box, connection_user)
    if names:
        yield Accounts.call(names)
    # engine
    yield Files.call(**manifest_files(box))
    yield ChildItems.call(**release_files(box))
    yield Files.call([box.layout.current])
    # model
    yield Files.call(**model_files(box))
    # key, draft depth, launcher
    if box.serve.api_key is not None:
        yield Files.call([box.layout.key_file], hash=True)
        yield Acls.call([box.layout.key_file])
    if box.serve.spec is not None:
        yield Files.call(**draft_files(box))
    yield Files.call([box.layout.launcher], hash=True, max_content_bytes=SHOWN_BYTES)
    # firewall, task
    yield Firewall.call()
    yield Tasks.call([box.task.path])
