"""GPU, toolchain, system, disk, files, processes, HTTP, jobs, compile commands: raw answers to models."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winfleet.account.model import AccountSids, known_sid
from winfleet.answer import Model, ModelError, plain
from winfleet.disk.model import DiskPlace
from winfleet.files.model import FileState
from winfleet.gpu.model import GpuState, bus_id, parse_smi
from winfleet.job.model import Environment, Run, Verify, check_steps, job_hash
from winfleet.network.model import Listener
from winfleet.network.port_ranges import PortRange, excluded_ranges, merged
from winfleet.path import absolute_path, same_path
from winfleet.process.model import Process
from winfleet.system.model import SystemState
from winfleet.toolchain.compile_commands import CompileCommandsState
from winfleet.toolchain.model import ToolchainState, nvcc_versions
from winfleet.web.model import HttpAnswer

DATA = Path(__file__).parent.parent / "data" / "nvidia"
REAL = (DATA / "h200-linux-580.159.xml").read_text()


def smi(xml: str, devices: list[dict[str, Any]] | None = None, **changes: Any) -> GpuState:
    return GpuState.parse(
        {
            "NvidiaSmi": {"Path": "C:\\smi.exe", "ExitCode": 0, "Xml": xml, "StandardError": "", **changes},
            "Driver": {
                "Loaded": True,
                "Error": None,
                "InitResult": 0,
                "DriverVersion": 13030,
                "Devices": devices,
            },
        }
    )


def windows_xml(**changes: str) -> str:
    values = {
        "version": "<driver_version>616.56</driver_version>",
        "attached": "<display_attached>No</display_attached>",
        "processes": "",
    } | changes
    return f"""<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd"><nvidia_smi_log>
    {values["version"]}<cuda_version>13.3</cuda_version><attached_gpus>1</attached_gpus>
    <gpu id="00000000:01:00.0"><product_name>NVIDIA GeForce RTX 4090 D</product_name>
    <display_mode>Requested functionality has been deprecated</display_mode>{values["attached"]}
    <display_active>Enabled</display_active>
    <driver_model><current_dm>WDDM</current_dm></driver_model><uuid>GPU-1</uuid>
    <pci><pci_device_id>268510DE</pci_device_id><pci_bus_id>00000000:01:00.0</pci_bus_id></pci>
    <fb_memory_usage><total>49140 MiB</total><used>1900 MiB</used><free>46826 MiB</free></fb_memory_usage>
    <processes>{values["processes"]}</processes></gpu></nvidia_smi_log>"""


def device(bus: str = "0000:01:00.0", multiprocessors: int = 114, ordinal: int = 0) -> dict[str, Any]:
    return {
        "Ordinal": ordinal,
        "Name": "NVIDIA GeForce RTX 4090 D",
        "PciBusId": bus,
        "MultiprocessorCount": multiprocessors,
        "ComputeCapabilityMajor": 8,
        "ComputeCapabilityMinor": 9,
        "TotalMemoryBytes": 49140 * 2**20,
    }


def test_a_real_card() -> None:
    version, cuda, cards = parse_smi(REAL)
    assert (version, cuda) == ("580.159.04", "13.0")
    (card,) = cards
    assert card.name == "NVIDIA H200"
    assert (card.memory_total_mib, card.memory_used_mib, card.memory_free_mib) == (143771, 0, 143156)
    assert card.driver_model is None
    assert (card.display_attached, card.display_active) == (True, False)
    assert card.pci_device_id == "10de:2335"


def test_the_driver_is_joined_by_bus_id_not_by_order() -> None:
    two = windows_xml().replace(
        "</nvidia_smi_log>", windows_xml().split("</attached_gpus>")[1].replace("01:00.0", "41:00.0")
    )
    gpu = smi(two, [device("0000:41:00.0", 128, 0), device("0000:01:00.0", 114, 1)])
    assert [(card.multiprocessors, card.cuda_ordinal) for card in gpu.cards] == [(114, 1), (128, 0)]
    assert gpu.cards[0].compute_capability == "8.9"
    assert gpu.cards[0].pci_device_id == "10de:2685"
    assert gpu.driver_numbers == (616, 56)


def test_a_driver_that_calls_its_version_deprecated() -> None:
    xml = windows_xml(version="<driver_version>Deprecated</driver_version><kmd_version>610.62</kmd_version>")
    assert smi(xml, []).driver_version == "610.62"


def test_the_desktop_is_seen_by_its_programs() -> None:
    assert not smi(windows_xml(), []).cards[0].drives_desktop
    assert smi(windows_xml(attached="<display_attached>Yes</display_attached>"), []).cards[0].drives_desktop
    explorer = (
        "<process_info><pid>1</pid><type>C+G</type><process_name>C:\\Windows\\explorer.exe</process_name>"
        "<used_memory>Not available in WDDM driver model</used_memory></process_info>"
    )
    assert smi(windows_xml(attached="", processes=explorer), []).cards[0].drives_desktop


def test_no_driver_and_broken_driver_are_told_apart() -> None:
    absent = GpuState.parse({"NvidiaSmi": {"Path": None}, "Driver": {"Loaded": False, "Error": "not found"}})
    assert "no NVIDIA driver" in (absent.smi_fault or "")
    assert "nvcuda.dll" in (absent.driver_fault or "")
    broken = smi("", [], ExitCode=9, StandardError="couldn't communicate with the NVIDIA driver")
    assert "code 9" in (broken.smi_fault or "")
    assert "communicate" in (broken.smi_fault or "")


def test_bus_ids() -> None:
    assert bus_id("00000000:01:00.0") == bus_id("0000:01:00.0") == bus_id("01:00.0") == bus_id("0:1:0.0")
    with pytest.raises(ModelError):
        bus_id("gpu0")


def test_nvcc_text() -> None:
    assert nvcc_versions((DATA / "nvcc-13.0.txt").read_text()) == ("13.0", "13.0.88")
    assert nvcc_versions(None) == (None, None)


def test_toolchain() -> None:
    vswhere = [
        {
            "installationPath": "C:\\BuildTools",
            "displayName": "Build Tools 2022",
            "installationVersion": "17.9.1",
            "isComplete": True,
        },
        {"installationPath": "C:\\VS18", "displayName": "VS 2026", "installationVersion": "18.0.1"},
    ]
    value = {
        "Cuda": [
            {"Variable": "CUDA_PATH", "Path": "C:\\CUDA\\v13.3", "VersionJson": "", "NvccVersion": None},
            {
                "Variable": "CUDA_PATH_V13_1",
                "Path": "C:\\CUDA\\v13.1",
                "VersionJson": '{"cuda": {"version": "13.1.0"}}',
                "NvccVersion": None,
            },
        ],
        "Vswhere": {"Path": "C:\\vswhere.exe", "Json": json.dumps(vswhere)},
        "VisualStudio": [
            {
                "InstallationPath": "C:\\buildtools\\",
                "DefaultToolset": "14.44.35207\r\n",
                "VcVars64Path": "C:\\BuildTools\\VC\\vcvars64.bat",
            }
        ],
        "Programs": {
            "cmake": {"Path": "C:\\cmake.exe", "VersionText": "cmake version 3.31.2\n\nCMake suite"},
            "git": {"Path": "C:\\git.exe", "VersionText": "git version 2.51.0.windows.1"},
            "ninja": {"Path": "C:\\ninja.exe", "VersionText": "1.12.1"},
            "curl": None,
        },
        "Vcpkg": None,
    }
    found = ToolchainState.parse(value)
    assert [one.version for one in found.visual_studio] == ["18.0.1", "17.9.1"]
    assert found.visual_studio[1].toolset == "14.44.35207"
    assert found.visual_studio[0].vcvars64_path is None
    assert found.cmake is not None
    assert found.cmake.numbers == (3, 31, 2)
    assert found.git is not None
    assert found.git.version == "2.51.0"
    assert found.curl is None
    assert found.cuda[0].version is None
    assert found.cuda_of("13.1") == found.cuda[1]
    assert found.cuda_of("13.3") is None


@pytest.mark.parametrize(
    ("heading", "note"),
    [
        ("Protocol tcp Port Exclusion Ranges", "* - Administered port exclusions."),
        ("协议 tcp 端口排除范围", "* - 管理的端口排除。"),
        ("Ausgeschlossene Portbereiche für Protokoll tcp", "* - Verwaltete Portausschlüsse."),
    ],
)
def test_reserved_ports_in_any_language(heading: str, note: str) -> None:
    text = (
        f"\r\n{heading}\r\n\r\nStart Port    End Port\r\n----------    --------\r\n"
        f"      8001        8100\r\n     50000       50059     *\r\n\r\n{note}\r\n"
    )
    assert excluded_ranges(text) == (PortRange(8001, 8100), PortRange(50000, 50059))


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=12))
def test_merged_ranges_hold_the_same_ports(spans: list[tuple[int, int]]) -> None:
    ranges = [PortRange(first, first + more) for first, more in spans]
    result = merged(ranges)
    for port in range(0, 345):
        assert any(port in one for one in ranges) == any(port in one for one in result)
    assert all(one.last + 1 < two.first for one, two in pairwise(result))


def disk(**changes: Any) -> DiskPlace:
    return DiskPlace.parse({"Path": "C:\\x", "BusType": None, "DriveType": "Fixed", "Chain": [], **changes})


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"BusType": "NVMe"}, "nvme"),
        ({"BusType": 17}, "nvme"),
        ({"BusType": "SATA"}, "not nvme"),
        ({"BusType": "USB"}, "not nvme"),
        ({"DriveType": "Network"}, "not nvme"),
        ({"BusType": "RAID"}, "unknown"),
        ({"BusType": "Spaces"}, "unknown"),
        ({"BusType": "File Backed Virtual"}, "unknown"),
        ({"BusType": "SAS"}, "unknown"),
        ({"Error": "access denied"}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_a_disk_is_nvme_or_not_or_unknown(changes: dict[str, Any], kind: str) -> None:
    assert disk(**changes).kind == kind


def test_paths() -> None:
    assert same_path("C:\\A\\b\\", "c:/a/B")
    assert same_path("\\\\?\\C:\\a", "C:\\a")
    assert not same_path("C:\\", "C:\\a")
    assert [absolute_path(one) for one in ("C:\\a", "C:/a", "\\\\s\\x", "a", "C:a", "\\a")] == [True] * 3 + [
        False
    ] * 3


def test_models_print_as_json_without_contents() -> None:
    state = FileState.parse(
        {"Path": "C:\\k", "Kind": "file", "ContentBase64": "c2VjcmV0", "Attributes": ["ReadOnly"]}
    )
    assert state.read_only
    shown = json.dumps(state.to_json())
    assert "secret" not in shown
    assert "<6 bytes>" in shown
    assert plain({"a": [state]})["a"][0]["kind"] == "file"
    with pytest.raises(ModelError):
        FileState.parse({"Path": "C:\\k", "Kind": "socket"})
    assert isinstance(state, Model)


def test_a_process_is_its_id_and_its_creation() -> None:
    one = Process.parse(
        {"ProcessId": 5, "Name": "a.exe", "CreationTimeUtc": "1", "ExecutablePath": "C:\\A.exe"}
    )
    later = Process.parse({"ProcessId": 5, "Name": "a.exe", "CreationTimeUtc": "2"})
    assert not one.same_as(later)
    assert one.runs("c:/a.exe")
    assert not later.runs("c:/a.exe")
    heard = Listener.parse({"LocalAddress": "127.0.0.1", "LocalPort": 1, "OwningProcess": 5})
    assert (heard.address, heard.port, heard.process_id) == ("127.0.0.1", 1, 5)


def test_http_answers() -> None:
    answer = HttpAnswer.parse({"StatusCode": 401, "Headers": {"Content-Type": "x"}, "Body": '{"a": 1}'})
    assert (answer.ok, str(answer), answer.json(), answer.headers) == (
        False,
        "HTTP 401",
        {"a": 1},
        {"content-type": "x"},
    )
    assert str(HttpAnswer.parse({"ErrorKind": "refused", "ErrorMessage": "no"})) == "no answer (refused: no)"


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"DefinitionValues": {"114": 3, "128": 1}}, False),
        ({"DefinitionValues": {"128": 4}}, False),
        ({"WithoutDefinition": 1}, False),
        ({"CudaCommandCount": 0, "DefinitionValues": {}}, False),
        ({"Exists": False}, False),
    ],
)
def test_a_macro_must_reach_every_cuda_command(changes: dict[str, Any], good: bool) -> None:
    value = {
        "Exists": True,
        "CommandCount": 9,
        "CudaCommandCount": 4,
        "DefinitionValues": {"114": 4},
        "WithoutDefinition": 0,
        "Architectures": {},
    }
    assert CompileCommandsState.parse({**value, **changes}).carries_only("114") is good


def test_job_hash_depends_on_every_step_and_nothing_else() -> None:
    steps = [
        Environment("vs", "C:\\v.bat"),
        Run("a", "C:\\a.exe", ("x y",), environment={"A": "1", "B": "2"}),
        Verify("v", "C:\\m.part", "C:\\m", 5, "AB"),
    ]
    again = [
        Environment("vs", "C:\\v.bat"),
        Run("a", "C:\\a.exe", ("x y",), environment={"B": "2", "A": "1"}),
        Verify("v", "C:\\m.part", "C:\\m", 5, "ab"),
    ]
    assert job_hash(steps) == job_hash(again)
    assert job_hash(steps) != job_hash(steps[::-1])
    assert job_hash(steps) != job_hash([steps[0], Run("a", "C:\\a.exe", ("x", "y")), steps[2]])
    assert check_steps(steps) == []


def test_accounts() -> None:
    accounts = AccountSids.parse(
        [{"Name": "GPU\\me", "Sid": "s-1-5-21-1"}, {"Name": "x", "Sid": None, "Error": "no"}]
    )
    assert accounts.sid("gpu\\ME") == "S-1-5-21-1"
    assert accounts.faults == {"x": "no"}
    assert (
        known_sid("NT AUTHORITY\\SYSTEM") == known_sid("localsystem") == known_sid("s-1-5-18") == "S-1-5-18"
    )
    assert known_sid("Administrator") is None


def test_system() -> None:
    value = {
        "ComputerName": "GPU01",
        "Caption": "Windows 11",
        "Version": "10.0.22631",
        "BuildNumber": "22631",
        "BootTimeUtc": "2026-09-01T00:00:00.0000000Z",
        "TimeUtc": "2026-09-02T00:00:00.0000000Z",
        "TotalPhysicalMemoryBytes": 1,
        "FreePhysicalMemoryBytes": 1,
        "LogicalProcessorCount": 96,
        "TimeZoneId": "UTC",
        "Culture": "zh-CN",
        "SystemDirectory": "C:\\Windows\\system32",
        "PendingReboot": [],
        "ExcludedPortRangeText": "   8000   8100",
        "MachineEnvironment": {"CUDA_PATH": "C:\\CUDA"},
    }
    found = SystemState.parse(value)
    assert found.build_number == 22631
    assert found.time_utc == "2026-09-02T00:00:00.0000000Z"
    assert found.excluded_by(8080) == PortRange(8000, 8100)
    assert found.excluded_by(9000) is None
    with pytest.raises(ModelError, match="Caption"):
        SystemState.parse({**value, "Caption": None})
