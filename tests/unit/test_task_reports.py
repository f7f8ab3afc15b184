"""One test for each public report of trouble with scheduled tasks: it cannot happen here.

The number is that of the report in docs/facts/windows.md#reports; what it was is in the docstring.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from full_task import FULL, mutations
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tasks import ACCOUNTS, ME, read_back, tasks
from windows_fleet import Fleet

import winfleet
from winfleet.answer import BoxFault, ModelError
from winfleet.process.process_token import ProcessToken
from winfleet.task import operations as scheduled_task
from winfleet.task.check import elevation_reasons, task_faults, task_warnings
from winfleet.task.difference import task_differences
from winfleet.task.duration import seconds, spoken
from winfleet.task.error import explained
from winfleet.task.finding import token_findings
from winfleet.task.merge import merged_task
from winfleet.task.model import Exec, Principal, Settings, Task, task_path
from winfleet.task.parse import parse_task
from winfleet.task.render import render_task
from winfleet.task.state import Folder, TaskState, left_empty
from winfleet.task.trigger import (
    WATCHDOG_START,
    BootTrigger,
    ByMonth,
    ByWeek,
    CalendarTrigger,
    LogonTrigger,
    Repetition,
    TimeTrigger,
)

COMMAND = r"C:\ninfer\serve_task.bat"
WATCHDOG = TimeTrigger(id="watchdog", start_boundary=WATCHDOG_START, repetition=Repetition(60))
SERVICE = Task(
    "NInferServe",
    actions=(Exec(COMMAND, working_directory=r"C:\ninfer"),),
    triggers=(LogonTrigger(id="logon", user="Administrator"), WATCHDOG),
    principal=Principal(user="Administrator", logon_type="InteractiveToken"),
    settings=Settings(
        multiple_instances="IgnoreNew",
        disallow_start_if_on_batteries=False,
        stop_if_going_on_batteries=False,
        execution_time_limit=0,
        priority=4,
    ),
    service=True,
)


@pytest.fixture
def fleet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Fleet:
    caplog.set_level(logging.INFO, logger="pyinfra")
    fleet = Fleet(tmp_path, "gpu01")
    file = fleet.boxes["gpu01"].sim.filesystem.host(COMMAND)
    file.parent.mkdir()
    file.write_text("rem\r\n")
    return fleet


def differences(found: Task, wanted: Task) -> list[str]:
    return [one.field for one in task_differences(found, wanted, ACCOUNTS)]


# Drift that is none, and drift that was missed


@pytest.mark.parametrize("shift", ["", "Z", "+00:00"])
@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_W01_a_start_time_is_no_drift_on_the_next_day_nor_across_a_time_change(day: str, shift: str) -> None:
    """ComputerManagementDsc#411: a daily task differed every day, by today's date or the zone's suffix."""
    daily = CalendarTrigger(id="daily", start_boundary=f"{day}T02:30:00")
    task = Task("x", actions=(Exec(COMMAND),), triggers=(daily,), principal=Principal(user=ME))
    observed = read_back(merged_task(None, task, ACCOUNTS))
    assert observed.triggers
    kept = dataclasses.replace(observed.triggers[0], start_boundary=f"{day}T02:30:00{shift}")
    assert differences(observed.replaced(triggers=(kept,)), task) == []
    assert str(datetime.now().year) not in WATCHDOG_START


@pytest.mark.parametrize(
    "spelling",
    [
        "SYSTEM",
        "system",
        "NT AUTHORITY\\SYSTEM",
        "LocalSystem",
        "S-1-5-18",
        "s-1-5-18",
        "nt authority\\system",
    ],
)
def test_W02_spellings_of_one_account_are_equal(spelling: str) -> None:
    """ComputerManagementDsc#317: the account reads back in another spelling."""
    observed = read_back(Task("x", actions=(Exec(COMMAND),), principal=Principal(user="S-1-5-18")))
    assert differences(observed, Task("x", principal=Principal(user=spelling))) == []


def test_W02_an_account_that_does_not_resolve_stops_before_any_write(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    task = SERVICE.replaced(principal=Principal(user="nobody-here", logon_type="S4U"))
    assert fleet.apply(scheduled_task.present, tasks=[task]).failed == {"gpu01"}
    assert "nobody-here" in caplog.text
    assert fleet.boxes["gpu01"].changes() == []


def test_W04_the_order_of_days_and_months_means_nothing_and_twins_are_refused() -> None:
    """ComputerManagementDsc#354: a weekly task differed by the order of its days."""

    def task(days: Any) -> Task:
        trigger = CalendarTrigger(start_boundary=WATCHDOG_START, schedule=ByWeek(days))
        return Task("x", actions=(Exec(COMMAND),), triggers=(trigger,), principal=Principal(user=ME))

    observed = read_back(merged_task(None, task(["Monday", "Friday", "Sunday"]), ACCOUNTS))
    for days in itertools.permutations(["Monday", "Friday", "Sunday"]):
        assert differences(observed, task(days)) == []
    assert differences(observed, task(["Monday"])) == ["triggers[CalendarTrigger].schedule.days_of_week"]
    with pytest.raises(ModelError, match="Monday twice"):
        task(["Monday", "Monday"])
    with pytest.raises(ModelError, match="1 twice"):
        ByMonth([1, "1"])


def test_W05_durations_have_one_dialect_and_their_value_is_told() -> None:
    """ComputerManagementDsc#183: "24:00:00" became 24 days; nobody knew of the default of 72 hours."""
    assert seconds("PT60M") == seconds("PT1H")
    assert seconds("PT72H") == seconds("P3D")
    with pytest.raises(ModelError, match="no duration"):
        Settings(execution_time_limit="24:00:00")
    absent = read_back(Task("x", actions=(Exec(COMMAND),), principal=Principal(user=ME)))
    found = task_differences(absent, Task("x", settings=Settings(execution_time_limit="PT0S")), ACCOUNTS)
    assert [(one.found, one.wanted) for one in found] == [("259200 s (P3D)", "0 s (PT0S)")]
    assert spoken(90) == "90 s (PT1M30S)"


MUTATIONS = list(mutations())


@pytest.mark.parametrize(("field", "drifted"), MUTATIONS, ids=[name for name, _ in MUTATIONS])
def test_W07_every_declared_field_is_compared(field: str, drifted: Task) -> None:
    """chef-boneyard/windows#366: changed schedules and options were ignored."""
    assert field in differences(read_back(merged_task(None, drifted, ACCOUNTS)), FULL)


def test_W08_a_task_in_a_folder_has_one_identity(fleet: Fleet) -> None:
    """chef#7291: a task in a folder converged for ever."""
    spellings = ["Folder/Name", "\\Folder\\Name", "Folder\\Name", "/Folder/Name/", "\\\\Folder\\\\Name"]
    assert {task_path(one) for one in spellings} == {"\\Folder\\Name"}
    for spelling in [*spellings, "FOLDER\\name"]:
        outcome = fleet.apply(scheduled_task.present, tasks=[SERVICE.replaced(path=task_path(spelling))])
        assert outcome.failed == set()
    assert fleet.boxes["gpu01"].changes() == ["Register-BoxTask"]


def test_W10_the_stored_shape_and_the_submitted_one_are_the_same_task() -> None:
    """The logon trigger of a real machine came back as an empty element."""
    task = Task(
        "x",
        actions=(Exec(COMMAND),),
        triggers=(LogonTrigger(any_user=True),),
        principal=Principal(user=ME, logon_type="InteractiveToken", run_level="LeastPrivilege"),
        settings=Settings(enabled=True, priority=7, execution_time_limit="PT72H", wake_to_run=False),
    )
    submitted = parse_task("x", render_task(task))
    stored = read_back(task)
    assert dataclasses.replace(stored, uri=None) == dataclasses.replace(submitted, uri=None)
    assert differences(stored, task) == differences(submitted, task) == []


@settings(max_examples=60, deadline=None)
@given(tasks, st.booleans(), st.sampled_from([None, 10**6]), st.sampled_from([0.0, 30.0]))
def test_W13_what_only_steers_is_no_state(
    task: Task, service: bool, ready_within_s: float | None, load_s: float
) -> None:
    """PowerShell/DSC#1666: a write-only option was compared, so test and set never agreed."""
    steered = task.replaced(service=service, ready_within_s=ready_within_s, load_s=load_s)
    observed = read_back(merged_task(None, steered, ACCOUNTS))
    assert differences(observed, steered) == []


# Lifetime, restart, priority


def test_W14_a_watchdog_never_ends() -> None:
    """openclaw#81020: a repetition of one day ended; TimeSpan.MaxValue is out of range (0x80041318)."""
    xml = render_task(merged_task(None, SERVICE, ACCOUNTS))
    assert "<Interval>PT1M</Interval>" in xml
    assert "<Duration>" not in xml.partition("<Settings>")[0]
    for duration in ("P1D", "P9Y", "P3649D"):
        ends = SERVICE.replaced(
            triggers=(dataclasses.replace(WATCHDOG, repetition=Repetition(60, duration)),)
        )
        assert any("leave the duration out" in fault for fault in task_faults(ends))
    endless = Repetition(60, "P10675199DT2H48M5S")
    job = Task("x", actions=(Exec(COMMAND),), triggers=(dataclasses.replace(WATCHDOG, repetition=endless),))
    assert any("0x80041318" in fault for fault in task_faults(job))


def test_W16_restart_on_failure_alone_keeps_nothing_alive() -> None:
    """traycer#916: crash and outage although RestartOnFailure was set; a repeating trigger is what helps.

    That a killed process comes back is shown by the simulator's own tests of the scheduler and of the supervisor.
    """
    restarts = dataclasses.replace(SERVICE.settings, restart_interval=60, restart_count=3)
    lone = SERVICE.replaced(triggers=SERVICE.triggers[:1], settings=restarts)  # type: ignore[index]
    assert any("not those that crashed or were killed" in text for text in task_warnings(lone))
    assert not any("crashed" in text for text in task_warnings(SERVICE))
    parallel = dataclasses.replace(SERVICE.settings, multiple_instances="Parallel")
    assert any("second server" in fault for fault in task_faults(SERVICE.replaced(settings=parallel)))


def test_W17_a_logon_trigger_names_its_user_or_says_any_user(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    """companion-emergence#260: access denied on registering a logon task without elevation."""
    unscoped = SERVICE.replaced(triggers=(LogonTrigger(), WATCHDOG))
    assert any("any_user=True" in fault for fault in task_faults(unscoped))
    anybody = SERVICE.replaced(triggers=(LogonTrigger(any_user=True), WATCHDOG))
    assert task_faults(anybody) == []
    fleet.boxes["gpu01"].sim.store.set("system", "elevated", value=False)
    assert fleet.plan(scheduled_task.present, tasks=[SERVICE]).changed == {"gpu01"}
    assert fleet.plan(scheduled_task.present, tasks=[anybody]).failed == {"gpu01"}
    assert "elevated session may register a logon trigger of any user" in caplog.text
    assert fleet.boxes["gpu01"].changes() == []


PATHS = ["C:\\\u6a21\u578b\\\U0001f600\\serve.bat", "C:\\Caf\u00e9 & <Co>\\\u00fc.exe"]


@pytest.mark.parametrize("path", PATHS)
def test_W19_a_path_in_any_script_comes_back_as_it_was(path: str) -> None:
    """opencodex#3320: schtasks /query /xml lost letters in the console's code page.

    Over sessions with code pages 437, 850 and 936: the cases of Register-BoxTask.
    """
    task = Task("x", actions=(Exec(path, path),), principal=Principal(user=ME))
    observed = read_back(merged_task(None, task, ACCOUNTS))
    assert observed.actions == task.actions
    assert differences(observed, task) == []
    folder = Path(winfleet.__file__).parent
    commands = [line for file in folder.glob("*/*.ps1") for line in file.read_text("ascii").splitlines()]
    assert not any("schtasks" in line.lower() for line in commands if not line.lstrip().startswith("#"))


def test_W20_the_xml_names_no_encoding_that_could_be_wrong() -> None:
    """vmware-auto-suspend#8: "unable to switch the encoding" when declared and real encoding differ."""
    xml = render_task(FULL)
    assert xml.startswith("<Task ")
    assert "encoding=" not in xml
    for declared in ("UTF-16", "utf-8"):
        assert parse_task("x", f'\ufeff<?xml version="1.0" encoding="{declared}"?>\r\n{xml}') == parse_task(
            "x", xml
        )


# W22 and W23, a stop that leaves nothing and a restart that proves itself: tests/contract/test_task_operations.py.


def test_W25_a_missed_start_is_not_left_to_start_when_available() -> None:
    """windows-dark-mode-switcher PR#4: it catches up after ten minutes only."""
    late = dataclasses.replace(SERVICE.settings, start_when_available=True)
    lone = SERVICE.replaced(triggers=SERVICE.triggers[:1], settings=late)  # type: ignore[index]
    assert any("about 10 minutes" in text for text in task_warnings(lone))
    assert not any("10 minutes" in text for text in task_warnings(SERVICE.replaced(settings=late)))


def test_W26_a_service_without_a_start_trigger_is_refused() -> None:
    """ODS PR#3252: a trigger in the far future stood in for "on demand", nothing ever started the server."""
    for triggers in ((), (TimeTrigger(start_boundary="2099-01-01T00:00:00"),), None):
        faults = task_faults(SERVICE.replaced(triggers=triggers))
        assert any("needs a boot, logon or repeating trigger" in fault for fault in faults)
    on_demand = SERVICE.replaced(triggers=(), service=False)
    assert task_faults(on_demand) == []
    assert "<Triggers />" in render_task(on_demand)


def test_W28_a_task_points_at_files_that_are_there(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    """CortexTerminal2#1: tasks pointed at the program of an older install, or kept old settings for ever."""
    gone = SERVICE.replaced(actions=(Exec(r"C:\old\serve.bat", working_directory=r"C:\old"),))
    assert fleet.plan(scheduled_task.present, tasks=[gone]).changed == {"gpu01"}
    assert r"C:\old\serve.bat is not on the box yet: an earlier operation has to put it there" in caplog.text
    assert fleet.apply(scheduled_task.present, tasks=[gone]).failed == {"gpu01"}
    assert r"C:\old is not on the box" in caplog.text
    assert fleet.boxes["gpu01"].changes() == []
    assert fleet.apply(scheduled_task.present, tasks=[gone], files_exist=False).failed == set()
    assert fleet.apply(scheduled_task.present, tasks=[SERVICE]).changed == {"gpu01"}
    assert fleet.plan(scheduled_task.present, tasks=[gone]).changed == {"gpu01"}


# Registration and its errors


@pytest.mark.parametrize(
    ("xml_line", "message", "field", "cause"),
    [
        ("<UserId>nobody", "({0},8):UserId:nobody", "principal.user", "the account is unknown"),
        ("<LogonType>", "({0},8):LogonType:S4U", "principal.logon_type", "log on as a batch job"),
        ("<Duration>PT1H<", "({0},10):Duration:", "triggers[t0].repetition.duration", "by leaving it out"),
        ("<StartBoundary>", "({0},8):StartBoundary:x", "triggers[t0].start_boundary", "a date and time"),
        ("<Priority>", "({0},6):Priority:44", "settings.priority", "0 to 10"),
        ("<Command>", "({0},8):Command:", "actions[0].command", "the command is empty"),
        ("<BootTrigger", "({0},6):Delay:", "triggers", "seconds or ISO 8601"),
    ],
)
def test_W40_an_error_with_a_place_names_our_field_and_the_cause(
    xml_line: str, message: str, field: str, cause: str
) -> None:
    """community.windows#633: "(32,4):UserId:" and nothing else."""
    xml = render_task(FULL.replaced(principal=Principal(user="nobody", logon_type="S4U")))
    line = next(number for number, text in enumerate(xml.splitlines(), 1) if xml_line in text)
    said = f"The task XML contains a value which is incorrectly formatted.\r\n{message.format(line)}"
    text = explained(BoxFault("COMException", said, "0x80041318"), xml)
    assert field in text
    assert cause in text
    assert "0x80041318" in text
    assert "\n" not in text


def test_W40_an_error_without_a_place_is_told_in_words() -> None:
    denied = explained(BoxFault("UnauthorizedAccessException", "Access is denied.", "0x80070005"))
    assert "administrator's elevated session" in denied
    unknown = explained(BoxFault("COMException", "(3,4):Frobnicate:x", "0x80041399"), "<Task/>")
    assert unknown == "(3,4):Frobnicate:x (0x80041399)"


def test_W41_S4U_needs_no_password(fleet: Fleet) -> None:
    """community.windows PR#307: S4U demanded a password."""
    s4u = SERVICE.replaced(principal=Principal(user="Administrator", logon_type="S4U"))
    assert task_faults(s4u) == []
    assert fleet.apply(scheduled_task.present, tasks=[s4u]).changed == {"gpu01"}


# Sessions and rights


def test_W49_a_boot_trigger_without_delay_is_warned_of() -> None:
    """preludeorg/libraries#334: the S4U logon was not ready right after boot."""
    s4u = Principal(user="Administrator", logon_type="S4U")
    early = SERVICE.replaced(triggers=(BootTrigger(id="boot"), WATCHDOG), principal=s4u)
    assert task_faults(early) == []
    assert any("set delay to 30 s" in text for text in task_warnings(early))
    later = SERVICE.replaced(triggers=(BootTrigger(id="boot", delay=30), WATCHDOG), principal=s4u)
    assert task_warnings(later) == []


def test_W55_rights_are_proven_by_the_live_process() -> None:
    """trycua/cua#1638: RunLevel Highest, and the process was still not elevated."""
    task = SERVICE.replaced(principal=Principal(user=ME, run_level="HighestAvailable"))
    tokens = [
        ProcessToken(11, ME, False, 0x2000, None),
        ProcessToken(12, ME, True, 0x3000, None),
        ProcessToken(13, "S-1-5-18", True, 0x4000, None),
        ProcessToken(14, None, False, None, "Access is denied"),
    ]
    assert list(token_findings(task, tokens)) == [
        "process 11 is not elevated though run_level is HighestAvailable",
        f"process 13 runs as S-1-5-18, not as {ME}",
        "the rights of process 14 could not be read: Access is denied",
    ]


def test_W56_no_script_host_and_no_folder_left(fleet: Fleet) -> None:
    """traycer PR#793: a .vbs launcher did not run under a policy; deleting a task left its folder."""
    for action in (Exec(r"C:\x\run.vbs"), Exec(r"C:\Windows\System32\wscript.exe", r"C:\x\run.js")):
        assert any("Script Host" in fault for fault in task_faults(SERVICE.replaced(actions=(action,))))
    first, second = (SERVICE.replaced(path=f"\\Ours\\{name}") for name in ("Deep\\One", "Two"))
    fleet.apply(scheduled_task.present, tasks=[first, second])
    scheduler = fleet.boxes["gpu01"].sim.windows.scheduler

    def ours() -> list[str]:
        return [path for path in scheduler.folders() if path.startswith("\\Ours")]

    fleet.apply(scheduled_task.absent, paths=[first.path])
    assert ours() == ["\\Ours"]
    assert fleet.apply(scheduled_task.absent, paths=[second.path]).changed == {"gpu01"}
    assert ours() == []
    assert fleet.apply(scheduled_task.absent, paths=[first.path, second.path]).changed == set()
    fleet.apply(scheduled_task.present, tasks=[first, second])
    scheduler.delete(second.path)
    assert fleet.apply(scheduled_task.absent, paths=[first.path, second.path]).changed == {"gpu01"}
    assert ours() == []


def test_W56_folders_of_others_and_of_windows_stay() -> None:
    def state(path: str, *folders: Folder) -> TaskState:
        return TaskState(path, True, "", "Ready", True, None, None, None, (), None, None, folders)

    shared = state("\\Shared\\Mine", Folder("\\Shared", ("Mine", "Theirs"), ()))
    assert left_empty([shared], ["\\Shared\\Mine"]) == []
    assert left_empty([shared], ["\\Shared\\Mine", "\\shared\\theirs"]) == ["\\Shared"]
    windows = state("\\Microsoft\\Windows\\X", Folder("\\Microsoft\\Windows", ("X",), ()))
    assert left_empty([windows], [windows.path]) == []


@pytest.mark.parametrize("verb", ["running", "restarted"])
def test_W58_a_verb_on_a_missing_task_names_it(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, verb: str
) -> None:
    """mlorentedev/hive#252: install failed without output, and start claimed that a missing task ran."""
    assert fleet.apply(getattr(scheduled_task, verb), path="NInferServe").failed == {"gpu01"}
    assert "there is no task \\NInferServe to start" in caplog.text
    assert fleet.apply(scheduled_task.enabled, paths=["NInferServe"]).failed == {"gpu01"}
    assert "no such task: \\NInferServe" in caplog.text
    assert fleet.apply(scheduled_task.stopped, path="NInferServe").failed == set()


def test_W58_S4U_needs_an_elevated_session() -> None:
    reasons = elevation_reasons(SERVICE.replaced(principal=Principal(user=ME, logon_type="S4U")), ME)
    assert reasons == ["logon type S4U"]
    assert elevation_reasons(SERVICE.replaced(principal=Principal(user=ME)), "S-1-5-21-9") == [
        "another account than that of the session"
    ]
