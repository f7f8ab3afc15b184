"""The model artifact: fetched by the box itself, used only after size, first bytes and digest are right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ninfer_fleet import reads
from ninfer_fleet.owner import OWNER
from ninfer_fleet.settings import Settings
from winfleet import diff
from winfleet.call import Call
from winfleet.current import box as current_box
from winfleet.current import run as current_run
from winfleet.fact import read
from winfleet.files.fact import Files
from winfleet.files.model import FileState
from winfleet.job import operations as jobs
from winfleet.job.fact import Job
from winfleet.job.model import Download, Step, Verify, job_hash
from winfleet.operation import box_operation
from winfleet.refusal import Refused
from winfleet.toolchain.fact import Toolchain


def job_tasks() -> list[str]:
    """Path of the on-demand task that the job of this module leaves behind."""
    return [OWNER.job_task(reads.MODEL_JOB)]


@box_operation()
def present(box: Settings) -> Iterator[Any]:
    """The declared artifact at its place, verified.

    A stamp beside it tells that this very file (size and write time) was hashed before, so 17 GB are hashed
    once and not on every run. Without the artifact a detached job fetches it with curl, resuming what an
    earlier try left.
    """
    states = read(Files, **reads.model_files(box))
    artifact, stamp = states[box.model_path], states[reads.stamp_path(box)]
    if artifact.fault is not None:
        raise Refused(f"cannot read {box.model_path}: {artifact.fault}")
    wrong = stamp_faults(box, artifact, stamp)
    if not wrong:
        current_box().noop(f"{box.model_path} is verified")
        return
    part = f"{box.model_path}.part"
    left = read(Files, paths=[part])[part]
    there = None if artifact.exists else left.size_bytes
    whole = artifact.exists or there == box.model.size_bytes
    lines = [
        f"because  {'; '.join(wrong)}",
        *([] if there is None else [f"there    {_part_text(there, box.model.size_bytes)}"]),
        f"from     {box.model.url}",
        f"size     {box.model.size_bytes} bytes",
        f"sha256   {box.model.sha256}",
    ]
    diff.show(f"Will {'verify' if whole else 'fetch'} model {diff.bold(box.model_path)}", lines)
    if artifact.kind == "file":
        # A file of another size is not this artifact: it makes room for the right one only when its name says
        # nothing.
        if artifact.size_bytes != box.model.size_bytes:
            raise Refused(
                f"{box.model_path} has {artifact.size_bytes} bytes, the declared artifact has "
                f"{box.model.size_bytes}. "
                "Remedy: move it away by hand, or declare its size and digest"
            )
        if left.exists:
            yield Call("Remove-BoxItem", Path=[part])
        yield Call("Move-BoxItem", Path=box.model_path, Destination=part)
    yield from _clear_failed_job(box, part)
    yield from jobs.run._inner(
        owner=OWNER,
        path=_folder(box),
        steps=steps(box, None if artifact.kind == "file" or _only_verifies(box) else _curl(box)),
        title=f"model {box.model.file_name}",
        timeout_s=12 * 3600.0,
        remedy="check model.url, model.size_bytes and model.sha256, and the box's way to the internet",
    )


def steps(box: Settings, curl: str | None) -> list[Step]:
    """Fetch what is missing with that curl, and verify; none: the whole file is there, verify it.

    Bytes that an earlier try left may be of another file, or more than there should be: they are then deleted
    and the file is fetched anew, once.
    """
    part = f"{box.model_path}.part"
    fetch = (
        *("--location", "--fail", "--silent", "--show-error"),
        *("--retry", "5", "--retry-delay", "5", "--continue-at", "-"),
        *("--output", part, box.model.url),
    )
    model = box.model
    verify = Verify("verify", part, box.model_path, model.size_bytes, model.sha256, model.magic.hex())
    if curl is None:
        return [verify]
    return [Download("fetch", curl, fetch, part, model.size_bytes), replace(verify, again="fetch")]


def stamp_faults(box: Settings, artifact: FileState, stamp: FileState) -> list[str]:
    """Why the artifact is not known to be the declared one; empty: it is."""
    if artifact.kind != "file":
        return [f"{box.model.file_name} is {artifact.kind}"]
    if artifact.size_bytes != box.model.size_bytes:
        return [f"{artifact.size_bytes} bytes instead of {box.model.size_bytes}"]
    try:
        found = json.loads(stamp.content or b"")
        recorded = (found["SizeBytes"], str(found["Sha256"]).lower(), found["LastWriteTimeUtc"])
    except (ValueError, KeyError, TypeError):
        return ["it was never verified"]
    if recorded[1] != box.model.sha256:
        return [f"it was verified as {recorded[1]}"]
    if (recorded[0], recorded[2]) != (artifact.size_bytes, artifact.last_write_time_utc):
        return ["it was changed after it was verified"]
    return []


def _folder(box: Settings) -> str:
    return f"{box.layout.jobs}\\{reads.MODEL_JOB}"


def _part_text(size: int, wanted: int) -> str:
    """What becomes of the bytes that an earlier try left."""
    if size > wanted:
        return f"{size} bytes, more than there should be: deleted and fetched anew"
    return f"{size} bytes from an earlier try" + ("" if size == wanted else ", the rest is fetched")


def _only_verifies(box: Settings) -> bool:
    """A run that was cut off left the job that verifies a file found at the artifact's place, now a part."""
    state = read(Job, path=_folder(box), log_max_bytes=0)
    return state.state == "running" and state.hash == job_hash(steps(box, None))


def _curl(box: Settings) -> str:
    tools = read(Toolchain, vcpkg_root=box.engine.vcpkg_root)
    if tools.curl is None:
        raise Refused("curl.exe is not on the box. Remedy: Windows 10 1803 and later have it in System32")
    return tools.curl.path


def _clear_failed_job(box: Settings, part: str) -> Iterator[Any]:
    """A job that is done and yet left no verified artifact is forgotten; bytes that it found wrong are
    too."""
    if not current_run().is_executing:
        return
    path = _folder(box)
    state = read(Job, path=path, log_max_bytes=0)
    if state.state != "done":
        return
    gone = [path]
    if state.exit_code != 0 and state.step == "verify" and read(Files, paths=[part])[part].exists:
        gone.append(part)
    yield Call("Remove-BoxItem", Path=gone, Recurse=True)
