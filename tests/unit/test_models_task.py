"""Scheduled tasks: both XML shapes, what is equal, what is refused. The stored shape is written by the
simulated scheduler, which shares no code with the models.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbox.windows import task_xml
from winfleet.models.account import Accounts
from winfleet.models.answer import ModelError
from winfleet.models.duration import iso, seconds
from winfleet.models.task import ComHandler, Exec, OtherAction, Principal, Settings, Task, task_path
from winfleet.models.task_check import task_faults, task_warnings
from winfleet.models.task_difference import needs_restart, task_differences
from winfleet.models.task_merge import merged_task
from winfleet.models.task_parse import parse_task
from winfleet.models.task_render import render_task, required_version
from winfleet.models.task_result import result_words
from winfleet.models.task_trigger import (
    BootTrigger,
    ByDay,
    ByMonth,
    ByMonthDayOfWeek,
    ByWeek,
    CalendarTrigger,
    EventTrigger,
    IdleTrigger,
    LogonTrigger,
    RegistrationTrigger,
    Repetition,
    SessionStateChangeTrigger,
    TimeTrigger,
)

ME = "S-1-5-21-1-2-3-1001"
ACCOUNTS = Accounts({"me": ME, "gpu01\\me": ME, "other": "S-1-5-21-1-2-3-1002"}, {})


def sid_of(name: str) -> str:
    return ACCOUNTS.sid(name) or name


def stored(task: Task) -> Task:
    """The task as it reads back after the scheduler has rewritten it."""
    root = task_xml.read(render_task(task))
    task_xml.validate(root)
    return parse_task(task.path, task_xml.write(task_xml.stored(root, sid_of)))


# Random tasks

texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn"]), min_size=1, max_size=12
)
words = texts.map(str.strip).filter(bool)
delays = st.none() | st.integers(0, 10 * 86400)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)).map(lambda one: one.replace(microsecond=0))
boundaries = moments.map(lambda one: one.isoformat())
repetitions = st.none() | st.integers(60, 31 * 86400).flatmap(
    lambda interval: st.builds(
        Repetition,
        interval=st.just(interval),
        duration=st.none() | st.integers(interval + 1, interval + 10**6),
        stop_at_duration_end=st.booleans(),
    )
)
base = {
    "enabled": st.booleans(),
    "end_boundary": st.none(),
    "execution_time_limit": st.none() | st.integers(60, 10**6),
    "repetition": repetitions,
}
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "June", "December"]
days = st.frozensets(st.sampled_from(DAYS), min_size=1)
months = st.frozensets(st.sampled_from(MONTHS))
schedules = st.one_of(
    st.builds(ByDay, st.integers(1, 365)),
    st.builds(ByWeek, days, st.integers(1, 52)),
    st.builds(ByMonth, st.frozensets(st.sampled_from(["1", "15", "31", "Last"]), min_size=1), months),
    st.builds(ByMonthDayOfWeek, days, st.frozensets(st.sampled_from(["1", "4", "Last"]), min_size=1), months),
)
users = st.sampled_from([ME, "S-1-5-21-1-2-3-1002"])
triggers = st.one_of(
    st.builds(LogonTrigger, user=users, delay=delays, start_boundary=st.none() | boundaries, **base),
    st.builds(BootTrigger, delay=delays, start_boundary=st.none() | boundaries, **base),
    st.builds(TimeTrigger, random_delay=delays, start_boundary=boundaries, **base),
    st.builds(CalendarTrigger, random_delay=delays, start_boundary=boundaries, schedule=schedules, **base),
    st.builds(
        EventTrigger,
        subscription=words,
        delay=delays,
        value_queries=st.dictionaries(words, words, max_size=3),
        start_boundary=st.none() | boundaries,
        **base,
    ),
    st.builds(IdleTrigger, start_boundary=st.none() | boundaries, **base),
    st.builds(RegistrationTrigger, delay=delays, start_boundary=st.none() | boundaries, **base),
    st.builds(
        SessionStateChangeTrigger,
        state_change=st.sampled_from(["ConsoleConnect", "SessionUnlock", "SessionLock"]),
        user=st.none() | users,
        delay=delays,
        **base,
    ),
)
switches = st.none() | st.booleans()
restarts = st.none() | st.tuples(st.integers(60, 31 * 86400), st.integers(1, 999))


@st.composite
def all_settings(draw: st.DrawFn) -> Settings:
    restart = draw(restarts)
    names = [
        "allow_start_on_demand", "allow_hard_terminate", "enabled", "hidden", "wake_to_run",
        "start_when_available", "run_only_if_idle",
        "run_only_if_network_available", "disallow_start_if_on_batteries",
        "stop_if_going_on_batteries", "stop_on_idle_end", "restart_on_idle", "use_unified_scheduling_engine",
        "disallow_start_on_remote_app_session",
    ]  # fmt: skip
    return Settings(
        **{name: draw(switches) for name in names},
        multiple_instances=draw(st.sampled_from([None, "Parallel", "Queue", "IgnoreNew", "StopExisting"])),
        execution_time_limit=draw(st.none() | st.just(0) | st.integers(60, 10**7)),
        priority=draw(st.none() | st.integers(0, 10)),
        restart_interval=restart[0] if restart else None,
        restart_count=restart[1] if restart else None,
        idle_duration=draw(st.none() | st.integers(60, 7200)),
        idle_wait_timeout=draw(st.none() | st.integers(60, 7200)),
    )


def with_ids(found: list[Any]) -> tuple[Any, ...]:
    return tuple(dataclasses.replace(one, id=f"t{index}") for index, one in enumerate(found))


tasks = st.builds(
    Task,
    path=st.just(r"\NInferServe"),
    actions=st.lists(
        st.builds(
            Exec,
            command=words.map(lambda name: f"C:\\{name}.exe"),
            arguments=st.none() | words,
            working_directory=st.none() | st.just("C:\\ninfer"),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    triggers=st.lists(triggers, max_size=4).map(with_ids),
    principal=st.one_of(
        st.builds(
            Principal,
            user=users,
            logon_type=st.sampled_from(["S4U", "InteractiveToken"]),
            run_level=st.sampled_from([None, "LeastPrivilege", "HighestAvailable"]),
        ),
        st.builds(Principal, user=st.just("S-1-5-18"), run_level=st.sampled_from([None, "HighestAvailable"])),
    ),
    settings=all_settings(),
    description=st.none() | words,
    author=st.none() | words,
    source=st.none() | words,
    documentation=st.none() | words,
)


@settings(max_examples=500, deadline=None)
@given(tasks)
def test_declared_registered_read_back_without_difference(task: Task) -> None:
    written = merged_task(None, task, ACCOUNTS)
    assert task_differences(parse_task(task.path, render_task(written)), task, ACCOUNTS) == []
    read_back = stored(written)
    assert task_differences(read_back, task, ACCOUNTS) == []
    again = stored(merged_task(read_back, task, ACCOUNTS))
    assert dataclasses.replace(again, schema_version=None) == dataclasses.replace(
        read_back, schema_version=None
    )


@settings(max_examples=100, deadline=None)
@given(tasks, tasks)
def test_any_task_is_turned_into_any_other_in_one_step(before: Task, after: Task) -> None:
    observed = stored(merged_task(None, before, ACCOUNTS))
    repaired = stored(merged_task(observed, after, ACCOUNTS))
    assert task_differences(repaired, after, ACCOUNTS) == []


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
