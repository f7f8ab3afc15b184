"""Access lists, firewall and tasks: the box's Windows services answer these as they are."""

from __future__ import annotations

import re
from typing import Any

from simbox.engines.python.answers import Call, Command, refused, thrown
from simbox.errors import WindowsError
from simbox.files.boxfiles import BoxFiles
from simbox.files.guard import require_changeable

_WILDCARDS = set("*?[]")
_TASK_PATH = re.compile(r"\\([^\\]+\\)*[^\\]+")


def get_acl(call: Call) -> list[dict[str, Any]]:
    """Get-BoxAcl."""
    return call.box.windows.acl.get(call.texts("Path"))


def set_acl(call: Call) -> dict[str, Any]:
    """Set-BoxAcl."""
    path = call.text("Path")
    require_changeable(BoxFiles(call.box), path, "given another access list", followed=True)
    if not call.box.filesystem.exists(path):
        raise WindowsError(
            "System.Management.Automation.ItemNotFoundException",
            f"Cannot find path '{path}' because it does not exist.",
            0x80131501,
            "ObjectNotFound",
            "GetAcl_PathNotFound_Exception,Microsoft.PowerShell.Commands.GetAclCommand",
        )
    return call.box.windows.acl.set(path, call.text("Sddl"))


def firewall(call: Call) -> dict[str, Any]:
    """Get-BoxFirewall: the rules of a store by name."""
    snapshot = call.box.windows.firewall.snapshot()
    for store in snapshot["Stores"]:
        store["Rules"].sort(key=lambda rule: rule["Name"].casefold())
    return snapshot


def _exact(names: list[str]) -> list[str]:
    for name in names:
        if not name:
            raise refused("a firewall rule name is empty; give the exact name of one rule")
    return names


def set_rule(call: Call) -> dict[str, Any]:
    """Set-BoxFirewallRule."""
    _exact([call.text("Name")])
    return call.box.windows.firewall.set(
        name=call.text("Name"),
        display_name=call.text("DisplayName"),
        description=call.text("Description"),
        group=call.text("Group"),
        enabled=bool(call.get("Enabled", True)),
        direction=call.text("Direction") or "Inbound",
        action=call.text("Action") or "Allow",
        profile=call.texts("Profile") or ["Any"],
        protocol=call.text("Protocol") or "TCP",
        local_port=call.texts("LocalPort") or ["Any"],
        remote_port=call.texts("RemotePort") or ["Any"],
        local_address=call.texts("LocalAddress") or ["Any"],
        remote_address=call.texts("RemoteAddress") or ["Any"],
        program=call.text("Program") or "Any",
        interface_alias=[alias for alias in call.texts("InterfaceAlias") if alias.casefold() != "any"],
    )


def disable_rule(call: Call) -> dict[str, Any]:
    """Disable-BoxFirewallRule: those that are there."""
    service = call.box.windows.firewall
    stores = {store["Store"]: store["Rules"] for store in service.snapshot()["Stores"]}
    known = {rule["Name"].casefold() for rule in stores["Local"]}
    names = [name for name in _exact(call.texts("Name")) if name.casefold() in known]
    return {"Changed": service.set_enabled(names, False)}


def remove_rule(call: Call) -> dict[str, Any]:
    """Remove-BoxFirewallRule."""
    return {"Changed": call.box.windows.firewall.remove(_exact(call.texts("Name")))}


def _task_path(call: Call) -> str:
    return _checked(call.text("TaskPath"))


def _checked(path: str) -> str:
    if not _TASK_PATH.fullmatch(path):
        message = f"'{path}' is no full task path such as \\Folder\\Name"
        raise thrown("System.ArgumentException", message, 0x80070057)
    return path


def _required_task(call: Call) -> str:
    path = _task_path(call)
    if not call.box.windows.scheduler.get(path)["Exists"]:
        message = f"There is no scheduled task '{path}'."
        raise thrown("System.IO.FileNotFoundException", message, 0x80070002)
    return path


def get_tasks(call: Call) -> list[dict[str, Any]]:
    """Get-BoxTask."""
    answers = []
    for path in call.texts("TaskPath"):
        answer = call.box.windows.scheduler.get(path)
        if not _TASK_PATH.fullmatch(path):
            answer["Error"] = f"'{path}' is no full task path such as \\Folder\\Name"
        answers.append(answer)
    return answers


def test_task(call: Call) -> dict[str, Any]:
    """Test-BoxTask."""
    return call.box.windows.scheduler.validate(_task_path(call), call.text("Xml"), call.text("Password"))


def register_task(call: Call) -> dict[str, Any]:
    """Register-BoxTask."""
    return call.box.windows.scheduler.register(_task_path(call), call.text("Xml"), call.text("Password"))


def unregister_task(call: Call) -> dict[str, Any]:
    """Unregister-BoxTask."""
    return call.box.windows.scheduler.delete(_task_path(call))


def remove_task_folders(call: Call) -> dict[str, Any]:
    """Remove-BoxTaskFolder."""
    removed = []
    for path in call.texts("Path"):
        if re.match(r"\\Microsoft(\\|$)", _checked(path), re.IGNORECASE):
            raise refused(f"'{path}' is no task folder of ours; nothing more was removed")
        try:
            call.box.windows.scheduler.delete_folder(path)
        except WindowsError as error:
            if error.hresult not in (0x80070002, 0x80070091):
                raise
            continue
        removed.append(path)
    return {"Removed": removed}


def task_events(call: Call) -> dict[str, Any]:
    """Get-BoxTaskEvent."""
    scheduler = call.box.windows.scheduler
    enabled = scheduler.log_enabled()
    tasks = []
    for path in call.texts("TaskPath"):
        events = scheduler.events(path, call.get("Id", []), call.get("MaxEvents", 50))
        tasks.append({"TaskPath": path, "Events": events, "Error": None})
    return {"LogEnabled": enabled, "Tasks": tasks}


def process_tokens(call: Call) -> list[dict[str, Any]]:
    """Get-BoxProcessToken."""
    return [*call.box.windows.process.tokens(call.get("ProcessId", []))]


def start_task(call: Call) -> dict[str, Any]:
    """Start-BoxTask."""
    return call.box.windows.scheduler.start(_required_task(call))


def stop_task(call: Call) -> dict[str, Any]:
    """Stop-BoxTask."""
    return call.box.windows.scheduler.stop(_required_task(call))


def enable_task(call: Call) -> dict[str, Any]:
    """Enable-BoxTask."""
    return call.box.windows.scheduler.set_enabled(_required_task(call), True)


def disable_task(call: Call) -> dict[str, Any]:
    """Disable-BoxTask."""
    return call.box.windows.scheduler.set_enabled(_required_task(call), False)


COMMANDS: dict[str, Command] = {
    "get-boxacl": get_acl,
    "set-boxacl": set_acl,
    "get-boxfirewall": firewall,
    "set-boxfirewallrule": set_rule,
    "disable-boxfirewallrule": disable_rule,
    "remove-boxfirewallrule": remove_rule,
    "get-boxtask": get_tasks,
    "test-boxtask": test_task,
    "register-boxtask": register_task,
    "unregister-boxtask": unregister_task,
    "remove-boxtaskfolder": remove_task_folders,
    "get-boxtaskevent": task_events,
    "get-boxprocesstoken": process_tokens,
    "start-boxtask": start_task,
    "stop-boxtask": stop_task,
    "enable-boxtask": enable_task,
    "disable-boxtask": disable_task,
}
