"""What preflight concludes from what it found; pure."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ninfer_fleet import preflight
from ninfer_fleet.preflight import Found, Verdict
from ninfer_fleet.settings import Settings
from winfleet.disk.model import DiskPlace
from winfleet.files.model import FileState
from winfleet.gpu.model import GpuCard, GpuProcess, GpuState
from winfleet.network.model import Listener
from winfleet.network.port_ranges import PortRange
from winfleet.process.model import Process
from winfleet.system.model import SystemState
from winfleet.toolchain.model import CudaToolkit, Program, ToolchainState, VisualStudio

GIB = 1024**3
SERVER = r"C:\ninfer\current\ninfer-serve.exe"

CARD = GpuCard(
    pci_bus_id="00000000:41:00.0",
    name="NVIDIA GeForce RTX 4090 D",
    memory_total_mib=49_140,
    memory_used_mib=812,
    memory_free_mib=48_328,
    display_attached=True,
    multiprocessors=114,
    compute_capability="8.9",
    cuda_ordinal=0,
)
GPU = GpuState(driver_version="616.56", cuda_version="13.3", cards=(CARD,))
SYSTEM = SystemState(
    computer_name="GPU01",
    caption="Microsoft Windows 11 Pro",
    version="10.0.22631",
    build_number=22631,
    boot_time_utc="2026-09-01T00:00:00Z",
    time_utc="2026-09-02T00:00:00Z",
    total_memory_bytes=512 * GIB,
    free_memory_bytes=400 * GIB,
    logical_processors=96,
    time_zone_id=None,
    culture=None,
    system_directory=r"C:\Windows\System32",
    pending_reboot=(),
    excluded_ports=(PortRange(50_000, 50_059),),
    machine_environment={},
)
TOOLS = ToolchainState(
    cuda=(CudaToolkit("CUDA_PATH_V13_3", r"C:\CUDA\v13.3", "13.3", "13.3.33"),),
    visual_studio=(
        VisualStudio(r"C:\VS", "Visual Studio 2022", "17.14", "14.44.35207", r"C:\VS\vcvars64.bat", True),
    ),
    cmake=Program(r"C:\cmake.exe", "3.31.6"),
    ninja=Program(r"C:\ninja.exe", "1.12.1"),
    git=Program(r"C:\git.exe", "2.50.1"),
    curl=Program(r"C:\curl.exe", "8.14.1"),
    vcpkg_root=r"C:\vcpkg",
    vcpkg_exe=r"C:\vcpkg\vcpkg.exe",
    vswhere_path=r"C:\vswhere.exe",
)


def box(**nouns: Any) -> Settings:
    nouns["serve"] = {"api_key": "env:NINFER_API_KEY", **nouns.get("serve", {})}
    return Settings.model_validate(nouns)


def place(path: str, **changes: Any) -> DiskPlace:
    found = DiskPlace(
        path=path,
        existing_path="C:\\",
        root="C:\\",
        kind="nvme",
        reason="the bus is NVMe",
        bus="NVMe",
        model="ORICO",
        file_system="NTFS",
        size_bytes=4000 * GIB,
        free_bytes=3000 * GIB,
        chain=("C:\\", "disk 0"),
    )
    return dataclasses.replace(found, **changes)


def found(**changes: Any) -> Found:
    paths = (r"C:\ninfer", r"C:\ninfer\models", r"C:\ninfer-cache")
    base = Found(
        system=SYSTEM,
        gpu=GPU,
        toolchain=TOOLS,
        disks={path: place(path) for path in paths},
        listeners=[],
        processes=[],
        model=FileState(r"C:\ninfer\models\qwen3_8_27b.ninfer", "absent"),
        folders={r"C:\ninfer-cache": FileState(r"C:\ninfer-cache", "absent")},
        release_faults=["release.json is not there"],
    )
    return dataclasses.replace(base, **changes)


def card(**changes: Any) -> GpuState:
    return dataclasses.replace(GPU, cards=(dataclasses.replace(CARD, **changes),))


def judged(seen: Found, declared: Settings | None = None) -> Verdict:
    return preflight.judge(declared or box(), seen)


def test_a_healthy_box_passes_and_is_described_in_one_line() -> None:
    verdict = judged(found())
    assert verdict.refusals == []
    assert verdict.warnings == []
    line = ", ".join(verdict.facts)
    assert "RTX 4090 D, 114 SMs, driver 616.56" in line
    assert "47.2 GiB VRAM free (start 22.6, full pool 29.4)" in line
    assert "\n" not in line


REFUSED = [
    (
        found(gpu=GpuState(None, None, (), smi_fault="no NVIDIA driver is installed")),
        "no NVIDIA driver is installed",
    ),
    (found(gpu=card(multiprocessors=128)), "128 SMs, the engine is built for 114"),
    (found(gpu=card(multiprocessors=None)), "does not tell the SM count"),
    (found(gpu=card(memory_total_mib=24_564, memory_free_mib=23_700)), "24564 MiB of memory found"),
    (found(gpu=card(compute_capability="8.6")), "compute capability 8.6"),
    (
        found(gpu=dataclasses.replace(GPU, driver_version="560.94", cuda_version="12.6")),
        "driver 560.94 found",
    ),
    (found(gpu=dataclasses.replace(GPU, cuda_version="13.0")), "runs CUDA up to 13.0"),
    (found(gpu=card(memory_free_mib=22 * 1024)), "22.0 GiB of memory are free, the server needs 22.6"),
    (
        found(
            disks={
                **found().disks,
                r"C:\ninfer-cache": place(r"C:\ninfer-cache", kind="not nvme", root="D:\\"),
            }
        ),
        "needs NVMe",
    ),
    (
        found(disks={path: place(path, free_bytes=100 * GIB) for path in found().disks}),
        "the build and the model and the disk cache need 277",
    ),
    (found(system=dataclasses.replace(SYSTEM, excluded_ports=(PortRange(7981, 8080),))), "range 7981-8080"),
    (found(listeners=[Listener("0.0.0.0", 8080, 4242, r"C:\other\web.exe", None)]), r"C:\other\web.exe"),
    (found(system=dataclasses.replace(SYSTEM, pending_reboot=("WindowsUpdate",))), "a reboot is pending"),
    (found(toolchain=dataclasses.replace(TOOLS, cuda=())), "CUDA toolkit 13.3 is not there"),
    (found(toolchain=dataclasses.replace(TOOLS, visual_studio=())), "no complete Visual Studio"),
    (found(toolchain=dataclasses.replace(TOOLS, cmake=Program("c", "3.22.1"))), "CMake 3.28"),
    (found(toolchain=dataclasses.replace(TOOLS, ninja=None)), "Ninja is not there"),
    (found(toolchain=dataclasses.replace(TOOLS, git=None)), "Git is not there"),
    (found(toolchain=dataclasses.replace(TOOLS, vcpkg_root=None)), "no vcpkg"),
    (found(toolchain=dataclasses.replace(TOOLS, curl=None)), "curl.exe"),
]


@pytest.mark.parametrize(("seen", "words"), REFUSED)
def test_an_unfit_box_is_refused_with_reason_and_remedy(seen: Found, words: str) -> None:
    verdict = judged(seen)
    matching = [line for line in verdict.refusals if words in line]
    assert len(matching) == 1, verdict.refusals
    assert "Remedy: " in matching[0]


def test_the_wddm_budget_is_refused_when_the_desktop_runs_on_a_card_declared_headless() -> None:
    declared = box(gpu={"display": False}, serve={"wddm_evictable_budget": True})
    desktop = card(display_attached=False, processes=(GpuProcess(1, r"C:\Windows\explorer.exe", "C+G"),))
    assert any("wddm_evictable_budget" in line for line in judged(found(gpu=desktop), declared).refusals)
    assert judged(found(gpu=card(display_attached=False)), declared).refusals == []


def test_our_own_running_server_is_neither_a_stranger_nor_missing_memory() -> None:
    server = Process(77, "2026-09-01T00:00:00Z", 1, "ninfer-serve.exe", SERVER, None, None, None)
    busy = card(memory_free_mib=18 * 1024, memory_used_mib=49_140 - 18 * 1024)
    seen = found(
        gpu=busy,
        processes=[server],
        listeners=[Listener("0.0.0.0", 8080, 77, SERVER, None)],
        release_faults=[],
    )
    verdict = judged(seen)
    assert verdict.refusals == []
    assert "without our server" in ", ".join(verdict.facts)


def test_a_present_release_needs_no_toolchain_and_no_reboot() -> None:
    seen = found(
        release_faults=[],
        toolchain=dataclasses.replace(TOOLS, cuda=(), git=None),
        system=dataclasses.replace(SYSTEM, pending_reboot=("FileRename",)),
    )
    assert judged(seen).refusals == []


def test_an_unknown_bus_and_a_small_pool_are_warnings() -> None:
    disks = {**found().disks, r"C:\ninfer-cache": place(r"C:\ninfer-cache", kind="unknown", reason="RAID")}
    verdict = judged(found(disks=disks, gpu=card(memory_free_mib=25 * 1024)))
    assert verdict.refusals == []
    assert any("not known (RAID" in line for line in verdict.warnings)
    assert any("of 524,288 tokens" in line for line in verdict.warnings)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (SERVER, True),
        (r"c:\NINFER\releases\x\ninfer-serve.exe", True),
        (r"C:\other\ninfer-serve.exe", False),
        (r"C:\ninfer\current-old\ninfer-serve.exe", False),
        (None, False),
    ],
)
def test_ours_is_what_lies_in_our_folders(path: str | None, expected: bool) -> None:
    assert preflight.ours(box(), path) is expected
