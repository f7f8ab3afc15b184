"""One task with every field of the schema declared, and that task with each field changed in turn."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from winfleet.task.model import ComHandler, Exec, Principal, SendEmail, Settings, ShowMessage, Task
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
    Schedule,
    SessionStateChangeTrigger,
    TimeTrigger,
    Trigger,
    WnfStateChangeTrigger,
)

PATH = "\\Full\\Task"
USER = "Administrator"
OTHER_USER = "fleet"
DAY_S = 86400
_GUIDS = ("{6B29FC40-CA47-1067-B31D-00DD010662DA}", "{6B29FC40-CA47-1067-B31D-00DD010662DB}")


def _base(number: int) -> dict[str, Any]:
    return {
        "id": f"t{number}",
        "start_boundary": "2020-01-01T00:00:00",
        "end_boundary": "2040-01-01T00:00:00",
        "execution_time_limit": 3600,
        "repetition": Repetition(300, 3600, True),
    }


_SCHEDULES: tuple[Schedule, ...] = (
    ByDay(2),
    ByWeek(frozenset({"Monday", "Friday"}), 2),
    ByMonth(frozenset({"1", "Last"}), frozenset({"March"})),
    ByMonthDayOfWeek(frozenset({"Sunday"}), frozenset({"1", "Last"}), frozenset({"May", "June"})),
)
TRIGGERS: tuple[Trigger, ...] = (
    LogonTrigger(**_base(0), user=USER, delay=30),
    BootTrigger(**_base(1), delay=30),
    TimeTrigger(**_base(2), random_delay=60),
    *(
        CalendarTrigger(**_base(3 + index), random_delay=60, schedule=schedule)
        for index, schedule in enumerate(_SCHEDULES)
    ),
    EventTrigger(
        **_base(7),
        subscription='<QueryList><Query Id="0"><Select Path="System">*</Select></Query></QueryList>',
        value_queries={"pid": "Event/System/Execution/@ProcessID"},
        delay=30,
        period_of_occurrence=60,
        number_of_occurrences=3,
        matching_element="Event/System/EventID",
    ),
    IdleTrigger(**_base(8)),
    RegistrationTrigger(**_base(9), enabled=False, delay=DAY_S),
    SessionStateChangeTrigger(**_base(10), state_change="SessionUnlock", user=USER, delay=30),
    WnfStateChangeTrigger(**_base(11), state_name="7508BCA3380C960C", data="01", data_offset=1, delay=30),
)
FULL = Task(
    path=PATH,
    actions=(
        Exec(r"C:\Windows\System32\cmd.exe", "/d /c exit 0", r"C:\Windows", id="a0"),
        ComHandler(_GUIDS[0], "some data", id="a1"),
        SendEmail(
            "mail.example", "subject", "to@example", "cc@example", "bcc@example", "reply@example",
            "from@example", (("X-Kind", "a"),), "body", (r"C:\a.txt",), id="a2",
        ),
        ShowMessage("body", "title", id="a3"),
    ),
    triggers=TRIGGERS,
    principal=Principal(
        user=USER,
        logon_type="S4U",
        run_level="HighestAvailable",
        display_name="who it is",
        process_token_sid_type="Unrestricted",
        required_privileges=frozenset({"SeBackupPrivilege", "SeRestorePrivilege"}),
    ),
    settings=Settings(
        allow_start_on_demand=False,
        allow_hard_terminate=False,
        enabled=True,
        hidden=True,
        wake_to_run=True,
        start_when_available=True,
        run_only_if_idle=True,
        run_only_if_network_available=True,
        network_profile_name="profile",
        network_name="lab",
        network_id=_GUIDS[0],
        multiple_instances="IgnoreNew",
        disallow_start_if_on_batteries=False,
        stop_if_going_on_batteries=False,
        execution_time_limit=0,
        priority=4,
        restart_interval=60,
        restart_count=3,
        idle_duration=1200,
        idle_wait_timeout=7200,
        stop_on_idle_end=False,
        restart_on_idle=True,
        delete_expired_task_after=DAY_S,
        use_unified_scheduling_engine=True,
        disallow_start_on_remote_app_session=True,
        volatile=True,
        maintenance_period=2 * DAY_S,
        maintenance_deadline=10 * DAY_S,
        maintenance_exclusive=True,
    ),
    description="what it is for: caf\u00e9 \u4efb\u52a1 \U0001f600",
    author="ninfer-fleet",
    source="deploy.py",
    version="1.0",
    date="2026-01-02T03:04:05",
    documentation="more of it",
    security_descriptor="D:P(A;;FA;;;BA)(A;;FA;;;SY)",
    data="data of ours",
)  # fmt: skip

# Another value for a field of this name; everything else is changed by its type.
_OTHERS: dict[str, Any] = {
    "user": OTHER_USER,
    "logon_type": "InteractiveToken",
    "run_level": "LeastPrivilege",
    "process_token_sid_type": "None",
    "required_privileges": frozenset({"SeBackupPrivilege"}),
    "multiple_instances": "Queue",
    "network_id": _GUIDS[1],
    "class_id": _GUIDS[1],
    "start_boundary": "2021-01-01T00:00:00",
    "end_boundary": "2041-01-01T00:00:00",
    "date": "2026-01-02T03:04:06",
    "state_change": "SessionLock",
    "state_name": "7508BCA3380C960D",
    "value_queries": {"pid": "Event/System/EventID"},
    "days_of_week": frozenset({"Tuesday"}),
    "days_of_month": frozenset({"2"}),
    "months": frozenset({"April"}),
    "weeks": frozenset({"2"}),
    "security_descriptor": "D:P(A;;FA;;;BA)",
    "data": "02",
    "header_fields": (("X-Kind", "b"),),
    "attachments": (r"C:\b.txt",),
}
_REGISTRATION = (
    "description", "author", "source", "version", "date", "documentation", "security_descriptor", "data",
)  # fmt: skip


def _other(name: str, value: Any) -> Any:
    if name in _OTHERS:
        return _OTHERS[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + (60 if value >= 60 else 1)
    assert isinstance(value, str), name
    return value + "x"


def mutations() -> Iterator[tuple[str, Task]]:
    """The name of each declared field, and the task as somebody left it who changed that field alone."""
    for name in _REGISTRATION:
        yield name, FULL.replaced(**{name: _other(name, getattr(FULL, name))})
    for part in ("principal", "settings"):
        known = getattr(FULL, part)
        for one in dataclasses.fields(known):
            value = getattr(known, one.name)
            if value is None or one.name in ("id", "absent"):
                continue
            changed = dataclasses.replace(known, **{one.name: _other(one.name, value)})
            yield f"{part}.{one.name}", FULL.replaced(**{part: changed})
    yield "principal.group", FULL.replaced(principal=Principal(group="Users"))
    yield from _trigger_mutations()
    yield from _action_mutations()


def _with_trigger(index: int, trigger: Any) -> Task:
    found = [*TRIGGERS[:index], *([] if trigger is None else [trigger]), *TRIGGERS[index + 1 :]]
    return FULL.replaced(triggers=tuple(found))


def _trigger_mutations() -> Iterator[tuple[str, Task]]:
    for index, trigger in enumerate(TRIGGERS):
        label = f"triggers[t{index}]"
        for one in dataclasses.fields(trigger):
            value = getattr(trigger, one.name)
            if one.name in ("foreign", "any_user"):
                continue
            if one.name in ("repetition", "schedule"):
                for inner in dataclasses.fields(value):
                    other = _other(inner.name, getattr(value, inner.name))
                    changed = dataclasses.replace(value, **{inner.name: other})
                    mutated = dataclasses.replace(trigger, **{one.name: changed})
                    yield f"{label}.{one.name}.{inner.name}", _with_trigger(index, mutated)
                continue
            mutated = dataclasses.replace(trigger, **{one.name: _other(one.name, value)})
            yield f"{label}.{one.name}", _with_trigger(index, mutated)
        yield (
            f"{label}.repetition.interval",
            _with_trigger(index, dataclasses.replace(trigger, repetition=None)),
        )
        yield label, _with_trigger(index, None)
    first: Any = TRIGGERS[0]
    yield "triggers[t0].user", _with_trigger(0, dataclasses.replace(first, user=None, any_user=True))
    weekly: Any = TRIGGERS[4]
    yield "triggers[t4].schedule", _with_trigger(4, dataclasses.replace(weekly, schedule=ByDay(2)))
    yield "triggers[foreign]", FULL.replaced(triggers=(*TRIGGERS, BootTrigger(id="foreign")))


def _action_mutations() -> Iterator[tuple[str, Task]]:
    actions = FULL.actions or ()
    for index, action in enumerate(actions):
        for one in dataclasses.fields(action):
            if one.name == "foreign":
                continue
            changed = dataclasses.replace(action, **{one.name: _other(one.name, getattr(action, one.name))})
            found = (*actions[:index], changed, *actions[index + 1 :])
            yield f"actions[{index}].{one.name}", FULL.replaced(actions=found)
    yield "actions[3]", FULL.replaced(actions=actions[:3])
    yield "actions[4]", FULL.replaced(actions=(*actions, Exec(r"C:\x.exe")))
