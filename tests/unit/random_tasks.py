"""Random valid tasks of every kind, and what the simulated scheduler makes of them."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from hypothesis import strategies as st

from simbox.task import stored as task_stored
from simbox.task import xml as task_xml
from simbox.task.validate import validate
from winfleet.account.model import AccountSids
from winfleet.task.model import ComHandler, Exec, Principal, SendEmail, Settings, ShowMessage, Task
from winfleet.task.parse import parse_task
from winfleet.task.render import render_task
from winfleet.task.schema import DAYS, MONTHS, PRIVILEGES, SESSION_CHANGES
from winfleet.task.trigger import (
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
    WnfStateChangeTrigger,
)

ME = "S-1-5-21-1-2-3-1001"
OTHER = "S-1-5-21-1-2-3-1002"
ACCOUNTS = AccountSids({"me": ME, "gpu01\\me": ME, "other": OTHER, "administrator": ME, "fleet": OTHER}, {})
GUID = "{6B29FC40-CA47-1067-B31D-00DD010662DA}"
DAY_S = 86400


def sid_of(name: str) -> str:
    return ACCOUNTS.sid(name) or name


def read_back(task: Task) -> Task:
    """The task as it reads back after the scheduler has rewritten it."""
    root = task_xml.read(render_task(task))
    validate(root)
    return parse_task(task.path, task_xml.write(task_stored.stored(root, sid_of)))


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn"]), min_size=1, max_size=12
)
words = texts.map(str.strip).filter(bool)
maybe_words = st.none() | words
delays = st.none() | st.integers(0, 10 * DAY_S)
zones = st.sampled_from(["", "Z", "+08:00", "-03:30"])


def _moments(first: int, last: int) -> st.SearchStrategy[str]:
    whole = st.datetimes(datetime(first, 1, 1), datetime(last, 1, 1)).map(
        lambda one: one.replace(microsecond=0)
    )
    return st.tuples(whole, zones).map(lambda pair: pair[0].isoformat() + pair[1])


starts = _moments(2020, 2034)
repetitions = st.none() | st.integers(60, 31 * DAY_S).flatmap(
    lambda interval: st.builds(
        Repetition,
        interval=st.just(interval),
        duration=st.none() | st.integers(interval + 1, interval + 10**6),
        stop_at_duration_end=st.booleans(),
    )
)
base = {
    "enabled": st.booleans(),
    "end_boundary": st.none() | _moments(2040, 2050),
    "execution_time_limit": st.none() | st.integers(60, 10**6),
    "repetition": repetitions,
}
any_start = {"start_boundary": st.none() | starts, **base}
days = st.frozensets(st.sampled_from(DAYS), min_size=1)
months = st.frozensets(st.sampled_from(MONTHS), max_size=11)
month_days = st.frozensets(st.sampled_from([*map(str, range(1, 32)), "Last"]), min_size=1)
schedules = st.one_of(
    st.builds(ByDay, st.integers(1, 365)),
    st.builds(ByWeek, days, st.integers(1, 52)),
    st.builds(ByMonth, month_days, months),
    st.builds(ByMonthDayOfWeek, days, st.frozensets(st.sampled_from(["1", "2", "3", "4", "Last"])), months),
)
users = st.sampled_from([ME, OTHER])
hexes = st.binary(min_size=1, max_size=8).map(lambda data: data.hex().upper())
triggers = st.one_of(
    st.builds(LogonTrigger, user=users, delay=delays, **any_start),
    st.builds(LogonTrigger, any_user=st.just(True), delay=delays, **any_start),
    st.builds(BootTrigger, delay=delays, **any_start),
    st.builds(TimeTrigger, random_delay=delays, start_boundary=starts, **base),
    st.builds(CalendarTrigger, random_delay=delays, start_boundary=starts, schedule=schedules, **base),
    st.builds(
        EventTrigger,
        subscription=words,
        delay=delays,
        value_queries=st.dictionaries(words, words, max_size=3),
        period_of_occurrence=delays,
        number_of_occurrences=st.integers(1, 32),
        matching_element=maybe_words,
        **any_start,
    ),
    st.builds(IdleTrigger, **any_start),
    st.builds(RegistrationTrigger, delay=delays, **any_start),
    st.builds(
        SessionStateChangeTrigger,
        state_change=st.sampled_from(SESSION_CHANGES),
        user=st.none() | users,
        delay=delays,
        **any_start,
    ),
    st.builds(
        WnfStateChangeTrigger,
        state_name=hexes,
        data=st.none() | hexes,
        data_offset=st.none() | st.integers(0, 99),
        delay=delays,
        **any_start,
    ),
)
actions = st.one_of(
    st.builds(
        Exec,
        command=words.map(lambda name: f"C:\\{name}.exe"),
        arguments=maybe_words,
        working_directory=st.none() | st.just("C:\\ninfer"),
    ),
    st.builds(ComHandler, class_id=st.just(GUID), data=maybe_words),
    st.builds(
        SendEmail,
        server=words,
        subject=maybe_words,
        to=maybe_words,
        cc=maybe_words,
        bcc=maybe_words,
        reply_to=maybe_words,
        sender=maybe_words,
        header_fields=st.lists(st.tuples(words, words), max_size=2).map(tuple),
        body=maybe_words,
        attachments=st.lists(words, max_size=2).map(tuple),
    ),
    st.builds(ShowMessage, body=words, title=maybe_words),
)
switches = st.none() | st.booleans()
lengths = st.none() | st.integers(60, 7200)
SWITCHES = [
    "allow_start_on_demand", "allow_hard_terminate", "enabled", "hidden", "wake_to_run", "start_when_available",
    "run_only_if_idle", "disallow_start_if_on_batteries", "stop_if_going_on_batteries", "stop_on_idle_end",
    "restart_on_idle", "use_unified_scheduling_engine", "disallow_start_on_remote_app_session", "volatile",
]  # fmt: skip


@st.composite
def all_settings(draw: st.DrawFn, ends: bool) -> Settings:
    restart = draw(st.none() | st.tuples(st.integers(60, 31 * DAY_S), st.integers(1, 255)))
    period = draw(st.none() | st.integers(DAY_S, 30 * DAY_S))
    network = draw(st.booleans())
    switched: dict[str, Any] = {name: draw(switches) for name in SWITCHES}
    return Settings(
        **switched,
        run_only_if_network_available=True if network else draw(switches),
        network_profile_name=draw(maybe_words),
        network_name=draw(maybe_words) if network else None,
        network_id=draw(st.none() | st.just(GUID)) if network else None,
        multiple_instances=draw(st.sampled_from([None, "Parallel", "Queue", "IgnoreNew", "StopExisting"])),
        execution_time_limit=draw(st.none() | st.just(0) | st.integers(60, 10**7)),
        priority=draw(st.none() | st.integers(0, 10)),
        restart_interval=restart[0] if restart else None,
        restart_count=restart[1] if restart else None,
        idle_duration=draw(lengths),
        idle_wait_timeout=draw(lengths),
        delete_expired_task_after=draw(st.none() | st.integers(0, 30 * DAY_S)) if ends else None,
        maintenance_period=period,
        maintenance_deadline=None if period is None else draw(st.none() | st.just(period + DAY_S)),
        maintenance_exclusive=None if period is None else draw(switches),
    )


principals = st.one_of(
    st.builds(
        Principal,
        user=users,
        logon_type=st.sampled_from(["S4U", "InteractiveToken"]),
        run_level=st.sampled_from([None, "LeastPrivilege", "HighestAvailable"]),
        display_name=maybe_words,
        process_token_sid_type=st.sampled_from([None, "None", "Unrestricted"]),
        required_privileges=st.none() | st.frozensets(st.sampled_from(sorted(PRIVILEGES)), min_size=1),
    ),
    st.builds(Principal, user=st.just("SYSTEM"), run_level=st.sampled_from([None, "HighestAvailable"])),
    st.builds(Principal, group=st.just("Users"), run_level=st.sampled_from([None, "LeastPrivilege"])),
)


def _with_ids(found: list[Any]) -> tuple[Any, ...]:
    return tuple(dataclasses.replace(one, id=f"t{index}") for index, one in enumerate(found))


@st.composite
def all_tasks(draw: st.DrawFn) -> Task:
    chosen = draw(st.lists(triggers, max_size=4).map(_with_ids))
    principal = draw(principals)
    if principal.logon_type == "InteractiveToken":
        # A boot trigger alone contradicts it.
        chosen = tuple(one for one in chosen if not isinstance(one, BootTrigger))
    return Task(
        path=r"\NInferServe",
        actions=tuple(draw(st.lists(actions, min_size=1, max_size=3))),
        triggers=chosen,
        principal=principal,
        settings=draw(all_settings(any(one.end_boundary for one in chosen))),
        description=draw(maybe_words),
        author=draw(maybe_words),
        source=draw(maybe_words),
        version=draw(maybe_words),
        date=draw(st.none() | starts),
        documentation=draw(maybe_words),
        security_descriptor=draw(st.none() | st.just("D:P(A;;FA;;;BA)(A;;FA;;;SY)")),
        data=draw(maybe_words),
        schema_version=draw(st.sampled_from([None, "1.2", "1.4"])),
    )


tasks = all_tasks()
