"""Scheduled tasks: both XML shapes, what is equal, what is refused. The stored shape is written by the
simulated scheduler, which shares no code with the models.
"""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from full_task import FULL, mutations
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_tasks import ACCOUNTS, ME, read_back, tasks
from task_schema_rules import schema_faults

from winfleet.answer import ModelError
from winfleet.task.action import Action
from winfleet.task.check import task_faults, task_warnings
from winfleet.task.difference import needs_restart, task_differences
from winfleet.task.duration import iso, seconds
from winfleet.task.merge import merged_task
from winfleet.task.model import (
    ComHandler,
    Exec,
    OtherAction,
    Principal,
    SendEmail,
    Settings,
    ShowMessage,
    Task,
    task_path,
)
from winfleet.task.parse import parse_task
from winfleet.task.render import render_task, required_version
from winfleet.task.result import result_words
from winfleet.task.setting_check import setting_faults
from winfleet.task.trigger import (
    BootTrigger,
    ByDay,
    ByMonth,
    ByMonthDayOfWeek,
    ByWeek,
    CalendarTrigger,
    EventTrigger,
    LogonTrigger,
    OtherTrigger,
    Repetition,
    Schedule,
    SessionStateChangeTrigger,
    TimeTrigger,
    Trigger,
)


@settings(max_examples=500, deadline=None)
@given(tasks)
def test_declared_registered_read_back_without_difference(task: Task) -> None:
    assert task_faults(task) == []
    written = merged_task(None, task, ACCOUNTS)
    assert schema_faults(render_task(written)) == []
    assert task_differences(parse_task(task.path, render_task(written)), task, ACCOUNTS) == []
    kept = read_back(written)
    assert task_differences(kept, task, ACCOUNTS) == []
    assert schema_faults(render_task(merged_task(kept, task, ACCOUNTS))) == []
    again = read_back(merged_task(kept, task, ACCOUNTS))
    assert dataclasses.replace(again, schema_version=None) == dataclasses.replace(kept, schema_version=None)


@settings(max_examples=100, deadline=None)
@given(tasks, tasks)
def test_any_task_is_turned_into_any_other_in_one_step(before: Task, after: Task) -> None:
    observed = read_back(merged_task(None, before, ACCOUNTS))
    written = merged_task(observed, after, ACCOUNTS)
    # What is declared may contradict what is kept; the box's scheduler then refuses it.
    assume(not list(setting_faults(written)))
    repaired = read_back(written)
    assert task_differences(repaired, after, ACCOUNTS) == []


MUTATIONS = list(mutations())


@pytest.mark.parametrize(("field", "drifted"), MUTATIONS, ids=[name for name, _ in MUTATIONS])
def test_each_field_is_named_when_it_differs_and_repaired(field: str, drifted: Task) -> None:
    observed = read_back(merged_task(None, drifted, ACCOUNTS))
    found = [one.field for one in task_differences(observed, FULL, ACCOUNTS)]
    assert field in found
    part = field.partition(".")[0]
    assert all(one == "schema_version" or one.partition(".")[0] == part for one in found), found
    repaired = read_back(merged_task(observed, FULL, ACCOUNTS))
    assert task_differences(repaired, FULL, ACCOUNTS) == []


def test_the_mutations_leave_no_field_out() -> None:
    names = {name.rpartition("]")[2].lstrip(".") or name for name, _ in MUTATIONS}
    for part, prefix in ((Principal, "principal."), (Settings, "settings.")):
        fields = {prefix + one.name for one in dataclasses.fields(part)} - {"principal.id", "settings.absent"}
        assert fields <= names
    kinds = {type(one) for one in (*(FULL.triggers or ()), *(FULL.actions or ()))}
    assert kinds == {*get_args(Trigger), *get_args(Action)} - {OtherTrigger, OtherAction}


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("<Priority>4</Priority>", "<Priority>44</Priority>", "is no priority"),
        ("<Enabled>true</Enabled>", "<Enabled>yes</Enabled>", "is no boolean"),
        ("<Delay>PT30S</Delay>", "", ""),
        ("PT5M</Interval>", "PT5S</Interval>", "is no repetitionInterval"),
        ("<Hidden>true</Hidden>", "<Hidden>true</Hidden><Nonsense/>", "Nonsense"),
        ('id="t3"', 'id="t2"', "is there twice"),
        ('Context="Author"', 'Context="Nobody"', "names no principal"),
        ('version="1.4"', 'version="1.2"', "needs version 1.4"),
        ("<Body>body</Body>", "", "holds Body 0 times"),
    ],
)
def test_the_schema_rules_find_what_is_wrong(old: str, new: str, fault: str) -> None:
    xml = render_task(merged_task(None, FULL, ACCOUNTS))
    assert schema_faults(xml) == []
    assert old in xml
    faults = schema_faults(xml.replace(old, new))
    assert any(fault in one for one in faults) if fault else faults == []


def test_the_schema_rules_know_the_order_of_a_trigger() -> None:
    xml = render_task(Task("x", triggers=(BootTrigger(start_boundary="2020-01-01T00:00:00", delay=3),)))
    swapped = xml.replace("<Delay>PT3S</Delay>", "").replace("<Enabled>", "<Delay>PT3S</Delay><Enabled>", 1)
    assert any("not in order" in fault for fault in schema_faults(swapped))


# The two shapes

CLIENT = """<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo><Author>GPU01\\me</Author><Description>  Serves NInfer </Description></RegistrationInfo>
  <Triggers>
    <LogonTrigger id="logon"><Enabled>true</Enabled><UserId>GPU01\\me</UserId></LogonTrigger>
    <TimeTrigger id="watchdog"><Enabled>true</Enabled><StartBoundary>2020-01-01T00:00:00</StartBoundary>
      <Repetition><Interval>PT60M</Interval><StopAtDurationEnd>false</StopAtDurationEnd></Repetition></TimeTrigger>
  </Triggers>
  <Principals><Principal id="Author"><UserId>GPU01\\me</UserId><LogonType>InteractiveToken</LogonType>
    <RunLevel>LeastPrivilege</RunLevel></Principal></Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>true</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>true</StopIfGoingOnBatteries>
    <AllowHardTerminate>true</AllowHardTerminate>
    <StartWhenAvailable>false</StartWhenAvailable>
    <IdleSettings><Duration>PT10M</Duration><WaitTimeout>PT1H</WaitTimeout><StopOnIdleEnd>true</StopOnIdleEnd>
      <RestartOnIdle>false</RestartOnIdle></IdleSettings>
    <Enabled>1</Enabled><ExecutionTimeLimit>P3D</ExecutionTimeLimit><Priority>7</Priority>
    <RestartOnFailure><Interval>PT1M</Interval><Count>3</Count></RestartOnFailure>
  </Settings>
  <Actions Context="Author"><Exec><Command>"C:\\NINFER\\serve_task.bat"</Command>
    <WorkingDirectory>C:/ninfer</WorkingDirectory></Exec></Actions>
</Task>"""
STORED = """<Task xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task" version="1.4">
  <RegistrationInfo><URI>\\NInferServe</URI><Date>2026-09-01T08:00:00</Date><Author>GPU01\\me</Author>
    <Description>Serves NInfer</Description></RegistrationInfo>
  <Principals><Principal id="Author"><UserId>S-1-5-21-1-2-3-1001</UserId>
    <LogonType>InteractiveToken</LogonType></Principal></Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <RestartOnFailure><Count>3</Count><Interval>PT1M</Interval></RestartOnFailure>
    <IdleSettings><Duration>PT10M</Duration><WaitTimeout>PT1H</WaitTimeout></IdleSettings>
  </Settings>
  <Triggers><TimeTrigger id="watchdog"><StartBoundary>2020-01-01T00:00:00</StartBoundary>
      <Repetition><Interval>PT1H</Interval></Repetition></TimeTrigger>
    <LogonTrigger id="logon"><UserId>S-1-5-21-1-2-3-1001</UserId></LogonTrigger></Triggers>
  <Actions Context="Author"><Exec><Command>c:\\ninfer\\serve_task.bat</Command>
    <WorkingDirectory>C:\\ninfer\\</WorkingDirectory></Exec></Actions>
</Task>"""


def test_both_shapes_of_one_task_are_equal() -> None:
    client, service = parse_task(r"\NInferServe", CLIENT), parse_task(r"\NInferServe", STORED)
    assert client.settings == service.settings
    declared = client.replaced(uri=None, date=None)
    assert task_differences(service, declared, ACCOUNTS) == []
    assert task_differences(client, declared, ACCOUNTS) == []
    backwards = service.replaced(uri=None, date=None, schema_version=None)
    assert task_differences(client, backwards, ACCOUNTS) == []


def test_an_empty_logon_trigger_is_one_for_any_user() -> None:
    task = parse_task(
        "x", STORED.replace("<UserId>S-1-5-21-1-2-3-1001</UserId></LogonTrigger>", "</LogonTrigger>")
    )
    declared = Task("x", triggers=(LogonTrigger(id="logon", any_user=True), task.triggers[0]))  # type: ignore[index]
    assert task_differences(task, declared, ACCOUNTS) == []


def test_absent_and_unlimited_are_different() -> None:
    limited = parse_task("x", STORED)
    assert limited.settings.execution_time_limit == 72 * 3600
    found = task_differences(limited, Task("x", settings=Settings(execution_time_limit="PT0S")), ACCOUNTS)
    assert [(one.field, one.found, one.wanted) for one in found] == [
        ("settings.execution_time_limit", "259200 s (P3D)", "0 s (PT0S)")
    ]


def test_broken_xml_is_an_error_not_a_task() -> None:
    for bad in ("", "<Task", "<Other/>", CLIENT.replace("P3D", "3 days"), CLIENT.replace(">1<", ">maybe<")):
        with pytest.raises(ModelError):
            parse_task("x", bad)


# Values


@given(st.integers(0, 10**8))
def test_durations_round_trip(value: int) -> None:
    assert seconds(iso(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("PT60M", 3600),
        ("PT1H", 3600),
        ("PT72H", 259200),
        ("P3D", 259200),
        ("P1DT1S", 86401),
        ("pt5m", 300),
        (90, 90),
    ],
)
def test_durations(text: int | str, value: int) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["24:00:00", "", "P", "PT", "P1DT", "5", "1h", "-PT1M", -5, True])
def test_other_dialects_of_durations_are_refused(text: Any) -> None:
    with pytest.raises(ModelError):
        seconds(text)


def test_times_are_compared_as_instants_only_with_zones() -> None:
    def differences(found: str, wanted: str) -> int:
        task = Task("x", triggers=(TimeTrigger(start_boundary=found),))
        return len(
            task_differences(task, Task("x", triggers=(TimeTrigger(start_boundary=wanted),)), ACCOUNTS)
        )

    assert differences("2026-03-29T03:00:00", "2026-03-29T03:00:00Z") == 0
    assert differences("2026-03-29T03:00:00+02:00", "2026-03-29T01:00:00Z") == 0
    assert differences("2026-03-29T03:00:00+02:00", "2026-03-29T03:00:00Z") == 1
    assert differences("2026-03-29T03:00:00", "2026-03-29T04:00:00") == 1
    assert differences(datetime(2026, 1, 1, tzinfo=UTC).isoformat(), "2026-01-01T00:00:00.0000000Z") == 0


def test_a_task_has_one_path() -> None:
    assert (
        task_path("Folder/Name")
        == task_path("\\Folder\\Name")
        == task_path("Folder\\Name\\")
        == r"\Folder\Name"
    )


def test_six_spellings_of_one_account() -> None:
    task = Task("x", principal=Principal(user="S-1-5-18"))
    for name in (
        "SYSTEM",
        "system",
        "NT AUTHORITY\\SYSTEM",
        "LocalSystem",
        "S-1-5-18",
        "nt authority\\system",
    ):
        assert task_differences(task, Task("x", principal=Principal(user=name)), ACCOUNTS) == []


def test_a_group_that_replaces_a_user_is_named() -> None:
    found = Task("x", principal=Principal(user=ME, logon_type="S4U"))
    wanted = Task("x", principal=Principal(group="BUILTIN\\Users"))
    assert {one.field for one in task_differences(found, wanted, ACCOUNTS)} == {
        "principal.group",
        "principal.user",
    }
    assert merged_task(found, wanted, ACCOUNTS).principal == Principal(group="S-1-5-32-545")


def test_actions_that_are_not_modelled_survive() -> None:
    actions = (OtherAction("Dance", "<Step>x</Step>"), ComHandler("{1}", "<a>x</a>"), ComHandler("{1}", "x"))
    task = Task("x", actions=actions, principal=Principal(user=ME))
    assert parse_task("x", render_task(task)).actions == actions


def test_what_no_schema_knows_is_kept_as_it_was_found() -> None:
    xml = render_task(merged_task(None, FULL, ACCOUNTS))
    for before, extra in (
        ("</RegistrationInfo>", "<Mood>good</Mood>"),
        ("</Principal>", "<Shoe size='44'>left</Shoe>"),
        ("</Settings>", "<Later><Than>this</Than></Later>"),
        ("</IdleSettings>", "<Deeper>1</Deeper>"),
        ("</BootTrigger>", "<Shoe>right</Shoe>"),
        ("</Exec>", "<HideAppWindow>true</HideAppWindow>"),
        ("</Task>", "<Annex xmlns='urn:other'><x>y</x></Annex>"),
    ):
        assert xml.count(before) == 1
        xml = xml.replace(before, extra + before)
    xml = xml.replace("<Data>data of ours</Data>", "<Data><Ours n='1'>x</Ours></Data>", 1)
    observed = parse_task(FULL.path, xml)
    wanted = FULL.replaced(description="new words", data=None, actions=None, triggers=None)
    assert [one.field for one in task_differences(observed, wanted, ACCOUNTS)] == ["description"]
    for declared in (wanted, FULL.replaced(data=None)):
        written = render_task(merged_task(observed, declared, ACCOUNTS))
        again = parse_task(FULL.path, written)
        assert again.foreign == observed.foreign
        assert again.triggers == observed.triggers
        assert again.actions == observed.actions
        assert "{urn:other}" in "".join(node.tag for node in ElementTree.fromstring(written).iter())
    assert "Ours" not in render_task(merged_task(observed, FULL, ACCOUNTS))


def test_the_schema_version_is_what_the_fields_need() -> None:
    assert required_version(Task("x")) == "1.2"
    assert required_version(Task("x", settings=Settings(use_unified_scheduling_engine=True))) == "1.3"
    assert required_version(Task("x", settings=Settings(volatile=True))) == "1.4"
    assert required_version(Task("x", schema_version="1.6")) == "1.6"


def test_what_a_running_instance_does_not_notice() -> None:
    found = parse_task("x", STORED)
    wanted = Task("x", description="new", settings=Settings(priority=4, hidden=True), triggers=())
    assert needs_restart(task_differences(found, wanted, ACCOUNTS)) == ["settings.priority"]


def test_results_in_words() -> None:
    assert result_words(0x41306) == "0x00041306 (was terminated by a user)"
    assert "console or session was closed" in result_words(-1073741510)
    assert result_words(3) == "0x00000003 (exit code 3)"


# Refusals

SERVICE = Task(
    r"\NInferServe",
    actions=(Exec(r"C:\ninfer\serve_task.bat"),),
    triggers=(
        LogonTrigger(user="me"),
        TimeTrigger(start_boundary="2020-01-01T00:00:00", repetition=Repetition(60)),
    ),
    principal=Principal(user="me", logon_type="InteractiveToken"),
    settings=Settings(
        execution_time_limit=0,
        disallow_start_if_on_batteries=False,
        stop_if_going_on_batteries=False,
        priority=4,
    ),
    service=True,
)


def changed(**changes: Any) -> Task:
    return dataclasses.replace(SERVICE, **changes)


def with_settings(**changes: Any) -> Task:
    return changed(settings=dataclasses.replace(SERVICE.settings, **changes))


def test_a_sound_service_is_accepted() -> None:
    assert task_faults(SERVICE) == []
    assert task_warnings(SERVICE) == []


def calendar(schedule: Schedule) -> CalendarTrigger:
    return CalendarTrigger(start_boundary="2020-01-01T00:00:00", schedule=schedule)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (changed(triggers=()), "needs a boot, logon or repeating trigger"),
        (
            changed(triggers=(TimeTrigger(start_boundary="2099-01-01T00:00:00"),)),
            "needs a boot, logon or repeating",
        ),
        (changed(triggers=(BootTrigger(),)), "never fires before somebody logs on"),
        (
            changed(
                triggers=(
                    TimeTrigger(start_boundary="2020-01-01T00:00:00", repetition=Repetition(60, "P1D")),
                )
            ),
            "leave the duration out",
        ),
        (changed(triggers=(LogonTrigger(),)), "any_user=True"),
        (changed(triggers=(LogonTrigger(user="me", any_user=True),)), "contradict"),
        (changed(triggers=(TimeTrigger(repetition=Repetition(60)),)), "start_boundary is missing"),
        (changed(triggers=(LogonTrigger(user="me", repetition=Repetition(30)),)), "PT1M to P31D"),
        (changed(triggers=(LogonTrigger(user="me", end_boundary="2030-01-01T00:00:00"),)), "end_boundary"),
        (changed(triggers=(LogonTrigger(user="me", id="a b"),)), "no XML name"),
        (
            changed(triggers=(LogonTrigger(user="me", id="a"), BootTrigger(id="a"))),
            "two triggers or actions have the id",
        ),
        (with_settings(execution_time_limit=None), "execution_time_limit=0"),
        (with_settings(execution_time_limit="PT72H"), "execution_time_limit=0"),
        (with_settings(stop_if_going_on_batteries=None), "batteries"),
        (with_settings(multiple_instances="Parallel"), "second server"),
        (with_settings(priority=11), "0 to 10"),
        (with_settings(restart_count=3), "go together"),
        (with_settings(restart_count=3, restart_interval=10), "PT1M to P31D"),
        (with_settings(delete_expired_task_after=0), "needs a trigger with an end_boundary"),
        (changed(actions=()), "1 to 32"),
        (changed(actions=(Exec("serve.bat"),)), "no full path"),
        (changed(actions=(Exec(r"C:\x.bat", None, "ninfer"),)), "no full path"),
        (changed(actions=(Exec(r"C:\Windows\System32\cmd.exe", "/c start /B C:\\x.exe"),)), "ends at once"),
        (changed(actions=(Exec(r"C:\Windows\System32\cmd.exe", '/c "start "" C:\\x.exe"'),)), "ends at once"),
        (changed(actions=(Exec(r"C:\Windows\System32\wscript.exe", r"C:\x.vbs"),)), "Script Host"),
        (changed(actions=(Exec(r"C:\x.vbs"),)), "Script Host"),
        (changed(principal=Principal(user="me", group="Users")), "contradict"),
        (changed(principal=Principal(user="me", logon_type="Password")), "stores a password"),
        (changed(principal=Principal(user="SYSTEM", logon_type="S4U")), "needs no logon"),
        (changed(description="a\x00b"), "XML cannot carry"),
        (changed(actions=(Exec(r"C:\x.exe", "a\nb"),)), "line end"),
        (changed(ready_within_s=90, load_s=60), "ready_within_s 90 is shorter than the 60 s"),
        (
            with_settings(restart_interval=120, restart_count=3).replaced(ready_within_s=100),
            "shorter than the 120 s",
        ),
        (with_settings(enabled=False), "enabled=False and a service contradict"),
        (with_settings(idle_duration=10), "idle_duration PT10S; the scheduler takes PT1M or more"),
        (with_settings(maintenance_deadline="P2D"), "need a maintenance_period"),
        (with_settings(maintenance_period="P3D", maintenance_deadline="P2D"), "must be longer"),
        (with_settings(maintenance_period=60), "maintenance_period PT1M"),
        (with_settings(absent=frozenset({"priority"})), "priority: declared and in settings.absent"),
        (with_settings(absent=frozenset({"colour"})), "there is no setting colour"),
        (with_settings(absent=frozenset({"restart_count"})), "in settings.absent too"),
        (with_settings(run_only_if_network_available=False, network_name="lab"), "is not looked at"),
        (changed(actions=(Exec("C:\\" + "x" * 260),)), "a path of 263 characters"),
        (changed(actions=(Exec("%nothing"),)), "no full path"),
        (changed(actions=(ComHandler("no guid"),)), "is no {GUID}"),
        (changed(actions=(SendEmail(" "),)), "a mail needs a server"),
        (changed(actions=(ShowMessage(""),)), "a message needs a body"),
        (
            changed(
                triggers=(LogonTrigger(id="logon", user="me"),), principal=Principal(user="me", id="logon")
            ),
            "is that of the principal",
        ),
        (changed(principal=Principal(group="Users", logon_type="S4U")), "a group has no logon type"),
        (changed(principal=Principal(required_privileges=frozenset({"SeFly"}))), "Windows knows no SeFly"),
        (changed(principal=Principal(process_token_sid_type="All")), "None or Unrestricted"),
        (changed(uri="\\Other"), "Windows sets it to the task's path"),
        (changed(triggers=(calendar(ByDay(0)),)), "days_interval 0"),
        (changed(triggers=(calendar(ByWeek(["Funday"])),)), "days_of_week: Funday"),
        (changed(triggers=(calendar(ByWeek([])),)), "name the days of the week"),
        (changed(triggers=(calendar(ByMonth([32])),)), "days_of_month: 32"),
        (changed(triggers=(calendar(ByMonthDayOfWeek(["Monday"], [5], ["May"])),)), "weeks: 5"),
        (changed(triggers=(calendar(ByMonth([1], ["Mai"])),)), "months: Mai"),
        (changed(triggers=(EventTrigger(),)), "needs a subscription"),
        (changed(triggers=(EventTrigger(subscription="x", number_of_occurrences=33),)), "1 to 32"),
        (changed(triggers=(SessionStateChangeTrigger(state_change="Sleep"),)), "the scheduler knows"),
        (changed(triggers=(TimeTrigger(start_boundary="tomorrow"),)), "no date and time"),
        (changed(triggers=(TimeTrigger(start_boundary="2026-01-01"),)), "no time of day"),
        (
            changed(
                triggers=(
                    TimeTrigger(start_boundary="2026-01-02T00:00:00", end_boundary="2026-01-01T00:00:00"),
                )
            ),
            "end_boundary is not after start_boundary",
        ),
        (changed(path="\\a:b"), "the path needs a name"),
    ],
)
def test_contradictions_are_refused_with_the_reason(task: Task, reason: str) -> None:
    faults = task_faults(task)
    assert any(reason in fault for fault in faults), faults
    assert all(fault.startswith("task \\") for fault in faults)


def test_cmd_is_fine_when_it_stays() -> None:
    action = Exec(r"C:\Windows\System32\cmd.exe", r'/d /s /c ""C:\ninfer\restart_all.bat""')
    assert task_faults(changed(actions=(action,))) == []


def test_warnings() -> None:
    s4u = changed(principal=Principal(user="me", logon_type="S4U"), triggers=(BootTrigger(),))
    assert task_faults(s4u) == []
    assert "S4U logon can fail" in task_warnings(s4u)[0]
    watched = (BootTrigger(delay=30), SERVICE.triggers[1])  # type: ignore[index]
    assert task_warnings(changed(triggers=watched, principal=s4u.principal)) == []
    assert "priority" in task_warnings(with_settings(priority=None))[0]
