"""Declared tasks that cannot do what they are for: refused while planning, each with its reason.

Facts: docs/facts/windows.md#task-schema and the sections after it, and docs/facts/windows.md#reports for W
and a number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from winfleet.account.model import known_sid
from winfleet.path import absolute_path
from winfleet.task.action import ComHandler, Exec, SendEmail, ShowMessage
from winfleet.task.model import Principal, Task
from winfleet.task.schema import DEFAULT_PRINCIPAL_ID, LONGEST_PATH, PRIVILEGES, SERVICE_SIDS
from winfleet.task.service_check import service_faults, service_warnings
from winfleet.task.setting_check import setting_faults, setting_warnings
from winfleet.task.trigger import BootTrigger, LogonTrigger
from winfleet.task.trigger_check import trigger_faults

PASSWORD_LOGONS = frozenset({"Password", "InteractiveTokenOrPassword"})
_CMD = re.compile(r"(^|\\)cmd(\.exe)?$", re.IGNORECASE)
_BACKGROUND_START = re.compile(r"(^|[\s&|(\"])start(\s|$|/)", re.IGNORECASE)
_SCRIPT_HOST = re.compile(r"(wscript|cscript)(\.exe)?\b|\.vbs\b|\.vbe\b|\.wsf\b", re.IGNORECASE)
_VARIABLE = re.compile(r"%[^%]+%\\")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z_][\w.\-]*")


def task_faults(task: Task, passwords: Collection[str] = ()) -> list[str]:
    """Why this declared task is refused; empty: nothing. Each text says what to do.

    passwords: the accounts whose password will be sent with the task.
    """
    return [f"task {task.path}: {fault}" for fault in _faults(task, passwords)]


def task_warnings(task: Task) -> list[str]:
    """What is allowed but has gone wrong for others."""
    return [f"task {task.path}: {text}" for text in _warnings(task)]


def full_path(path: str) -> bool:
    """True for a path that means the same in any folder; it may begin with a variable of the machine."""
    plain = path.strip().strip('"')
    return absolute_path(plain) or _VARIABLE.match(plain) is not None


def _warnings(task: Task) -> Iterator[str]:
    for trigger in task.triggers or ():
        if isinstance(trigger, BootTrigger) and not trigger.delay and task.principal.logon_type == "S4U":
            yield (
                "a boot trigger without delay: an S4U logon can fail right after boot (W49);"
                " set delay to 30 s"
            )
    for action in task.actions or ():
        if isinstance(action, SendEmail | ShowMessage):
            yield f"{type(action).__name__}: Windows 8 and later register it but do not run it"
    yield from setting_warnings(task)
    if task.service:
        yield from service_warnings(task)


def _faults(task: Task, passwords: Collection[str]) -> Iterator[str]:
    if task.path == "\\" or any(sign in task.path for sign in '<>:"|?*'):
        yield 'the path needs a name, without < > : " | ? *'
    if task.uri is not None and task.uri != task.path:
        yield f"uri {task.uri!r}: Windows sets it to the task's path; leave it out"
    yield from _text_faults(task)
    yield from _action_faults(task)
    yield from _id_faults(task)
    if task.triggers is not None and len(task.triggers) > 48:
        yield "the scheduler takes at most 48 triggers"
    for trigger in task.triggers or ():
        for fault in trigger_faults(trigger, task.service):
            yield f"trigger {trigger.id or trigger.kind}: {fault}"
    yield from _principal_faults(task, passwords)
    yield from setting_faults(task)
    if task.service:
        yield from service_faults(task)


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


def _id_faults(task: Task) -> Iterator[str]:
    """The schema wants all ids of a task to differ, that of the principal too."""
    principal = task.principal.id or DEFAULT_PRINCIPAL_ID
    parts = [*(task.triggers or ()), *(task.actions or ())]
    ids = [part.id for part in parts if part.id]
    for name in sorted(set(ids)):
        if ids.count(name) > 1:
            yield f"two triggers or actions have the id {name!r}"
        if name == principal:
            yield f"the id {name!r} is that of the principal"
    for name in sorted({*ids, principal}):
        if not _NAME.fullmatch(name):
            yield f"the id {name!r} is no XML name; use letters, digits, - and _"


def _action_faults(task: Task) -> Iterator[str]:
    if task.actions is None:
        return
    if not 1 <= len(task.actions) <= 32:
        yield f"{len(task.actions)} actions; the scheduler takes 1 to 32"
    for action in task.actions:
        if isinstance(action, Exec):
            yield from _exec_faults(action)
        if isinstance(action, ComHandler) and not re.fullmatch(r"\{[0-9A-Fa-f-]{36}\}", action.class_id):
            yield f"the class id {action.class_id!r} is no {{GUID}}"
        if isinstance(action, SendEmail) and not action.server.strip():
            yield "a mail needs a server"
        if isinstance(action, SendEmail) and (len(action.attachments) > 8 or len(action.header_fields) > 32):
            yield "a mail takes at most 8 attachments and 32 header fields"
        if isinstance(action, ShowMessage) and not action.body.strip():
            yield "a message needs a body"


def _exec_faults(action: Exec) -> Iterator[str]:
    command = action.command.strip().strip('"')
    if not full_path(command):
        yield f"the command {action.command!r} is no full path; the scheduler has its own PATH and folder"
    if action.working_directory and not full_path(action.working_directory):
        yield f"the working directory {action.working_directory!r} is no full path"
    for path in (action.command, action.working_directory or ""):
        if len(path) > LONGEST_PATH:
            yield f"a path of {len(path)} characters; the scheduler takes {LONGEST_PATH}: {path[:60]}..."
    whole = f"{command} {action.arguments or ''}"
    if _SCRIPT_HOST.search(whole):
        yield ("Windows Script Host can be switched off by policy, then nothing runs and nothing is logged")
    if _CMD.search(command) and _BACKGROUND_START.search(action.arguments or ""):
        yield (
            "cmd with 'start' ends at once: the task shows Ready, the child is lost to it and may be"
            " killed with it; make the long-lived program the action"
            " (docs/facts/windows.md#ending-a-task)"
        )


def _principal_faults(task: Task, passwords: Collection[str]) -> Iterator[str]:
    principal = task.principal
    if principal.user is not None and principal.group is not None:
        yield "user and group contradict each other; a task runs as one of them"
    if principal.group is not None and principal.logon_type is not None:
        yield "a group has no logon type; leave it out"
    yield from password_faults(principal, passwords)
    sid = known_sid(principal.user) if principal.user else None
    if sid in SERVICE_SIDS and principal.logon_type is not None:
        yield f"{principal.user} needs no logon; leave logon_type out"
    if principal.process_token_sid_type not in (None, "", "None", "Unrestricted"):
        yield f"process_token_sid_type {principal.process_token_sid_type!r}; None or Unrestricted"
    wrong = sorted((principal.required_privileges or frozenset()) - PRIVILEGES)
    if wrong:
        yield f"required_privileges: Windows knows no {', '.join(wrong)}"
    boots = any(isinstance(trigger, BootTrigger) for trigger in task.triggers or ())
    logons = any(isinstance(trigger, LogonTrigger) for trigger in task.triggers or ())
    if boots and not logons and principal.logon_type == "InteractiveToken":
        yield (
            "a boot trigger with InteractiveToken never fires before somebody logs on; add a logon trigger,"
            " or use S4U or SYSTEM (skynetcmd/m3-memory PR#65)"
        )


def password_faults(principal: Principal, passwords: Collection[str]) -> Iterator[str]:
    """A task that stores a password cannot be registered without it; S4U needs none."""
    known = {name.casefold() for name in passwords}
    if principal.logon_type in PASSWORD_LOGONS and (principal.user or "").casefold() not in known:
        yield (
            f"logon type {principal.logon_type} stores a password on the box and Windows wants it at each"
            " registration; give it in passwords, or use S4U, which needs none"
        )


def elevation_reasons(task: Task, own_sid: str | None = None) -> list[str]:
    """What in this task only an administrator's session may register
    (docs/facts/windows.md#elevation-for-tasks, W17, W58).

    task: with SIDs for names, as it will be written. own_sid: of the session's account.
    """
    principal = task.principal
    reasons = []
    if principal.run_level == "HighestAvailable":
        reasons.append("run_level HighestAvailable")
    if principal.user in SERVICE_SIDS:
        reasons.append("a service account")
    elif principal.user is not None and own_sid is not None and principal.user.upper() != own_sid.upper():
        reasons.append("another account than that of the session")
    if principal.logon_type == "S4U" or principal.logon_type in PASSWORD_LOGONS:
        reasons.append(f"logon type {principal.logon_type}")
    for trigger in task.triggers or ():
        if isinstance(trigger, LogonTrigger) and trigger.user is None:
            reasons.append("a logon trigger of any user")
        if isinstance(trigger, BootTrigger):
            reasons.append("a boot trigger")
    return list(dict.fromkeys(reasons))
