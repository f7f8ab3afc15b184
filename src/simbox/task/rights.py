"""Who may register a task, and in which session it runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from simbox.errors import com_error
from simbox.task import xml as task_xml
from simbox.task.stored import stored
from simbox.task.validate import validate
from simbox.task.xml import Node

if TYPE_CHECKING:
    from simbox.box import Box

_SERVICES = ("S-1-5-18", "S-1-5-19", "S-1-5-20")
_PRINCIPAL = "Principals/Principal/"
_STORES_PASSWORD = ("Password", "InteractiveTokenOrPassword")


def triggers(task: Node) -> list[Node]:
    """The triggers of a task."""
    return (task.child("Triggers") or Node("Triggers")).children


def prepare(box: Box, path: str, xml: str, password: str | None = None) -> Node:
    """The stored shape of XML that the service takes for that path. Raises WindowsError with its HRESULT."""
    if not re.fullmatch(r'(\\[^\\/:*?"<>|]+)+', path):
        raise com_error(
            0x8007007B, f"The filename, directory name, or volume label syntax is incorrect. ({path})"
        )
    root = task_xml.read(xml)
    validate(root)
    task = stored(root, box.windows.account.sid_of)
    _check_rights(box, task)
    if task.value(_PRINCIPAL + "LogonType") in _STORES_PASSWORD and not password:
        raise com_error(
            0x8007052E, "The user name or password is incorrect. (Exception from HRESULT: 0x8007052E)"
        )
    return task


def _check_rights(box: Box, task: Node) -> None:
    """What only an elevated caller may register (docs/facts/windows.md#elevation-for-tasks)."""
    if box.store.get("system", "elevated"):
        return
    for_all = any(
        trigger.name == "BootTrigger" or (trigger.name == "LogonTrigger" and not trigger.value("UserId"))
        for trigger in triggers(task)
    )
    if (
        for_all
        or task.value(_PRINCIPAL + "RunLevel") == "HighestAvailable"
        or task.value(_PRINCIPAL + "UserId") in _SERVICES
        or task.value(_PRINCIPAL + "LogonType") in ("S4U", "Password")
    ):
        raise com_error(0x80070005, "Access is denied. (Exception from HRESULT: 0x80070005 (E_ACCESSDENIED))")


def logs_on(box: Box, trigger: Node) -> bool:
    """True when the user of a logon trigger (any, when it names none) logs on at the console."""
    console_user = box.store.get("system", "console_user")
    if not console_user:
        return False
    wanted, accounts = trigger.value("UserId"), box.windows.account
    return not wanted or accounts.sid_of(wanted) == accounts.sid_of(console_user)


def session_of(box: Box, task: Node) -> int | None:
    """Session of the task's process: 0, 1 for the console's, or None when its user is not there."""
    accounts = box.windows.account
    console_user = box.store.get("system", "console_user")
    user = task.value(_PRINCIPAL + "UserId") or accounts.sid_of(box.store.get("system", "user"))
    kind = task.value(_PRINCIPAL + "LogonType", "InteractiveToken")
    if user in _SERVICES or kind in ("S4U", "Password", "InteractiveTokenOrPassword"):
        return 0
    if not console_user:
        return None
    return 1 if task.value(_PRINCIPAL + "GroupId") or accounts.sid_of(console_user) == user else None


def rights(box: Box, task: Node) -> tuple[str, bool]:
    """SID and elevation of the process of a task.

    RunLevel does not count for Windows' own accounts and for the built-in administrator. Whether it gives an
    elevated token to others is disputed (trycua/cua#1638): `system.highest_is_elevated` says how this box is.
    """
    accounts = box.windows.account
    sid = task.value(_PRINCIPAL + "UserId") or accounts.sid_of(str(box.store.get("system", "user")))
    if sid in _SERVICES:
        return sid, sid == "S-1-5-18"
    highest = task.value(_PRINCIPAL + "RunLevel") == "HighestAvailable"
    kept = bool(box.store.get("system", "highest_is_elevated", default=True))
    return sid, sid.endswith("-500") or (highest and kept)
