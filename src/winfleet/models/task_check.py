"""Declared tasks that cannot do what they are for: refused while planning, each with its reason.

Facts: research windows.md 1.1, 1.5 to 1.7 and the entries of its bug log named here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from winfleet.models.account import known_sid
from winfleet.models.duration import iso, seconds
from winfleet.models.file import absolute_path
from winfleet.models.task import Exec, Task
from winfleet.models.task_schema import SERVICE_SIDS
from winfleet.models.task_trigger import (
    BootTrigger,
    ByMonth,
    ByMonthDayOfWeek,
    ByWeek,
    CalendarTrigger,
    EventTrigger,
    LogonTrigger,
    TimeTrigger,
    Trigger,
)

_DAY_S = 86400
_BACKGROUND_START = re.compile(r"(^|[\s&|(\"])start(\s|$|/)", re.IGNORECASE)
_SCRIPT_HOST = re.compile(r"(wscript|cscript)(\.exe)?\b|\.vbs\b|\.vbe\b|\.wsf\b", re.IGNORECASE)
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z_][\w.\-]*")


def task_faults(task: Task) -> list[str]:
    """Why this declared task is refused; empty: nothing. Each text says what to do."""
    return [f"task {task.path}: {fault}" for fault in _faults(task)]


def task_warnings(task: Task) -> list[str]:
    """What is allowed but has gone wrong for others."""
    found = []
    for trigger in task.triggers or ():
        if isinstance(trigger, BootTrigger) and not trigger.delay and task.principal.logon_type == "S4U":
            found.append(
                "a boot trigger without delay: an S4U logon can fail right after boot (W49);"
                " set delay to 30 s"
            )
    if task.service and task.settings.priority not in (4, 5, 6):
        found.append("priority is not 4 to 6: CPU, disk and memory priority are lowered (windows.md 1.1)")
    return [f"task {task.path}: {text}" for text in found]


def _faults(task: Task) -> Iterator[str]:
    if task.path == "\\" or any(sign in task.path for sign in '<>:"|?*'):
        yield 'the path needs a name, without < > : " | ? *'
    yield from _text_faults(task)
    yield from _action_faults(task)
    ids = [trigger.id for trigger in task.triggers or () if trigger.id]
    for name in sorted(set(ids)):
        if ids.count(name) > 1:
            yield f"two triggers have the id {name!r}"
        if not _NAME.fullmatch(name):
            yield f"the trigger id {name!r} is no XML name; use letters, digits, - and _"
    if task.triggers is not None and len(task.triggers) > 48:
        yield "the scheduler takes at most 48 triggers"
    for trigger in task.triggers or ():
        for fault in _trigger_faults(task, trigger):
            yield f"trigger {trigger.id or trigger.kind}: {fault}"
    yield from _principal_faults(task)
    yield from _setting_faults(task)
    if task.service:
        yield from _service_faults(task)


def _text_faults(task: Task) -> Iterator[str]:
    for name in ("description", "author", "source", "version", "documentation", "data"):
        value = getattr(task, name)
        if value is not None and _NOT_XML.search(value):
            yield f"{name} holds a character that XML cannot carry"
    for action in task.actions or ():
        for value in (
            (action.command, action.arguments, action.working_directory) if isinstance(action, Exec) else ()
        ):
            if value is not None and (_NOT_XML.search(value) or "\n" in value or "\r" in value):
                yield f"an action holds a line end or a character that XML cannot carry: {value!r}"


def _action_faults(task: Task) -> Iterator[str]:
    if task.actions is None:
        return
    if not 1 <= len(task.actions) <= 32:
        yield f"{len(task.actions)} actions; the scheduler takes 1 to 32"
    for action in task.actions:
        if not isinstance(action, Exec):
            continue
        command = action.command.strip().strip('"')
        if not absolute_path(command) and not command.startswith("%"):
            yield f"the command {action.command!r} is no full path; the scheduler has its own PATH and folder"
        if action.working_directory and not absolute_path(action.working_directory.strip('"')):
            yield f"the working directory {action.working_directory!r} is no full path"
        whole = f"{command} {action.arguments or ''}"
        if _SCRIPT_HOST.search(whole):
            yield (
                "Windows Script Host can be switched off by policy, then nothing runs and nothing is"
                " logged (W56)"
            )
        if command.lower().endswith(("cmd.exe", "\\cmd")) and _BACKGROUND_START.search(
            action.arguments or ""
        ):
            yield (
                "cmd with 'start' ends at once: the task shows Ready, the child is lost to it and may be"
                " killed with it; make the long-lived program the action (windows.md 1.6)"
            )


def _trigger_faults(task: Task, trigger: Trigger) -> Iterator[str]:
    repetition = trigger.repetition
    if repetition is not None:
        interval = seconds(repetition.interval)
        if not 60 <= interval <= 31 * _DAY_S:
            yield f"it repeats every {iso(interval)}; the scheduler takes PT1M to P31D"
        duration = None if repetition.duration is None else seconds(repetition.duration)
        if duration is not None and duration < 60:
            yield (
                f"the repetition ends after {iso(duration)}; the scheduler takes PT1M or more, or none: for"
                " ever"
            )
        if duration is not None and duration <= interval:
            yield (
                f"the repetition ends after {iso(duration)}, before its interval of {iso(interval)} has"
                " passed"
            )
        if task.service and duration is not None and duration < 3650 * _DAY_S:
            yield (
                f"a watchdog that ends after {iso(duration)} leaves the service dead for good;"
                " leave the duration out: for ever (openclaw/openclaw#81020)"
            )
    if isinstance(trigger, TimeTrigger | CalendarTrigger) and not trigger.start_boundary:
        yield "start_boundary is missing; write a fixed time in the past for a watchdog"
    if isinstance(trigger, LogonTrigger):
        if trigger.user is None and not trigger.any_user:
            yield "name the user, or set any_user=True: an unscoped logon trigger starts for everybody (W17)"
        if trigger.user is not None and trigger.any_user:
            yield "user and any_user contradict each other"
    if isinstance(trigger, EventTrigger) and not trigger.subscription.strip():
        yield "an event trigger needs a subscription"
    if isinstance(trigger, CalendarTrigger):
        schedule = trigger.schedule
        if isinstance(schedule, ByWeek | ByMonthDayOfWeek) and not schedule.days_of_week:
            yield "name the days of the week"
        if isinstance(schedule, ByMonth) and not schedule.days_of_month:
            yield "name the days of the month"


def _principal_faults(task: Task) -> Iterator[str]:
    principal = task.principal
    if principal.user is not None and principal.group is not None:
        yield "user and group contradict each other; a task runs as one of them"
    if principal.logon_type in {"Password", "InteractiveTokenOrPassword"}:
        yield f"logon type {principal.logon_type} stores a password on the box; use S4U or SYSTEM"
    sid = known_sid(principal.user) if principal.user else None
    if sid in SERVICE_SIDS and principal.logon_type is not None:
        yield f"{principal.user} needs no logon; leave logon_type out"
    boots = any(isinstance(trigger, BootTrigger) for trigger in task.triggers or ())
    logons = any(isinstance(trigger, LogonTrigger) for trigger in task.triggers or ())
    if boots and not logons and principal.logon_type == "InteractiveToken":
        yield (
            "a boot trigger with InteractiveToken never fires before somebody logs on; add a logon trigger,"
            " or use S4U or SYSTEM (skynetcmd/m3-memory PR#65)"
        )


def _setting_faults(task: Task) -> Iterator[str]:
    settings = task.settings
    if settings.priority is not None and not 0 <= settings.priority <= 10:
        yield f"priority {settings.priority}; the scheduler takes 0 to 10, 4 is normal"
    if (settings.restart_interval is None) != (settings.restart_count is None):
        yield "restart_interval and restart_count go together"
    if settings.restart_interval is not None and not 60 <= seconds(settings.restart_interval) <= 31 * _DAY_S:
        yield f"restart_interval {iso(seconds(settings.restart_interval))}; the scheduler takes PT1M to P31D"
    if settings.restart_count is not None and not 1 <= settings.restart_count <= 999:
        yield f"restart_count {settings.restart_count}; the scheduler takes 1 to 999"
    if settings.delete_expired_task_after is not None and not any(
        trigger.end_boundary for trigger in task.triggers or ()
    ):
        yield "delete_expired_task_after needs a trigger with an end_boundary"


def _service_faults(task: Task) -> Iterator[str]:
    settings = task.settings
    triggers = task.triggers or ()
    starts = [
        trigger
        for trigger in triggers
        if trigger.enabled
        and (isinstance(trigger, BootTrigger | LogonTrigger) or trigger.repetition is not None)
    ]
    if not starts:
        yield "a service needs a boot, logon or repeating trigger, or it never starts by itself (ODS PR#3252)"
    if any(trigger.end_boundary for trigger in triggers):
        yield "a trigger of a service with an end_boundary stops starting it one day; leave it out"
    if settings.execution_time_limit != 0 or any(trigger.execution_time_limit for trigger in triggers):
        yield (
            "a service without execution_time_limit=0 is ended after the default of 72 h, or after the"
            " given time"
        )
    if (
        settings.disallow_start_if_on_batteries is not False
        or settings.stop_if_going_on_batteries is not False
    ):
        yield (
            "set disallow_start_if_on_batteries and stop_if_going_on_batteries to False: Windows'"
            " default is True"
        )
    if settings.multiple_instances not in (None, "IgnoreNew"):
        yield f"multiple_instances {settings.multiple_instances} starts a second server; use IgnoreNew"
    if settings.run_only_if_idle:
        yield "run_only_if_idle and a service contradict each other"
