"""What a box answers in states that are rare on a real one, on every engine unless only one can be put into them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from powershell import BoxFault, EngineBox
from test_files import held
from test_jobs import Job, step

BROKEN = [
    "",
    "{",
    "}",
    "[1 2]",
    "[1,]",
    "{1: 2}",
    '{"a" 1}',
    '{"a": 1',
    '{"a": 1} more',
    '{"a": tru}',
    '"never ended',
    ":",
]
UPDATE = "HKLM:\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\WindowsUpdate\\Auto Update\\RebootRequired"
SESSION_MANAGER = "HKLM:\\SYSTEM\\CurrentControlSet\\Control\\Session Manager"
VSWHERE = "C:\\Program Files (x86)\\Microsoft Visual Studio\\Installer\\vswhere.exe"


@pytest.mark.parametrize("text", BROKEN)
def test_a_header_that_is_no_json_is_noise(box: EngineBox, text: str) -> None:
    box.loop.send(base64.b64encode(text.encode()) + b"\n")
    assert box.call("New-BoxDirectory", Path=["C:\\Windows"]) == {"Created": []}


def test_control_characters_pass_both_ways(box: EngineBox) -> None:
    text = "".join(map(chr, range(1, 32))) + '"\\/\x7f\x80\u2028\U0001f600'
    (found,) = box.call("Get-BoxAccount", Name=[text])
    assert found["Name"] == text


@pytest.fixture
def space(box: EngineBox) -> Iterator[EngineBox]:
    """A box whose disks are one storage space."""
    store = box.box.store
    before = json.loads(json.dumps(store.get("disks")))
    store.set("disks", value=[{**disk, "bus_type": "Spaces"} for disk in before])
    yield box
    store.set("disks", value=before)


def test_a_storage_space_is_not_taken_for_a_disk(space: EngineBox) -> None:
    (found,) = space.call("Get-BoxDisk", Path=["C:\\models"])
    assert (found["BusType"], found["MediaType"], found["Error"]) == ("Spaces", None, None)


def test_an_access_list_with_owner_and_group_is_set_whole(box: EngineBox) -> None:
    path = "C:\\rare\\acl"
    box.call("New-BoxDirectory", Path=[path])
    sddl = "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"
    assert box.call("Set-BoxAcl", Path=path, Sddl=sddl) == {"Changed": True}
    assert box.call("Get-BoxAcl", Path=[path])[0]["Sddl"] == sddl


def test_a_log_in_the_code_page_of_the_console_is_read(box: EngineBox) -> None:
    job = Job(box)
    box.host("C:\\rare").mkdir(exist_ok=True)
    box.host("C:\\rare\\oem.txt").write_bytes("f\u00fcr\r\n".encode("cp437"))
    job.start(step("tell", "type C:\\rare\\oem.txt"))
    assert job.until("done")["Log"] == "f\u00fcr\r\n"


def test_a_step_may_be_a_batch_file(box: EngineBox) -> None:
    job = Job(box)
    box.host("C:\\rare\\a folder").mkdir(parents=True, exist_ok=True)
    box.host("C:\\rare\\a folder\\step.bat").write_bytes(b"@echo off\r\necho [%~1] [%~2]\r\nexit /b 7\r\n")
    batch = {"Name": "batch", "Kind": "run", "Program": "C:\\rare\\a folder\\step.bat"}
    job.start({**batch, "Arguments": ["one word", "two"]})
    found = job.until("done")
    assert (found["ExitCode"], found["Log"].strip()) == (7, "[one word] [two]")


@pytest.mark.parametrize(
    ("batch", "code", "told"),
    [("C:\\rare\\none.bat", 9009, "there is no C:\\rare\\none.bat"), ("C:\\rare\\fails.bat", 3, "failing")],
)
def test_an_environment_that_cannot_be_had_ends_the_job(
    box: EngineBox, batch: str, code: int, told: str
) -> None:
    job = Job(box)
    box.host("C:\\rare").mkdir(exist_ok=True)
    box.host("C:\\rare\\fails.bat").write_bytes(b"@echo off\r\necho failing\r\nexit 3\r\n")
    job.start(
        {"Name": "tools", "Kind": "environment", "Batch": batch, "Arguments": []}, step("never", "echo never")
    )
    found = job.until("done")
    assert found["ExitCode"] == code
    assert told in found["Log"]
    assert "never" not in found["Log"].replace(told, "")


def test_a_file_that_could_not_be_removed_stays_read_only(box: EngineBox) -> None:
    path = "C:\\rare\\held.log"
    box.host("C:\\rare").mkdir(exist_ok=True)
    with held(box, path):
        box.call("Set-BoxFileAttribute", Path=path, ReadOnly=True)
        with pytest.raises(BoxFault) as fault:
            box.call("Remove-BoxItem", Path=[path])
        assert fault.value.error["hresult"] == "0x80070020"
        assert "ReadOnly" in box.call("Get-BoxFile", Path=[path])[0]["Attributes"]


@pytest.mark.wine
def test_a_background_program_does_not_hold_a_text_back(wine_box: EngineBox) -> None:
    """It keeps the pipes open; the text has ended."""
    value = wine_box.call("Invoke-BoxScript", Text="start /b ping -n 30 127.0.0.1 & exit 3", Shell="cmd")
    assert value == {"ExitCode": 3, "TimedOut": False}


@pytest.mark.wine
def test_windows_says_why_it_wants_a_restart(wine_box: EngineBox) -> None:
    set_value, key, name = "Set-BoxRegistryValue", SESSION_MANAGER, "PendingFileRenameOperations"
    wine_box.call(set_value, Key=UPDATE, Name="Reason", Kind="String", Data="example")
    wine_box.call(set_value, Key=key, Name=name, Kind="MultiString", Data=["\\??\\C:\\a", "\\??\\C:\\b"])
    try:
        assert wine_box.call("Get-BoxSystem")["PendingReboot"] == ["WindowsUpdate", "PendingFileRename"]
    finally:
        wine_box.call("Remove-BoxRegistryValue", Key=key, Name=name)
        text = f"Remove-Item -LiteralPath '{UPDATE}'"
        assert wine_box.call("Invoke-BoxScript", Text=text)["ExitCode"] == 0
    assert wine_box.call("Get-BoxSystem")["PendingReboot"] == []


@pytest.mark.wine
def test_without_the_installer_there_is_no_visual_studio(wine_box: EngineBox) -> None:
    program = wine_box.host(VSWHERE)
    program.rename(program.with_suffix(".away"))
    try:
        answer = wine_box.call("Get-BoxToolchain")
        assert (answer["Vswhere"], answer["VisualStudio"]) == ({"Path": None, "Json": None}, [])
    finally:
        program.with_suffix(".away").rename(program)


@pytest.mark.wine
def test_a_tool_that_cannot_be_run_is_told_in_its_own_words(wine_box: EngineBox) -> None:
    """What is named ninja.exe and is no program is found, and its failure is its version."""
    broken = wine_box.host("C:\\Program Files\\Ninja\\ninja.exe")
    broken.parent.mkdir()
    broken.write_bytes(b"no program")
    try:
        ninja = wine_box.call("Get-BoxToolchain")["Programs"]["ninja"]
        assert ninja["Path"] == "C:\\Program Files\\Ninja\\ninja.exe"
        assert ninja["VersionText"]
    finally:
        broken.unlink()
        broken.parent.rmdir()


@pytest.mark.wine
def test_what_a_text_says_on_other_streams_is_output(wine_box: EngineBox) -> None:
    reply = wine_box.reply("Invoke-BoxScript", Text="Write-Host 'hello'; Write-Warning 'beware'; 'done'")
    assert set(reply.output("stdout").split(b"\n")) == {b"hello", b"done", b""}
    assert reply.output("stderr") == b"WARNING: beware\n"
