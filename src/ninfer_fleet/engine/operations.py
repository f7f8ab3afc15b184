"""The engine: source at the pinned commit, built on the box for its card, staged as a release.

The build outlives the connection: it runs as detached jobs, and a run that was cut off is taken up again by
the next one. Nothing is built when the release is already there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ninfer_fleet import reads
from ninfer_fleet.engine.release import FORMAT, MANIFEST, Release, ReleaseFile, release_faults
from ninfer_fleet.owner import OWNER
from ninfer_fleet.server import argv
from ninfer_fleet.server import operations as serve
from ninfer_fleet.server.stopping import held_down
from ninfer_fleet.settings import Settings
from winfleet import diff
from winfleet.call import Call
from winfleet.current import box as current_box
from winfleet.current import run as current_run
from winfleet.fact import read
from winfleet.files import operations as files
from winfleet.files.fact import ChildItems, Files
from winfleet.job import operations as jobs
from winfleet.job.fact import Job
from winfleet.job.model import Environment, Run, Step
from winfleet.operation import box_operation
from winfleet.refusal import BoxError, Refused, failed
from winfleet.toolchain.compile_commands_fact import CompileCommands
from winfleet.toolchain.fact import Toolchain
from winfleet.toolchain.model import ToolchainState as ToolchainModel

SM_COUNT_MACRO = "NINFER_TARGET_SM_COUNT"
# Source files hold UTF-8; on a Chinese Windows cl.exe reads them as code page 936 (C4819, C2001) unless told.
UTF8_SOURCES = {"CL": "/utf-8"}


def job_tasks() -> list[str]:
    """Paths of the on-demand tasks that the jobs of this module leave behind."""
    return [OWNER.job_task(name) for name in reads.ENGINE_JOBS]


@dataclass(frozen=True)
class Tools:
    """Full paths and versions of what builds the engine on one box."""

    git: str
    cmake: str
    cmake_version: str
    ninja: str
    vcvars64: str
    msvc: str
    cuda: str
    cuda_version: str
    vcpkg: str

    @classmethod
    def of(cls, box: Settings, found: ToolchainModel) -> Tools:
        """Choose from what is on the box. Raises Refused (preflight tells the same with more detail)."""
        cuda = found.cuda_of(box.engine.cuda)
        studio = next((one for one in found.visual_studio if one.complete and one.vcvars64_path), None)
        if not (cuda and studio and found.git and found.cmake and found.ninja and found.vcpkg_root):
            raise Refused("a build tool is missing; preflight names it")
        return cls(
            git=found.git.path,
            cmake=found.cmake.path,
            cmake_version=found.cmake.version or "unknown",
            ninja=found.ninja.path,
            vcvars64=str(studio.vcvars64_path),
            msvc=studio.toolset or "unknown",
            cuda=cuda.path,
            cuda_version=cuda.nvcc_version or cuda.version or "unknown",
            vcpkg=found.vcpkg_root,
        )


@dataclass(frozen=True)
class Places:
    """Where one build happens: another toolchain gets another build folder, so no cached value of CMake
    survives."""

    source: str
    build: str
    jobs: str

    @classmethod
    def of(cls, box: Settings, tools: Tools) -> Places:
        """From the declared inputs and the tools found."""
        text = json.dumps([box.engine.inputs_hash, *vars(tools).values()])
        toolchain = hashlib.sha256(text.encode()).hexdigest()[:12]
        return cls(
            source=f"{box.layout.source}\\{box.engine.commit[:12]}",
            build=f"{box.layout.build}\\{toolchain}",
            jobs=box.layout.jobs,
        )

    @property
    def compile_commands(self) -> str:
        return f"{self.build}\\compile_commands.json"

    @property
    def apps(self) -> str:
        return f"{self.build}\\apps"


def source_steps(box: Settings, tools: Tools, places: Places) -> list[Step]:
    """Fetch and check out; each step may be repeated after an interruption."""
    commit = box.engine.commit
    inside = ("-C", places.source)
    return [
        Run("init", tools.git, ("init", "--quiet", places.source)),
        Run(
            "fetch",
            tools.git,
            (
                *inside,
                "fetch",
                "--quiet",
                "--force",
                "--tags",
                box.engine.repository,
                "+refs/heads/*:refs/fleet/*",
            ),
        ),
        Run("checkout", tools.git, (*inside, "checkout", "--quiet", "--force", "--detach", commit)),
    ]


def configure_steps(box: Settings, tools: Tools, places: Places) -> list[Step]:
    """CMake in the same process environment as vcvars64."""
    engine = box.engine
    values = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_MAKE_PROGRAM": tools.ninja,
        "CMAKE_TOOLCHAIN_FILE": f"{tools.vcpkg}\\scripts\\buildsystems\\vcpkg.cmake",
        "VCPKG_TARGET_TRIPLET": engine.vcpkg_triplet,
        "CUDAToolkit_ROOT": tools.cuda,
        "CMAKE_CUDA_COMPILER": f"{tools.cuda}\\bin\\nvcc.exe",
        "CMAKE_CUDA_ARCHITECTURES": str(engine.cuda_architecture),
        SM_COUNT_MACRO: str(engine.sm_count),
        "NINFER_BUILD_APPS": "ON",
        "NINFER_BUILD_BENCHMARKS": "OFF",
        "BUILD_TESTING": "OFF",
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
    }
    # CMake takes a backslash in a cached path for an escape.
    defined = [f"-D{name}={value.replace(chr(92), '/')}" for name, value in values.items()]
    arguments = ("-S", places.source, "-B", places.build, "-G", "Ninja", *defined)
    return [
        Environment("vcvars64", tools.vcvars64),
        Run("configure", tools.cmake, arguments, places.source, UTF8_SOURCES),
    ]


def build_steps(box: Settings, tools: Tools, places: Places) -> list[Step]:
    """Ninja, again in the environment of vcvars64."""
    arguments = ("-C", places.build, "-j", str(box.engine.parallel_jobs), *box.engine.targets)
    return [
        Environment("vcvars64", tools.vcvars64),
        Run("build", tools.ninja, arguments, places.build, UTF8_SOURCES),
    ]


@box_operation()
def released(box: Settings) -> Iterator[Any]:
    """The declared release in its folder below releases: exactly the files that were built, hash by hash.

    Otherwise it is staged anew from the build, and built if the build is not there.

    Args:
        box: what is declared for the box.

    Steps: source, configure, the gate on the compile commands, build, smoke test of the program, staging, and
    the release's manifest last of all.
    """
    manifest = read(Files, **reads.manifest_files(box))[reads.manifest_path(box)]
    listing = read(ChildItems, **reads.release_files(box))
    release = Release.parse(manifest.content) if manifest.content else None
    faults = release_faults(box, release, listing)
    if not faults:
        current_box().noop(f"release {box.engine.release_id} is there")
        return
    tools = Tools.of(box, read(Toolchain, vcpkg_root=box.engine.vcpkg_root))
    places = Places.of(box, tools)
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    diff.show(
        f"Will {'stage' if release else 'build'} release {diff.bold(box.engine.release_id)}"
        f"{' anew, built if its build is gone' if release else ''}",
        [
            f"because    {'; '.join(faults[:3])}{more}",
            f"source     {box.engine.repository} at {box.engine.commit}",
            f"tools      CUDA {tools.cuda_version}, MSVC {tools.msvc}, CMake {tools.cmake_version}",
            f"for        SM {box.engine.cuda_architecture / 10}, {SM_COUNT_MACRO}={box.engine.sm_count}",
            f"in         {places.build}",
        ],
    )
    for name, steps, result in (
        ("engine-source", source_steps(box, tools, places), f"{places.source}\\CMakeLists.txt"),
        ("engine-configure", configure_steps(box, tools, places), places.compile_commands),
        ("engine-build", build_steps(box, tools, places), f"{places.apps}\\{reads.PROGRAM}"),
    ):
        if name == "engine-build":
            _gate(box, places)
        yield from _job(box, name, steps, result)
        if failed():
            return
    yield from _smoke(box, places)
    yield from _stage(box, tools, places)


def _job(box: Settings, name: str, steps: list[Step], result: str) -> Iterator[Any]:
    """Run a job unless it is running or done; done without its result counts for nothing."""
    path = f"{box.layout.jobs}\\{name}"
    if current_run().is_executing:
        state = read(Job, path=path, log_max_bytes=0)
        if state.state == "done" and read(Files, paths=[result])[result].kind == "absent":
            yield Call("Remove-BoxItem", Path=[path], Recurse=True)
    yield from jobs.run._inner(
        owner=OWNER,
        path=path,
        steps=steps,
        title=name.replace("-", " "),
        timeout_s=6 * 3600.0,
        remedy=f"read {path}\\stdout.log on the box; a repeated run starts where this one failed",
    )


def _gate(box: Settings, places: Places) -> None:
    """Refuse to compile for 40 minutes what was configured for another card (a build was lost to that)."""
    wanted = str(box.engine.sm_count)
    found = read(CompileCommands, path=places.compile_commands, definition=SM_COUNT_MACRO)
    if found.carries_only(wanted):
        return
    values = (
        ", ".join(f"{value} ({count} commands)" for value, count in sorted(found.values.items())) or "none"
    )
    raise BoxError(
        f"{places.compile_commands}: {SM_COUNT_MACRO}={wanted} is wanted in every CUDA command that "
        f"has it, found: "
        f"{values}; {found.without_definition} of {found.cuda_commands} CUDA commands are without "
        f"it. Nothing was built. "
        f"Remedy: use a commit whose CMakeLists takes {SM_COUNT_MACRO} (CMake only warns about an unused -D)"
    )


def _smoke(box: Settings, places: Places) -> Iterator[Any]:
    """Start the program once for its help: a missing DLL shows here, and a flag that this build does not
    know."""
    path = f"{box.layout.jobs}\\engine-smoke"
    program = f"{places.apps}\\{reads.PROGRAM}"
    yield from jobs.run._inner(
        owner=OWNER,
        path=path,
        steps=[Run("help", program, ("--help",), places.apps)],
        title="engine smoke test",
        timeout_s=120,
        remedy="exit 0xC0000135 means a missing DLL: install the VC++ redistributable, check the "
        "build's apps folder",
    )
    usage = read(Job, path=path, log_offset_bytes=0, log_max_bytes=256 * 1024).log
    flags = [text for line in argv.steady(box) for text in line if text.startswith("--")]
    if box.serve.spec is not None:
        flags.append("--draft-tokens")
    unknown = [flag for flag in (*flags, "--api-key") if flag not in usage]
    if unknown:
        raise BoxError(
            f"{program} --help does not list {', '.join(unknown)}. Remedy: drop those settings, or "
            f"use an engine commit "
            "that has them"
        )


def _stage(box: Settings, tools: Tools, places: Places) -> Iterator[Any]:
    folder = reads.release_folder(box)
    part = f"{folder}.part"
    built = read(ChildItems, path=places.apps)
    wanted = {name.lower() for name in box.engine.executables}
    names = [
        item.name
        for item in built.items
        if item.kind == "file" and (item.name.lower() in wanted or item.name.lower().endswith(".dll"))
    ]
    missing = wanted - {name.lower() for name in names}
    if missing:
        raise BoxError(
            f"the build left no {', '.join(sorted(missing))} in {places.apps}. Remedy: check engine.targets"
        )
    # What the manifest says is what was built, not what may have been done to the copy since.
    made = read(Files, paths=[f"{places.apps}\\{name}" for name in names], hash=True)
    if read(Files, paths=[part])[part].exists:
        # Of a run that was cut off; it may hold what this build does not make.
        yield Call("Remove-BoxItem", Path=[part], Recurse=True)
    yield Call("New-BoxDirectory", Path=[part])
    yield from files.copies._inner(items=[(f"{places.apps}\\{name}", f"{part}\\{name}") for name in names])
    release = Release(
        release_id=box.engine.release_id,
        repository=box.engine.repository,
        commit=box.engine.commit,
        sm_count=box.engine.sm_count,
        cuda_architecture=box.engine.cuda_architecture,
        cuda=tools.cuda_version,
        msvc=tools.msvc,
        cmake=tools.cmake_version,
        files={
            name: ReleaseFile(
                size_bytes=made[f"{places.apps}\\{name}"].size_bytes or 0,
                sha256=made[f"{places.apps}\\{name}"].sha256 or "",
            )
            for name in names
        },
        format=FORMAT,
    )
    staged = read(ChildItems, path=part, hash=True)
    if wrong := release_faults(box, release, staged):
        raise BoxError(f"the copy in {part} is not what was built: {'; '.join(wrong)}. Remedy: run it again")
    yield from files.put._inner(files=[files.FileContent(f"{part}\\{MANIFEST}", release.encode())])
    move = Call("Move-BoxItem", Path=part, Destination=folder)
    if not read(Files, paths=[folder])[folder].exists:
        yield move
        return
    with held_down(box, until_ready=True):
        # Windows does not let go of a program that runs: half a folder would be gone and the server with it.
        yield from serve.stopped._inner(box=box)
        yield Call("Remove-BoxItem", Path=[folder], Recurse=True)
        yield move
