"""When a running server counts as the declared one; the artifact's stamp; the build's command lines. All
pure."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from ninfer_fleet import reads
from ninfer_fleet.engine import operations as engine
from ninfer_fleet.engine.release import FORMAT, Release, ReleaseFile, release_faults
from ninfer_fleet.model import operations as model
from ninfer_fleet.server.observation import Look, probe_address, started_from
from ninfer_fleet.settings import Settings
from winfleet.files.model import ChildItem, FileState, Listing
from winfleet.job.model import Download, Environment, Run, Verify
from winfleet.network.model import Listener
from winfleet.process.model import Process
from winfleet.web.model import HttpAnswer

BOX = Settings.model_validate({"serve": {"api_key": "env:NINFER_API_KEY"}})
BEFORE, STARTED, AFTER = (f"2026-09-01T10:0{minute}:00.0000000Z" for minute in (0, 1, 2))
SERVER = Process(77, STARTED, 1, "ninfer-serve.exe", BOX.layout.executable, "Normal", 0, None)


def answer(status: int | None, body: str = "") -> HttpAnswer:
    kind = None if status else "refused"
    return HttpAnswer.parse(
        {
            "StatusCode": status,
            "Headers": {},
            "Body": body,
            "BodyTruncated": False,
            "ElapsedMs": 1,
            "ErrorKind": kind,
            "ErrorMessage": kind,
        }
    )


MODELS = json.dumps({"data": [{"id": "qwen3.8-27b", "context_window": 131_072}]})


def seen(**changes: Any) -> Look:
    files = {path: FileState(path, "file", last_write_time_utc=BEFORE) for path in started_from(BOX)}
    files[BOX.layout.stop_flag] = FileState(BOX.layout.stop_flag, "absent")
    look = Look(
        processes=[SERVER],
        listeners=[Listener("0.0.0.0", 8080, 77, None, None)],
        task_running=True,
        files=files,
        health=answer(200),
        without_key=answer(401),
        with_key=answer(200, MODELS),
        declared=BOX,
    )
    return dataclasses.replace(look, **changes)


def test_a_server_that_answers_as_declared_has_no_faults() -> None:
    assert seen().faults() == []


@pytest.mark.parametrize("path", started_from(BOX))
def test_a_file_younger_than_the_process_asks_for_a_restart(path: str) -> None:
    files = {**seen().files, path: FileState(path, "file", last_write_time_utc=AFTER)}
    assert seen(files=files).faults() == [
        f"{path.rpartition(chr(92))[2]} was changed after the server had started"
    ]


FAULTS = [
    ({"processes": []}, "not running"),
    ({"task_running": False}, "under the task"),
    ({"listeners": []}, "does not listen on port 8080"),
    ({"listeners": [Listener("0.0.0.0", 8080, 5, None, None)]}, "does not listen on port 8080"),
    ({"health": answer(503)}, "/health"),
    ({"health": answer(None)}, "/health"),
    ({"without_key": answer(200)}, "without the key"),
    ({"with_key": answer(401)}, "with the key"),
    ({"with_key": answer(200, "no json")}, "no model list"),
    ({"with_key": answer(200, '{"data": [{"id": "other"}]}')}, "other instead of qwen3.8-27b"),
    ({"with_key": answer(200, MODELS.replace("131072", "8192"))}, "context window: 8192"),
    (
        {"files": {**seen().files, BOX.layout.stop_flag: FileState(BOX.layout.stop_flag, "file")}},
        "stop flag",
    ),
]


@pytest.mark.parametrize(("changes", "words"), FAULTS)
def test_what_is_not_as_declared_is_named(changes: dict[str, Any], words: str) -> None:
    faults = seen(**changes).faults()
    assert len(faults) == 1
    assert words in faults[0]


def stamp(**changes: Any) -> FileState:
    values = {
        "SizeBytes": BOX.model.size_bytes,
        "Sha256": BOX.model.sha256,
        "LastWriteTimeUtc": BEFORE,
        **changes,
    }
    return FileState(reads.stamp_path(BOX), "file", content=json.dumps(values).encode())


ARTIFACT = FileState(BOX.model_path, "file", size_bytes=BOX.model.size_bytes, last_write_time_utc=BEFORE)


def test_a_stamped_artifact_is_not_hashed_again() -> None:
    assert model.stamp_faults(BOX, ARTIFACT, stamp()) == []


@pytest.mark.parametrize(
    ("artifact", "mark", "words"),
    [
        (FileState(BOX.model_path, "absent"), stamp(), "absent"),
        (dataclasses.replace(ARTIFACT, size_bytes=5), stamp(), "5 bytes"),
        (ARTIFACT, FileState("s", "absent"), "never verified"),
        (ARTIFACT, FileState("s", "file", content=b"{"), "never verified"),
        (ARTIFACT, stamp(Sha256="0" * 64), "verified as 0000"),
        (dataclasses.replace(ARTIFACT, last_write_time_utc=AFTER), stamp(), "changed after"),
    ],
)
def test_any_other_artifact_is_verified(artifact: FileState, mark: FileState, words: str) -> None:
    faults = model.stamp_faults(BOX, artifact, mark)
    assert len(faults) == 1
    assert words in faults[0]


def test_the_artifact_is_fetched_resumably_and_verified_by_digest_and_magic() -> None:
    fetch, verify = model.steps(BOX, r"C:\Windows\System32\curl.exe")
    assert isinstance(fetch, Download)
    assert isinstance(verify, Verify)
    assert (fetch.path, fetch.size_bytes) == (verify.path, verify.size_bytes)
    assert verify.again == fetch.name
    assert fetch.arguments[-1] == BOX.model.url
    assert fetch.arguments[fetch.arguments.index("--continue-at") :][:2] == ("--continue-at", "-")
    assert (verify.size_bytes, verify.sha256, verify.magic_hex) == (
        18_210_531_328,
        BOX.model.sha256,
        "4e494e4645520002",
    )


def test_a_file_that_is_there_is_verified_and_never_fetched_or_deleted() -> None:
    (verify,) = model.steps(BOX, None)
    assert isinstance(verify, Verify)
    assert verify.again is None


TOOLS = engine.Tools(
    git=r"C:\git.exe",
    cmake=r"C:\cmake.exe",
    cmake_version="3.31.6",
    ninja=r"C:\ninja.exe",
    vcvars64=r"C:\VS\vcvars64.bat",
    msvc="14.44.35207",
    cuda=r"C:\CUDA\v13.3",
    cuda_version="13.3.33",
    vcpkg=r"C:\vcpkg",
)


def test_cmake_gets_architecture_and_sm_count_in_the_environment_of_vcvars() -> None:
    environment, configure = engine.configure_steps(BOX, TOOLS, engine.Places.of(BOX, TOOLS))
    assert isinstance(environment, Environment)
    assert environment.batch == r"C:\VS\vcvars64.bat"
    assert isinstance(configure, Run)
    for argument in (
        "-DCMAKE_CUDA_ARCHITECTURES=89",
        "-DNINFER_TARGET_SM_COUNT=114",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_CUDA_COMPILER=C:/CUDA/v13.3/bin/nvcc.exe",
        "-DCMAKE_TOOLCHAIN_FILE=C:/vcpkg/scripts/buildsystems/vcpkg.cmake",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
    ):
        assert argument in configure.arguments
    assert configure.environment == {"CL": "/utf-8"}


def test_another_toolchain_gets_another_build_folder() -> None:
    first = engine.Places.of(BOX, TOOLS)
    other = engine.Places.of(BOX, dataclasses.replace(TOOLS, msvc="14.50.1"))
    assert first.build != other.build
    assert first.source == other.source


FILES = {
    name: ReleaseFile(size_bytes=10, sha256="ab") for name in ("ninfer.exe", "ninfer-serve.exe", "z.dll")
}
RELEASE = Release(
    release_id=BOX.engine.release_id,
    repository=BOX.engine.repository,
    commit=BOX.engine.commit,
    sm_count=114,
    cuda_architecture=89,
    cuda="13.3.33",
    msvc="14.44",
    cmake="3.31",
    files=FILES,
    format=FORMAT,
)


def listing(*items: ChildItem, without: str = "") -> Listing:
    """The folder as it was staged, but for these items and that name."""
    changed = {item.name: item for item in items}
    staged = {name: ChildItem(name, "file", 10, None, "ab") for name in FILES}
    staged["release.json"] = ChildItem("release.json", "file", 900, None, "00")
    return Listing(True, tuple(item for name, item in {**staged, **changed}.items() if name != without))


def test_a_manifest_survives_its_bytes_and_matches_its_folder() -> None:
    again = Release.parse(RELEASE.encode())
    assert again == RELEASE
    assert release_faults(BOX, again, listing()) == []
    shouting = ChildItem("Z.DLL", "file", 10, None, "ab")
    assert release_faults(BOX, again, listing(shouting, without="z.dll")) == []


WITHOUT_PROGRAM = {name: one for name, one in FILES.items() if name != "ninfer-serve.exe"}


@pytest.mark.parametrize(
    ("release", "folder", "words"),
    [
        (None, Listing(False, ()), "release.json is not there"),
        (None, listing(), "release.json is missing or unreadable"),
        (RELEASE.model_copy(update={"sm_count": 128}), listing(), "sm_count: 128 instead of 114"),
        (RELEASE.model_copy(update={"format": 1}), listing(), "written by an older version: staged anew"),
        (RELEASE.model_copy(update={"format": 9}), listing(), "written by a newer version: staged anew"),
        (
            RELEASE.model_copy(update={"files": WITHOUT_PROGRAM}),
            listing(without="ninfer-serve.exe"),
            "ninfer-serve.exe: not in release.json",
        ),
        (
            RELEASE,
            listing(ChildItem("ninfer.exe", "file", 10, None, "cd")),
            "ninfer.exe: not the file that was",
        ),
        # Of the same size: no look at sizes alone tells it.
        (RELEASE, listing(ChildItem("z.dll", "file", 10, None, "cd")), "z.dll: not the file that was built"),
        (RELEASE, listing(ChildItem("z.dll", "file", 11, None, "ab")), "z.dll: 11 bytes instead of 10"),
        (RELEASE, listing(without="z.dll"), "z.dll: not there"),
        (RELEASE, listing(ChildItem("z.dll", "directory", None, None)), "z.dll: a directory"),
        (
            RELEASE,
            listing(ChildItem("version.dll", "file", 10, None, "ab")),
            "version.dll: a file that the build",
        ),
        (
            RELEASE,
            listing(ChildItem("x.exe.local", "directory", None, None)),
            "x.exe.local: a directory that",
        ),
    ],
)
def test_another_folder_is_not_the_release(release: Release | None, folder: Listing, words: str) -> None:
    (fault,) = release_faults(BOX, release, folder)
    assert words in fault


def test_a_manifest_of_an_older_version_is_read_as_such() -> None:
    old = json.loads(RELEASE.encode())
    del old["format"]
    release = Release.parse(json.dumps(old).encode())
    assert release is not None
    assert release.format == 1


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[1]"])
def test_damaged_manifests_are_no_manifests(content: bytes) -> None:
    assert Release.parse(content) is None


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
        ("100.77.174.21", "100.77.174.21"),
        ("fd7a:115c:a1e0::1", "[fd7a:115c:a1e0::1]"),
    ],
)
def test_the_box_asks_its_server_where_it_listens(host: str, asked: str) -> None:
    box = Settings.model_validate({"serve": {"host": host, "api_key": "env:NINFER_API_KEY"}})
    assert probe_address(box) == asked
