"""GPU, toolchain, disks, system, listeners: what the box is."""

from __future__ import annotations

import json

import pytest
from powershell import EngineBox, engine_box

from winfleet.gpu.model import GpuState
from winfleet.toolchain.model import ToolchainState

COMPILE_COMMANDS = [
    {"file": "C:/src/a.cu", "command": "nvcc.exe -DNINFER_TARGET_SM_COUNT=114 -arch=sm_89 -c C:/src/a.cu"},
    {"file": "C:/src/b.cu", "arguments": ["nvcc.exe", "-DNINFER_TARGET_SM_COUNT=128", "-c", "C:/src/b.cu"]},
    {
        "file": "C:/src/c.cu",
        "command": 'nvcc.exe "--generate-code=arch=compute_89,code=[compute_89,sm_89]" -c C:/src/c.cu',
    },
    {"file": "C:/src/d.cpp", "command": "cl.exe /DNINFER_TARGET_SM_COUNT=114 /c C:/src/d.cpp"},
]


def test_the_driver_tells_the_multiprocessors_that_nvidia_smi_does_not(box: EngineBox) -> None:
    answer = box.call("Get-BoxGpu")
    assert answer["NvidiaSmi"]["ExitCode"] == 0
    assert answer["NvidiaSmi"]["Path"].lower() == "c:\\windows\\system32\\nvidia-smi.exe"
    assert "<nvidia_smi_log>" in answer["NvidiaSmi"]["Xml"]
    driver = answer["Driver"]
    assert (driver["Loaded"], driver["Error"], driver["InitResult"]) == (True, None, 0)
    assert driver["DriverVersion"] == 13030
    (device,) = driver["Devices"]
    assert device["MultiprocessorCount"] == 114
    assert (device["ComputeCapabilityMajor"], device["ComputeCapabilityMinor"]) == (8, 9)
    assert device["TotalMemoryBytes"] == 49140 << 20
    (card,) = GpuState.parse(answer).cards
    assert (card.multiprocessors, card.name) == (114, "NVIDIA GeForce RTX 4090 D")


@pytest.mark.wine
@pytest.mark.usefixtures("wine_box")
def test_a_box_without_a_driver_says_so() -> None:
    with engine_box("wine", "no-driver") as broken:
        answer = broken.call("Get-BoxGpu")
        assert answer["Driver"]["Loaded"] is False
        assert "nvcuda.dll" in answer["Driver"]["Error"]
        assert answer["Driver"]["Devices"] == []
        assert answer["NvidiaSmi"]["ExitCode"] != 0


@pytest.mark.wine
@pytest.mark.usefixtures("wine_box")
def test_a_chinese_windows_answers_in_its_code_page() -> None:
    with engine_box("wine", "zh-cn") as chinese:
        system = chinese.call("Get-BoxSystem")
        assert system["Culture"] == "zh-CN"
        assert "\u7aef\u53e3" in system["ExcludedPortRangeText"]
        assert "50059" in system["ExcludedPortRangeText"]


def test_the_toolchain_is_found_where_it_is_installed(box: EngineBox) -> None:
    answer = box.call("Get-BoxToolchain")
    assert {one["Variable"] for one in answer["Cuda"]} == {"CUDA_PATH", "CUDA_PATH_V13_3"}
    found = ToolchainState.parse(answer)
    assert {toolkit.version for toolkit in found.cuda} == {"13.3"}
    assert [studio.toolset for studio in found.visual_studio] == ["14.44.35207"]
    assert found.visual_studio[0].vcvars64_path is not None
    assert found.cmake is not None
    assert found.cmake.version == "3.31.6"
    assert found.ninja is not None
    assert "CommonExtensions" in found.ninja.path, "no Ninja of its own: the one of Visual Studio"
    assert found.git is not None
    assert found.git.version is not None
    assert found.git.version.startswith("2.50.1")
    assert found.curl is not None
    assert (found.vcpkg_root, found.vcpkg_exe) == ("C:\\vcpkg", "C:\\vcpkg\\vcpkg.exe")


def test_another_vcpkg_can_be_named(box: EngineBox) -> None:
    assert box.call("Get-BoxToolchain", VcpkgRoot="C:\\absent")["Vcpkg"] is None


def test_compile_commands_are_counted_on_the_box(box: EngineBox) -> None:
    box.host("C:\\contract.json").write_text(json.dumps(COMPILE_COMMANDS))
    answer = box.call("Get-BoxCompileCommand", Path="C:\\contract.json", Definition="NINFER_TARGET_SM_COUNT")
    assert answer == {
        "Exists": True,
        "CommandCount": 4,
        "CudaCommandCount": 3,
        "DefinitionValues": {"114": 1, "128": 1},
        "WithoutDefinition": 1,
        "Architectures": {"sm_89": 1, "arch=compute_89,code=[compute_89,sm_89]": 1},
    }
    absent = box.call("Get-BoxCompileCommand", Path="C:\\none.json", Definition="X")
    assert (absent["Exists"], absent["CommandCount"]) == (False, 0)


def test_a_path_leads_to_its_disk(box: EngineBox) -> None:
    answers = box.call("Get-BoxDisk", Path=["C:\\models\\not\\yet", "Q:\\nowhere"])
    found, missing = answers
    assert (found["BusType"], found["MediaType"], found["FileSystem"]) == ("NVMe", "SSD", "NTFS")
    assert found["ExistingPath"].lower() == "c:\\models"
    assert (found["Root"], found["DriveType"]) == ("C:\\", "Fixed")
    assert 0 < found["FreeBytes"] < found["SizeBytes"]
    assert any("NVMe" in step for step in found["Chain"])
    assert missing["BusType"] is None
    assert missing["Error"]


def test_a_junction_on_the_way_is_followed(box: EngineBox) -> None:
    box.host("C:\\real\\cache").mkdir(parents=True, exist_ok=True)
    box.call("New-BoxJunction", Path="C:\\way", Target="C:\\real")
    (answer,) = box.call("Get-BoxDisk", Path=["C:\\way\\cache\\new"])
    assert answer["ExistingPath"].lower() == "c:\\real\\cache"
    assert any("C:\\way" in step for step in answer["Chain"])


def test_the_system_is_told_in_its_own_terms(box: EngineBox) -> None:
    answer = box.call("Get-BoxSystem")
    assert answer["Caption"] == "Microsoft Windows 11 Pro"
    assert (answer["Version"], answer["BuildNumber"]) == ("10.0.22631", "22631")
    assert answer["ComputerName"] == "GPU01"
    assert answer["TotalPhysicalMemoryBytes"] == 512 << 30
    assert answer["FreePhysicalMemoryBytes"] < answer["TotalPhysicalMemoryBytes"]
    assert answer["LogicalProcessorCount"] == 96
    assert answer["BootTimeUtc"].endswith("Z")
    assert answer["BootTimeUtc"] <= answer["TimeUtc"]
    assert answer["PendingReboot"] == []
    assert "50000" in answer["ExcludedPortRangeText"]
    assert answer["MachineEnvironment"]["CUDA_PATH"].endswith("v13.3")


def test_names_and_sids_are_looked_up_one_by_one(box: EngineBox) -> None:
    known, missing, sid = box.call("Get-BoxAccount", Name=["Administrator", "nobody-here", "S-1-5-18"])
    assert known["Sid"].startswith("S-1-5-21-")
    assert known["Sid"].endswith("-500")
    assert (missing["Name"], missing["Sid"]) == ("nobody-here", None)
    assert missing["Error"]
    assert sid["Sid"] == "S-1-5-18"


def test_a_listener_is_told_with_its_owner(box: EngineBox) -> None:
    session = box.call("Get-BoxSession")
    box.box.windows.network.listen("0.0.0.0", 8099, session["ProcessId"])
    try:
        (answer,) = box.call("Get-BoxListener", Port=[8099])
        assert (answer["LocalAddress"], answer["LocalPort"]) == ("0.0.0.0", 8099)
        assert answer["OwningProcess"] == session["ProcessId"]
        assert box.call("Get-BoxListener", Port=[8098]) == []
        assert 8099 in [one["LocalPort"] for one in box.call("Get-BoxListener")]
    finally:
        box.box.windows.network.closed("0.0.0.0", 8099)
