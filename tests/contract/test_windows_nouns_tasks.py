"""Scheduled tasks: registered, read back as the service stores them, started, stopped, refused."""

from __future__ import annotations

import contextlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import pytest
from powershell import BoxFault, EngineBox

NAMESPACE = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"
TASK = "\\ContractTask"
XML = """<Task version="1.4" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo><Description>caf\u00e9 &amp; \u4efb\u52a1</Description></RegistrationInfo>
  <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>
  <Principals><Principal id="Author"><UserId>S-1-5-18</UserId><RunLevel>LeastPrivilege</RunLevel></Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>4</Priority>
    <AllowStartOnDemand>true</AllowStartOnDemand>
  </Settings>
  <Actions Context="Author"><Exec><Command>C:\\Windows\\System32\\cmd.exe</Command>
    <Arguments>/c ping -n 120 127.0.0.1</Arguments></Exec></Actions>
</Task>"""


@pytest.fixture
def task(box: EngineBox) -> Iterator[EngineBox]:
    """A box on which TASK is registered for the length of a test."""
    box.call("Register-BoxTask", TaskPath=TASK, Xml=XML)
    yield box
    with contextlib.suppress(BoxFault):
        box.call("Stop-BoxTask", TaskPath=TASK)
    box.call("Unregister-BoxTask", TaskPath=TASK)


def read(box: EngineBox, path: str = TASK) -> dict[str, object]:
    (answer,) = box.call("Get-BoxTask", TaskPath=[path])
    return dict(answer)


def test_a_task_is_read_back_in_the_stored_shape(task: EngineBox) -> None:
    answer = read(task)
    root = ElementTree.fromstring(str(answer["Xml"]).partition("?>")[2])
    assert [child.tag.removeprefix(NAMESPACE) for child in root] == [
        "RegistrationInfo",
        "Principals",
        "Settings",
        "Triggers",
        "Actions",
    ]
    assert root.findtext(f".//{NAMESPACE}Description") == "caf\u00e9 & \u4efb\u52a1"
    assert root.findtext(f".//{NAMESPACE}ExecutionTimeLimit") == "PT0S"
    assert root.findtext(f".//{NAMESPACE}URI") == TASK
    trigger = root.find(f".//{NAMESPACE}LogonTrigger")
    assert trigger is not None
    assert list(trigger) == [], "Enabled is true by default and not stored"
    assert root.find(f".//{NAMESPACE}RunLevel") is None
    assert (answer["State"], answer["Enabled"], answer["Instances"]) == ("Ready", True, [])
    assert answer["LastTaskResult"] == 0x41303
    assert answer["LastRunTimeUtc"] is None


def test_registering_answers_what_reading_gives(task: EngineBox) -> None:
    answer = task.call("Register-BoxTask", TaskPath=TASK, Xml=XML.replace("PT0S", "PT1H"))
    assert answer == {"Xml": read(task)["Xml"]}
    assert "<ExecutionTimeLimit>PT1H</ExecutionTimeLimit>" in answer["Xml"]


def test_a_task_runs_and_is_stopped(task: EngineBox) -> None:
    assert task.call("Start-BoxTask", TaskPath=TASK) == {"State": "Running"}
    running = read(task)
    assert running["State"] == "Running"
    assert running["LastTaskResult"] == 0x41301
    (instance,) = running["Instances"]  # type: ignore[misc]
    (process,) = task.call("Get-BoxProcess", ProcessId=[instance["EnginePid"]])
    assert process["Name"].lower() == "cmd.exe"
    assert task.call("Stop-BoxTask", TaskPath=TASK) == {"State": "Ready"}
    stopped = read(task)
    assert stopped["Instances"] == []
    assert stopped["LastTaskResult"] == 0x41306
    assert str(stopped["LastRunTimeUtc"]).endswith("Z")


def test_a_disabled_task_does_not_start(task: EngineBox) -> None:
    assert task.call("Disable-BoxTask", TaskPath=TASK) == {"State": "Disabled"}
    with pytest.raises(BoxFault) as fault:
        task.call("Start-BoxTask", TaskPath=TASK)
    assert fault.value.error["hresult"].lower() == "0x80041326"
    assert task.call("Enable-BoxTask", TaskPath=TASK) == {"State": "Ready"}
    assert "<Enabled>false" not in str(read(task)["Xml"])


def test_a_missing_task_is_absent_or_not_found(box: EngineBox) -> None:
    answers = box.call("Get-BoxTask", TaskPath=["\\Nowhere", "\\No\\Such\\Folder"])
    assert [answer["Exists"] for answer in answers] == [False, False]
    assert [answer["Error"] for answer in answers] == [None, None]
    assert box.call("Unregister-BoxTask", TaskPath="\\Nowhere") == {"Changed": False}
    with pytest.raises(BoxFault) as fault:
        box.call("Start-BoxTask", TaskPath="\\Nowhere")
    assert fault.value.error["hresult"].lower() == "0x80070002"
    assert "\\Nowhere" in fault.value.error["message"]


def test_folders_are_made_on_the_way(box: EngineBox) -> None:
    path = "\\Contract\\Deep\\Job"
    box.call("Register-BoxTask", TaskPath=path, Xml=XML)
    assert read(box, path)["Exists"] is True
    assert box.call("Unregister-BoxTask", TaskPath=path) == {"Changed": True}
    assert read(box, path)["Exists"] is False


def test_validating_registers_nothing(box: EngineBox) -> None:
    path = "\\NotYet\\Valid"
    assert box.call("Test-BoxTask", TaskPath=path, Xml=XML) == {"Valid": True, "Error": None}
    assert read(box, path)["Exists"] is False


@pytest.mark.parametrize(
    ("xml", "hresult"),
    [
        (XML.replace("PT0S", "3 hours"), "0x80041318"),
        (XML.replace("<Priority>4", "<Priority>44"), "0x80041318"),
        ("<Task", "0x8004131a"),
    ],
    ids=["time limit", "priority", "no XML"],
)
def test_what_the_service_refuses_is_told_with_its_code(box: EngineBox, xml: str, hresult: str) -> None:
    answer = box.call("Test-BoxTask", TaskPath=TASK, Xml=xml)
    assert answer["Valid"] is False
    assert answer["Error"]["hresult"].lower() == hresult
    with pytest.raises(BoxFault) as fault:
        box.call("Register-BoxTask", TaskPath=TASK, Xml=xml)
    assert fault.value.error["hresult"].lower() == hresult
    assert read(box)["Exists"] is False


def test_a_task_tells_of_its_folders_and_empty_ones_are_removed(box: EngineBox) -> None:
    path = "\\FolderContract\\Deep\\Job"
    box.call(
        "Register-BoxTask", TaskPath=path, Xml=XML.replace("<Settings>", "<Settings><Hidden>true</Hidden>")
    )
    box.call("Register-BoxTask", TaskPath="\\FolderContract\\Other", Xml=XML)
    assert read(box, path)["Folders"] == [
        {"Path": "\\FolderContract\\Deep", "Tasks": ["Job"], "Folders": []},
        {"Path": "\\FolderContract", "Tasks": ["Other"], "Folders": ["Deep"]},
    ]
    folders = ["\\FolderContract\\Deep", "\\FolderContract", "\\FolderContract\\None"]
    assert box.call("Remove-BoxTaskFolder", Path=folders) == {"Removed": []}
    box.call("Unregister-BoxTask", TaskPath=path)
    assert box.call("Remove-BoxTaskFolder", Path=folders) == {"Removed": ["\\FolderContract\\Deep"]}
    box.call("Unregister-BoxTask", TaskPath="\\FolderContract\\Other")
    assert box.call("Remove-BoxTaskFolder", Path=["\\foldercontract"]) == {"Removed": ["\\foldercontract"]}
    assert read(box, path)["Folders"] == []


def test_folders_of_windows_are_refused(box: EngineBox) -> None:
    with pytest.raises(BoxFault) as fault:
        box.call("Remove-BoxTaskFolder", Path=["\\Microsoft\\Windows\\Defrag"])
    assert fault.value.type == "Refused"


def test_the_log_tells_of_a_task_when_it_is_on(task: EngineBox) -> None:
    log = task.box.windows.scheduler.log
    nothing = {"LogEnabled": False, "Tasks": [{"TaskPath": TASK, "Events": [], "Error": None}]}
    log.enable(False)
    assert task.call("Get-BoxTaskEvent", TaskPath=[TASK], Id=[100]) == nothing
    log.enable()
    try:
        task.call("Start-BoxTask", TaskPath=TASK)
        task.call("Start-BoxTask", TaskPath=TASK)
        task.call("Stop-BoxTask", TaskPath=TASK)
        answer = task.call("Get-BoxTaskEvent", TaskPath=[TASK.upper(), "\\No'Such"], Id=[110, 322, 330])
        assert answer["LogEnabled"] is True
        (found, other) = answer["Tasks"]
        assert [event["Id"] for event in found["Events"]] == [330, 322, 110, 110]
        assert all(event["TimeUtc"].endswith("Z") for event in found["Events"])
        assert f'<Data Name="TaskName">{TASK}</Data>' in found["Events"][0]["Xml"]
        assert (other["Events"], other["Error"]) == ([], None)
        assert len(task.call("Get-BoxTaskEvent", TaskPath=[TASK], MaxEvents=2)["Tasks"][0]["Events"]) == 2
    finally:
        log.enable(False)


def test_the_rights_of_a_process_are_those_of_its_task(task: EngineBox) -> None:
    task.call("Start-BoxTask", TaskPath=TASK)
    (instance,) = read(task)["Instances"]  # type: ignore[misc]
    (token, none) = task.call("Get-BoxProcessToken", ProcessId=[instance["EnginePid"], 3])
    assert (token["UserSid"], token["Elevated"], token["Error"]) == ("S-1-5-18", True, None)
    assert token["IntegrityLevel"] >= 0x3000
    assert none["ProcessId"] == 3
    assert none["Error"]


PASSWORD = XML.replace(
    "<UserId>S-1-5-18</UserId>", "<UserId>Administrator</UserId><LogonType>Password</LogonType>"
)


def test_a_task_that_stores_a_password_needs_it(box: EngineBox) -> None:
    answer = box.call("Test-BoxTask", TaskPath="\\Secret", Xml=PASSWORD)
    assert answer["Error"]["hresult"].lower() == "0x8007052e"
    secret = {"TaskPath": "\\Secret", "Xml": PASSWORD, "Password": "example-only"}
    assert box.call("Test-BoxTask", **secret) == {"Valid": True, "Error": None}
    xml = box.call("Register-BoxTask", **secret)["Xml"]
    assert "<LogonType>Password</LogonType>" in xml
    assert "example-only" not in xml
    sid = xml.partition("<UserId>")[2].partition("</UserId>")[0]
    assert sid.startswith("S-1-5-21-")
    again = secret | {"Xml": PASSWORD.replace("Administrator", sid)}
    assert (
        box.call("Register-BoxTask", **again)["Xml"].partition("<Principals>")[2]
        == xml.partition("<Principals>")[2]
    )
    box.call("Unregister-BoxTask", TaskPath="\\Secret")
