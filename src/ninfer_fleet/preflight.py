"""Is this box fit for what is declared? Asked before anything is planned or done, in one request.

Every finding that forbids the deploy is printed with its reason and its remedy, and fails that box alone
(also under --dry); the other boxes go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyinfra import logger

from ninfer_fleet import reads
from ninfer_fleet.engine.release import Release, release_faults
from ninfer_fleet.server import vram
from ninfer_fleet.settings import Settings
from winfleet import current
from winfleet.disk.fact import Disks
from winfleet.disk.model import DiskPlace
from winfleet.fact import prefetch, read
from winfleet.files.fact import ChildItems, Files
from winfleet.files.model import FileState
from winfleet.gpu.fact import Gpu
from winfleet.gpu.model import GpuCard
from winfleet.gpu.model import GpuState as GpuModel
from winfleet.network.fact import Listeners
from winfleet.network.model import Listener
from winfleet.path import normal_path
from winfleet.process.fact import Processes
from winfleet.process.model import Process
from winfleet.refusal import FactUnreadable, fail_box
from winfleet.system.fact import System
from winfleet.system.model import SystemState as SystemModel
from winfleet.toolchain.fact import Toolchain
from winfleet.toolchain.model import ToolchainState as ToolchainModel
from winfleet.version import version_numbers

GIB = vram.GIB
# Beyond what the engine keeps free: a disk-cache restore stages the whole snapshot, the desktop drifts by 0.9
# GiB.
RESERVE_WITH_CACHE_BYTES = round(1.5 * GIB)
RESERVE_BYTES = round(0.5 * GIB)


@dataclass(frozen=True)
class Found:
    """What preflight saw of a box."""

    system: SystemModel
    gpu: GpuModel
    toolchain: ToolchainModel
    disks: dict[str, DiskPlace]
    listeners: list[Listener]
    processes: list[Process]
    model: FileState
    folders: dict[str, FileState]
    release_faults: list[str]


@dataclass
class Verdict:
    """Attributes: refusals (each with reason and remedy), warnings, facts (short texts for the summary
    line)."""

    refusals: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)

    def refuse(self, wrong: str, remedy: str) -> None:
        """Add a refusal."""
        self.refusals.append(f"{wrong}. Remedy: {remedy}")


def passed(box: Settings) -> bool:
    """True when the current box may be deployed to; prints one line of what was found.

    Otherwise the box is failed with every reason, and nothing of it goes on.
    """
    prefix = current.box().print_prefix
    try:
        found = gather(box)
    except FactUnreadable as error:
        fail_box(f"Preflight could not look at the box: {error}")
        return False
    verdict = judge(box, found)
    logger.info(f"{prefix}Preflight: {', '.join(verdict.facts)}")
    for warning in verdict.warnings:
        logger.warning(f"{prefix}{warning}")
    if verdict.refusals:
        fail_box("Preflight refused this box:\n" + "\n".join(f"  {line}" for line in verdict.refusals))
    return not verdict.refusals


def gather(box: Settings) -> Found:
    """Fetch all that an unchanged run needs, in one request. Raises FactUnreadable."""
    prefetch(list(reads.calls(box, current.box().data.get("winrm_user"))))
    manifest = read(Files, **reads.manifest_files(box))[reads.manifest_path(box)]
    release = Release.parse(manifest.content) if manifest.content else None
    listing = read(ChildItems, **reads.release_files(box))
    return Found(
        system=read(System),
        gpu=read(Gpu),
        toolchain=read(Toolchain, vcpkg_root=box.engine.vcpkg_root),
        disks=read(Disks, paths=reads.disk_paths(box)),
        listeners=read(Listeners, ports=[box.serve.port]),
        processes=read(Processes, names=[reads.PROGRAM]),
        model=read(Files, **reads.model_files(box))[box.model_path],
        folders=read(Files, paths=reads.folders(box)),
        release_faults=release_faults(box, release, listing),
    )


def judge(box: Settings, found: Found) -> Verdict:
    """What the findings mean for the declared settings. Pure."""
    verdict = Verdict()
    card = card_of(box, found.gpu)
    _judge_gpu(box, found.gpu, card, verdict)
    if card is not None:
        _judge_memory(box, found, card, verdict)
    _judge_disks(box, found, verdict)
    _judge_port(box, found, verdict)
    if found.release_faults:
        _judge_toolchain(box, found, verdict)
    if found.model.kind == "absent" and found.toolchain.curl is None:
        verdict.refuse(
            "curl.exe, which fetches the model, is not on the box", "Windows 10 1803 and later have it"
        )
    verdict.facts.append(
        f"release {box.engine.release_id} " + ("to be built" if found.release_faults else "present")
    )
    return verdict


def ours(box: Settings, executable: str | None) -> bool:
    """True when the path is a ninfer-serve.exe of this deployment, through the junction or in a release."""
    if executable is None:
        return False
    path = normal_path(executable)
    inside = (normal_path(box.layout.current), normal_path(box.layout.releases))
    return path.endswith("\\" + reads.PROGRAM) and path.startswith(tuple(f"{folder}\\" for folder in inside))


def memory_load(box: Settings) -> vram.Load:
    """The declared settings as the memory formula takes them."""
    serve = box.serve
    # Without the flag the pool is exactly one context.
    capacity = serve.max_context if serve.kv_capacity is None else serve.kv_capacity
    return vram.Load(
        context_tokens=serve.max_context,
        lanes=serve.max_concurrency,
        kv_dtype=serve.kv_dtype,
        capacity_tokens=None if capacity == "auto" else capacity,
        draft_tokens=max((serve.draft_tokens or 0, *serve.controller_draft_tokens)),
        vision=serve.vision,
        evictable_budget=serve.wddm_evictable_budget,
    )


def card_of(box: Settings, gpu: GpuModel) -> GpuCard | None:
    """The card that the server uses: by CUDA index, for nvidia-smi may count in another order."""
    by_ordinal = [card for card in gpu.cards if card.cuda_ordinal == box.gpu.index]
    if by_ordinal:
        return by_ordinal[0]
    return gpu.cards[box.gpu.index] if box.gpu.index < len(gpu.cards) else None


def _judge_gpu(box: Settings, gpu: GpuModel, card: GpuCard | None, verdict: Verdict) -> None:
    wanted = box.gpu
    if card is None:
        reason = gpu.smi_fault or gpu.driver_fault or f"no card with CUDA index {wanted.index}"
        verdict.facts.append("no usable card")
        verdict.refuse(f"GPU: {reason}", f"install driver {wanted.minimum_driver} or later, check gpu.index")
        return
    count = "?" if card.multiprocessors is None else card.multiprocessors
    verdict.facts.append(f"{card.name}, {count} SMs, driver {gpu.driver_version}")
    if card.multiprocessors is None:
        verdict.refuse(
            f"GPU: the CUDA driver does not tell the SM count ({gpu.driver_fault})",
            "repair or reinstall the driver",
        )
    elif card.multiprocessors != wanted.sm_count:
        verdict.refuse(
            f"GPU: {card.name} has {card.multiprocessors} SMs, the engine is built for "
            f"{wanted.sm_count}: every decode "
            "step would end in a partial wave",
            f"put this box into a group of its own with gpu.sm_count and engine.sm_count "
            f"{card.multiprocessors}",
        )
    if card.memory_total_mib is not None and card.memory_total_mib < wanted.memory_mib:
        verdict.refuse(
            f"GPU: {card.memory_total_mib} MiB of memory found, {wanted.memory_mib} declared",
            "declare gpu.memory_mib, max_context, max_concurrency and kv_dtype for this card in a "
            "group of its own",
        )
    if card.compute_capability is not None and card.compute_capability.replace(".", "") != str(
        box.engine.cuda_architecture
    ):
        verdict.refuse(
            f"GPU: compute capability {card.compute_capability}, the engine is built for "
            f"{box.engine.cuda_architecture}",
            "declare engine.cuda_architecture for this card",
        )
    if gpu.driver_numbers < version_numbers(wanted.minimum_driver):
        verdict.refuse(
            f"GPU: driver {gpu.driver_version} found, {wanted.minimum_driver} is the oldest proven one",
            "update the NVIDIA driver in a maintenance window, reboot, run again",
        )
    elif version_numbers(gpu.cuda_version) < version_numbers(box.engine.cuda):
        verdict.refuse(
            f"GPU: driver {gpu.driver_version} runs CUDA up to {gpu.cuda_version}, the engine needs "
            f"{box.engine.cuda}",
            "update the NVIDIA driver",
        )
    if box.serve.wddm_evictable_budget and card.drives_desktop:
        verdict.refuse(
            "GPU: wddm_evictable_budget is declared, but a display or the desktop uses this card: "
            "the server would die "
            "while loading or in mid-prefill, without a word",
            "declare serve.wddm_evictable_budget False, or use a card with nothing attached",
        )


def _judge_memory(box: Settings, found: Found, card: GpuCard, verdict: Verdict) -> None:
    if card.memory_free_mib is None or card.memory_total_mib is None:
        verdict.warnings.append("GPU: free memory is not told; whether the server fits is not known")
        return
    total = card.memory_total_mib * vram.MIB
    free = card.memory_free_mib * vram.MIB
    load = memory_load(box)
    running = any(ours(box, process.executable_path) for process in found.processes)
    if running:
        # WDDM tells no memory per process: what our server holds is computed, at most what is in use at all.
        holds = vram.plan(load, total, total)
        free += min(total - free, holds.weights_bytes + holds.reservation_bytes)
    plan = vram.plan(load, free, total)
    verdict.facts.append(
        f"{free / GIB:.1f} GiB VRAM free{' without our server' if running else ''} "
        f"(start {plan.needed_to_start_bytes / GIB:.1f}, full pool {plan.needed_for_cap_bytes / GIB:.1f})"
    )
    if not plan.starts:
        verdict.refuse(
            f"GPU: {free / GIB:.1f} GiB of memory are free, the server needs "
            f"{plan.needed_to_start_bytes / GIB:.1f} to "
            f"start (weights {plan.weights_bytes / GIB:.1f}, states and graphs "
            f"{plan.fixed_bytes / GIB:.1f}, the rest "
            "for one context)",
            "close desktop programs that hold video memory, or declare a smaller max_context, "
            "fewer lanes, or kv_dtype "
            "rk2v4-e8",
        )
        return
    if plan.pool_tokens < plan.cap_tokens and box.serve.kv_capacity == "auto":
        verdict.warnings.append(
            f"GPU: the pool will hold {plan.pool_tokens:,} of {plan.cap_tokens:,} tokens; "
            f"{plan.needed_for_cap_bytes / GIB:.1f} GiB free would give all"
        )
    reserve = RESERVE_WITH_CACHE_BYTES if box.serve.disk_cache else RESERVE_BYTES
    if plan.left_bytes < reserve:
        verdict.warnings.append(
            f"GPU: only {plan.left_bytes / GIB:.1f} GiB would stay free; restoring a cached prefix "
            f"and the desktop want "
            f"{reserve / GIB:.1f}"
        )


def _judge_disks(box: Settings, found: Found, verdict: Verdict) -> None:
    root = found.disks[box.layout.root]
    if root.free_bytes is not None:
        verdict.facts.append(f"{root.root or box.layout.root} {root.free_bytes / GIB:.0f} GiB free")
    cache = box.serve.disk_cache_dir if box.serve.disk_cache else None
    if cache is not None:
        place = found.disks[cache]
        if place.kind == "not nvme":
            verdict.refuse(
                f"disk cache: {cache} lies on {place.model or 'a disk'} ({place.reason}); the "
                f"DirectStorage path that "
                f"restores a prefix needs NVMe (chain: {' > '.join(place.chain)})",
                "declare serve.disk_cache_dir on an NVMe disk, or serve.disk_cache False",
            )
        elif place.root is None and "no part of" in (place.reason or ""):
            verdict.refuse(
                f"disk cache: {cache} is on a drive that this box does not have",
                "declare serve.disk_cache_dir on an NVMe disk of the box, or serve.disk_cache False",
            )
        elif place.kind == "unknown":
            verdict.warnings.append(
                f"disk cache: whether {cache} lies on NVMe is not known ({place.reason}; chain: "
                f"{' > '.join(place.chain)})"
            )
    for drive, (needed, what) in sorted(_space(box, found).items()):
        free = min(place.free_bytes or 0 for place in found.disks.values() if place.root == drive)
        if free < needed:
            verdict.refuse(
                f"disk: {drive} has {free / GIB:.0f} GiB free, {' and '.join(what)} need {needed / GIB:.0f}",
                "free space, or move layout.root or serve.disk_cache_dir to another disk",
            )


def _space(box: Settings, found: Found) -> dict[str, tuple[int, list[str]]]:
    needs: dict[str, tuple[int, list[str]]] = {}

    def need(path: str, size_bytes: int, what: str) -> None:
        place = found.disks[path]
        if place.root is None or place.free_bytes is None:
            return
        before, names = needs.get(place.root, (0, []))
        needs[place.root] = (before + size_bytes, [*names, what])

    if found.release_faults:
        need(box.layout.root, box.engine.minimum_build_free_gib * GIB, "the build")
    if found.model.kind == "absent":
        need(box.layout.models, box.model.size_bytes, "the model")
    cache = box.serve.disk_cache_dir if box.serve.disk_cache else None
    if cache is not None and box.serve.disk_cache_gb and found.folders[cache].kind == "absent":
        need(cache, box.serve.disk_cache_gb * GIB, "the disk cache")
    return needs


def _judge_port(box: Settings, found: Found, verdict: Verdict) -> None:
    port = box.serve.port
    reserved = found.system.excluded_by(port)
    if reserved is not None:
        verdict.refuse(
            f"port {port}: Windows keeps the range {reserved} for itself (Hyper-V, WSL or NAT); "
            f"binding would fail with "
            "error 10013 although nothing listens",
            f"declare another serve.port, or `netsh int ipv4 add excludedportrange protocol=tcp "
            f"startport={port} "
            "numberofports=1` right after a boot",
        )
    strangers = [one for one in found.listeners if one.port == port and not ours(box, one.executable_path)]
    for one in strangers:
        verdict.refuse(
            f"port {port}: {one.executable_path or 'a program that cannot be named'} (process "
            f"{one.process_id}) listens "
            f"on {one.address}",
            "stop that program, or declare another serve.port",
        )


def _judge_toolchain(box: Settings, found: Found, verdict: Verdict) -> None:
    for wrong, remedy in _missing_tools(box, found.toolchain):
        verdict.refuse(f"build: {wrong}", remedy)
    if found.system.pending_reboot:
        verdict.refuse(
            f"build: a reboot is pending ({', '.join(found.system.pending_reboot)}); a "
            f"half-installed toolkit or a "
            "sudden restart would spoil the build",
            "reboot the box in a window of your choice, run again",
        )


def _missing_tools(box: Settings, tools: ToolchainModel) -> Iterator[tuple[str, str]]:
    engine = box.engine
    if tools.cuda_of(engine.cuda) is None:
        present = ", ".join(sorted({one.version or one.path for one in tools.cuda})) or "none"
        yield (
            f"CUDA toolkit {engine.cuda} is not there (found: {present})",
            f"install CUDA {engine.cuda} with its no-reboot switch (-n), or declare engine.cuda",
        )
    if not any(one.complete and one.vcvars64_path for one in tools.visual_studio):
        yield (
            "no complete Visual Studio or Build Tools with C++ is there",
            "install Visual Studio 2022 Build Tools with the workload Desktop development with C++",
        )
    if tools.cmake is None or tools.cmake.numbers < version_numbers(engine.minimum_cmake):
        present = "none" if tools.cmake is None else str(tools.cmake.version)
        yield (
            f"CMake {engine.minimum_cmake} is the engine's floor (found: {present})",
            "install a later CMake",
        )
    for name, tool in (("Ninja", tools.ninja), ("Git", tools.git)):
        if tool is None:
            yield f"{name} is not there", f"install {name} for all users"
    if tools.vcpkg_root is None:
        yield (
            f"no vcpkg in {engine.vcpkg_root}",
            "clone vcpkg there and run bootstrap-vcpkg.bat, or declare engine.vcpkg_root",
        )
