"""Paths, state, profiles and seeded files of a simulated box."""

from __future__ import annotations

from pathlib import Path

import pytest

from simbox import box_profile as profile
from simbox.box import Box
from simbox.errors import WindowsError
from simbox.store import Store


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "rtx4090d")


def test_names_are_found_in_any_case_and_keep_their_own(box: Box) -> None:
    box.filesystem.write("C:\\Ninfer\\Logs\\A.txt", b"x")
    assert box.filesystem.host("c:/NINFER/logs/a.TXT").read_bytes() == b"x"
    assert box.filesystem.windows(box.filesystem.host("c:\\ninfer\\LOGS")) == "C:\\Ninfer\\Logs"
    assert box.filesystem.host("..\\x", "C:\\a\\b") == box.drive_c / "a" / "x"


@pytest.mark.parametrize("path", ["C:\\a|b", "C:\\a?", "\\\\server\\share\\x", "C:\\a:stream", "1:\\x"])
def test_a_path_no_drive_can_hold_is_an_error(box: Box, path: str) -> None:
    with pytest.raises(WindowsError) as caught:
        box.filesystem.host(path)
    assert caught.value.hresult == 0x8007007B


def test_a_junction_is_seen_and_followed(box: Box) -> None:
    box.filesystem.write("C:\\releases\\one\\a.exe", b"1")
    box.filesystem.make_junction("C:\\current", "C:\\releases\\one")
    assert box.filesystem.is_junction("C:\\current")
    assert box.filesystem.resolve("c:\\CURRENT\\a.exe") == "C:\\releases\\one\\a.exe"
    assert box.filesystem.nearest_existing("C:\\current\\no\\such") == "C:\\releases\\one"
    assert not box.filesystem.is_junction("C:\\releases\\one")


def test_a_cache_on_another_disk_is_told_by_its_bus(tmp_path: Path) -> None:
    box = Box.open(tmp_path / "box", "gpu03", "127.45.99.3", "sata-cache")
    cache = box.windows.disk.of_path("C:\\ninfer-cache\\pages")
    assert (cache["BusType"], cache["Root"]) == ("SATA", "D:\\")
    assert cache["ExistingPath"] == "D:\\ninfer-cache"
    assert box.windows.disk.of_path("C:\\models")["BusType"] == "NVMe"
    assert box.windows.disk.of_path("X:\\y")["Error"]


def test_state_is_put_back_when_a_change_fails(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.json", {"a": {"b": 1}})

    def fail() -> None:
        with store.change() as state:
            state["a"]["b"] = 2
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.get("a", "b") == 1
    store.set("a", "c", value=[1])
    assert Store(tmp_path / "state.json").get("a") == {"b": 1, "c": [1]}
    copy = store.get("a")
    copy["b"] = 9
    assert store.get("a", "b") == 1


def test_a_box_keeps_its_state_and_files_when_opened_again(tmp_path: Path) -> None:
    first = Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "rtx4090d")
    first.windows.firewall.remove(["Tailscale-In"])
    first.filesystem.host("C:\\Windows\\System32\\curl.exe").write_bytes(b"mine")
    again = Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "rtx4090d")
    assert "Tailscale-In" not in again.store.get("firewall", "rules")
    assert again.filesystem.host("C:\\Windows\\System32\\curl.exe").read_bytes() == b"mine"


def test_every_profile_makes_a_box(tmp_path: Path) -> None:
    for name in profile.names():
        box = Box.open(tmp_path / name, "gpu01", "127.45.99.1", name)
        assert box.windows.system.facts()["Caption"].startswith("Microsoft Windows")
        assert box.windows.gpu.smi_xml().startswith("<?xml")


def test_profiles_extend_by_key_and_null_removes() -> None:
    assert profile.merge({"a": {"x": 1, "y": 2}, "b": 3}, {"a": {"y": None, "z": 4}, "b": [5]}) == {
        "a": {"x": 1, "z": 4},
        "b": [5],
    }
    assert profile.load("old-driver").get("gpu", "driver_version") == "560.94"
    assert profile.load("old-driver").get("gpu", "devices")[0]["multiprocessors"] == 114
    with pytest.raises(ValueError, match=r"there are: .*rtx4090d"):
        profile.load("nonesuch")
