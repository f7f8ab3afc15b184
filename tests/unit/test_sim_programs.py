"""The programs of a simulated box: GPU tools, version control, build, download."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sim_programs import BUILD_ENVIRONMENT, Run, build

from simbox.box import Box
from simbox.errors import WindowsError
from simbox.mirror import Mirror

COMMIT = "3d11fd64" + "0" * 32


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "rtx4090d")


def test_nvidia_smi_has_the_elements_of_a_real_card(box: Box) -> None:
    ours = ElementTree.fromstring(Run(box, "nvidia-smi", "-q", "-x").out)
    capture = Path(__file__).parents[1] / "data" / "nvidia" / "h200-linux-580.159.xml"
    real = ElementTree.fromstring(capture.read_text())
    known = {(parent.tag, child.tag) for parent in real.iter() for child in parent}
    # a GPU without processes was captured: what a process looks like is not in it
    foreign = {
        (parent.tag, child.tag)
        for parent in ours.iter()
        for child in parent
        if parent.tag not in ("processes", "process_info")
    } - known
    assert not foreign
    memory = {name: int(ours.findtext(f"gpu/fb_memory_usage/{name}", "").split()[0]) for name in
              ("total", "reserved", "used", "free")}  # fmt: skip
    assert memory["total"] == 49140 == memory["reserved"] + memory["used"] + memory["free"]
    assert ours.findtext("driver_version") == "616.56"
    assert ours.findtext("gpu/display_attached") == "Yes"


def test_one_unknown_field_fails_the_whole_query(box: Box) -> None:
    good = Run(
        box, "nvidia-smi", "--query-gpu=index,name,memory.total,compute_cap", "--format=csv,noheader,nounits"
    )
    assert (good.code, good.out.strip()) == (0, "0, NVIDIA GeForce RTX 4090 D, 49140, 8.9")
    bad = Run(box, "nvidia-smi", "--query-gpu=name,nonsense", "--format=csv")
    assert bad.code == 2
    assert "nonsense" in bad.out


def test_a_broken_driver_is_not_a_missing_gpu(tmp_path: Path) -> None:
    box = Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "no-driver")
    failed = Run(box, "nvidia-smi", "-q", "-x")
    assert failed.code == 9
    assert "couldn't communicate" in failed.out
    assert box.windows.gpu.devices()["Loaded"] is False


def test_the_driver_counts_the_multiprocessors(box: Box, tmp_path: Path) -> None:
    assert box.windows.gpu.devices()["Devices"][0]["MultiprocessorCount"] == 114
    assert box.windows.gpu.devices()["DriverVersion"] == 13030
    other = Box.open(tmp_path / "other", "gpu02", "127.45.99.2", "rtx4090-24gb")
    assert other.windows.gpu.devices()["Devices"][0]["MultiprocessorCount"] == 128


def test_tool_versions(box: Box) -> None:
    assert "release 13.3" in Run(box, "nvcc", "--version").out
    assert Run(box, "git", "--version").out.startswith("git version 2.50")
    assert Run(box, "cmake", "--version").out.startswith("cmake version 3.31")
    found = json.loads(Run(box, "vswhere", "-products", "*", "-format", "json", "-utf8").out)
    assert found[0]["installationPath"].endswith("2022\\Community")
    assert found[0]["isComplete"] is True
    assert (
        json.loads(Run(box, "vswhere", "-products", "*", "-requires", "Other", "-format", "json").out) == []
    )
    assert Run(box, "vswhere", "-nonsense").code == 87


def test_git_lays_the_tree_down_at_the_commit(box: Box) -> None:
    url = "https://github.com/UDPSendToFailed/ninfer-4090"
    assert Run(box, "git", "init", "C:\\src").code == 0
    assert Run(box, "git", "-C", "C:\\src", "remote", "add", "origin", url).code == 0
    assert Run(box, "git", "-C", "C:\\src", "fetch", "--depth", "1", "origin", "3d11fd64").code == 128
    assert Run(box, "git", "-C", "C:\\src", "fetch", "--depth", "1", "origin", COMMIT).code == 0
    assert Run(box, "git", "-C", "C:\\src", "checkout", "--detach", "FETCH_HEAD").code == 0
    assert Run(box, "git", "-C", "C:\\src", "rev-parse", "HEAD").out.strip() == COMMIT
    assert Run(box, "git", "-C", "C:\\src", "status", "--porcelain").out == ""
    box.filesystem.write("C:\\src\\CMakeLists.txt", b"edited")
    assert Run(box, "git", "-C", "C:\\src", "status", "--porcelain").out.strip() == "M CMakeLists.txt"
    assert Run(box, "git", "clone", url, "C:\\src").code == 128
    assert Run(box, "git", "-C", "C:\\models", "rev-parse", "HEAD").code == 128
    assert Run(box, "git", "frobnicate").code == 1


def test_a_build_carries_what_was_given(box: Box) -> None:
    built = build(box)
    assert built.code == 0
    assert "[1/" in built.out
    commands = json.loads(box.filesystem.host("C:\\build\\compile_commands.json").read_text())
    cuda = [entry["command"] for entry in commands if entry["file"].endswith(".cu")]
    assert cuda
    assert all("-DNINFER_TARGET_SM_COUNT=114" in text and "sm_89" in text for text in cuda)
    assert box.filesystem.host("C:\\build\\apps\\ninfer-serve.exe").is_file()
    assert box.filesystem.host("C:\\build\\apps\\avcodec-62.dll").is_file()
    again = Run(box, "ninja", "-C", "C:\\build", environment=BUILD_ENVIRONMENT)
    assert "no work to do" in again.out


def test_another_sm_count_builds_another_program(box: Box) -> None:
    assert build(box).code == 0
    exe = box.filesystem.host("C:\\build\\apps\\ninfer-serve.exe")
    first = exe.read_bytes()
    again = Run(box, "cmake", "-B", "C:\\build", "-S", "C:\\src", "-DNINFER_TARGET_SM_COUNT=128",
                environment=BUILD_ENVIRONMENT)  # fmt: skip
    assert again.code == 0
    assert Run(box, "ninja", "-C", "C:\\build", environment=BUILD_ENVIRONMENT).code == 0
    assert exe.read_bytes() != first


def test_the_macro_can_be_lost(tmp_path: Path) -> None:
    box = Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "macro-lost")
    assert build(box).code == 0
    commands = json.loads(box.filesystem.host("C:\\build\\compile_commands.json").read_text())
    assert not any("NINFER_TARGET_SM_COUNT" in entry["command"] for entry in commands)


@pytest.mark.parametrize(
    ("defines", "environment", "text"),
    [
        (["-DCMAKE_CUDA_ARCHITECTURES=90"], BUILD_ENVIRONMENT, "SM 86 and 89"),
        (["-DNINFER_TARGET_SM_COUNT=113"], BUILD_ENVIRONMENT, "even integer"),
        (["-DCMAKE_TOOLCHAIN_FILE=C:/none.cmake"], BUILD_ENVIRONMENT, "toolchain file"),
        ([], {"PATH": "C:\\Windows"}, "CMAKE_CXX_COMPILER"),
    ],
)
def test_configuring_fails_as_cmake_does(
    box: Box, defines: list[str], environment: dict[str, str], text: str
) -> None:
    assert Run(box, "git", "clone", "https://github.com/a/b", "C:\\src").code == 0
    failed = Run(box, "cmake", "-S", "C:\\src", "-B", "C:\\build", "-G", "Ninja",
                 "-DCMAKE_TOOLCHAIN_FILE=C:/vcpkg/scripts/buildsystems/vcpkg.cmake", *defines,
                 environment=environment)  # fmt: skip
    assert failed.code == 1
    assert text in failed.err
    assert not box.filesystem.exists("C:\\build\\build.ninja")


def test_ninja_needs_targets_and_a_compiler_environment(box: Box) -> None:
    assert build(box).code == 0
    assert Run(box, "ninja", "-C", "C:\\build", "none", environment=BUILD_ENVIRONMENT).code == 1
    outside = Run(box, "ninja", "-C", "C:\\build", environment={"PATH": ""})
    assert outside.code == 1
    assert "C1034" in outside.err
    assert Run(box, "ninja", "-C", "C:\\models", environment=BUILD_ENVIRONMENT).code == 1


def test_what_is_no_program_does_not_start(box: Box) -> None:
    with pytest.raises(WindowsError) as caught:
        Run(box, "C:\\none\\git.exe")
    assert caught.value.hresult == 0x80070002
    box.filesystem.write("C:\\tools\\other.exe", b"MZ")
    with pytest.raises(WindowsError) as caught:
        Run(box, "C:\\tools\\other.exe")
    assert caught.value.hresult == 0x800700C1


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    mirror = Mirror(tmp_path / "mirror", "127.0.0.1", 0)
    mirror.start()
    yield mirror
    mirror.stop()


def test_curl_downloads_and_resumes(box: Box, mirror: Mirror) -> None:
    target = box.filesystem.host("C:\\models\\q.part")
    arguments = ["-fsSL", "--retry", "3", "-C", "-", "-o", "C:\\models\\q.part", mirror.artifact.url]
    assert Run(box, "curl", *arguments).code == 0
    assert hashlib.sha256(target.read_bytes()).hexdigest() == mirror.artifact.sha256
    with target.open("r+b") as file:
        file.truncate(1000)
    assert Run(box, "curl", *arguments).code == 0
    assert hashlib.sha256(target.read_bytes()).hexdigest() == mirror.artifact.sha256
    assert Run(box, "curl", *arguments).code == 0
    assert target.stat().st_size == mirror.artifact.size_bytes


@pytest.mark.parametrize(("version", "code"), [("7.55.1", 22), ("8.4.0", 22), ("8.5.0", 0), ("8.14.1", 0)])
@pytest.mark.parametrize("more", [0, 3])
def test_curl_asked_for_what_is_beyond_the_end(
    box: Box, mirror: Mirror, version: str, code: int, more: int
) -> None:
    # As curl 7.88.1 does (tried), and as curl/curl#12176 says of 8.5.
    box.profile.data["toolchain"]["curl"] = version
    target = box.filesystem.host("C:\\models\\q.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(bytes(mirror.artifact.size_bytes + more))
    arguments = ["-L", "-C", "-", "-o", "C:\\models\\q.part", mirror.artifact.url]
    assert Run(box, "curl", "-sSf", *arguments).code == code
    assert Run(box, "curl", *arguments).code == 0
    assert target.stat().st_size == mirror.artifact.size_bytes + more


def test_curl_tells_what_went_wrong(box: Box, mirror: Mirror) -> None:
    missing = mirror.artifact.url + "x"
    assert Run(box, "curl", "-f", "-s", "-S", "-o", "C:\\models\\x", missing).code == 22
    assert Run(box, "curl", "-sSf", "-o", "C:\\none\\x", mirror.artifact.url).code == 23
    assert Run(box, "curl", "-sS", "http://127.0.0.1:9/").code == 7
    assert Run(box, "curl", "--frobnicate").code == 2
    box.store.set("faults", "no_internet", value=True)
    assert Run(box, "curl", "-sS", mirror.artifact.url).code == 6
