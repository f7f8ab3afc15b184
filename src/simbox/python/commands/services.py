"""Disks, access lists, firewall and tasks: the box's Windows services answer these as they are."""

from __future__ import annotations

from typing import Any

from simbox.python.answers import Call, Command, refused
from simbox.windows.errors import WindowsError

_WILDCARDS = set("*?[]")


def disk(call: Call) -> list[dict[str, Any]]:
    """Get-BoxDisk."""
    return [call.box.windows.disk.of_path(path) for path in call.texts("Path")]


def get_acl(call: Call) -> list[dict[str, Any]]:
    """Get-BoxAcl."""
    return call.box.windows.acl.get(call.texts("Path"))


def set_acl(call: Call) -> dict[str, Any]:
    """Set-BoxAcl."""
    return call.box.windows.acl.set(call.text("Path"), call.text("Sddl"))


def firewall(call: Call) -> dict[str, Any]:
    """Get-BoxFirewall."""
    return call.box.windows.firewall.snapshot()


def _exact(names: list[str]) -> list[str]:
    for name in names:
        if not name or set(name) & _WILDCARDS:
            raise refused(
                f"the firewall rule name '{name}' is empty or has wildcards; give the exact name of one rule"
            )
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
        interface_alias=call.texts("InterfaceAlias") or ["Any"],
    )


def disable_rule(call: Call) -> dict[str, Any]:
    """Disable-BoxFirewallRule."""
    return {"Changed": call.box.windows.firewall.set_enabled(_exact(call.texts("Name")), False)}


def remove_rule(call: Call) -> dict[str, Any]:
    """Remove-BoxFirewallRule."""
    return {"Changed": call.box.windows.firewall.remove(_exact(call.texts("Name")))}


def _task_path(call: Call) -> str:
    path = call.text("TaskPath")
    if not path.startswith("\\") or path.endswith("\\") or "\\\\" in path:
        raise WindowsError(
            "System.ArgumentException",
            f"'{path}' is no full task path such as \\Folder\\Name",
            0x80070057,
            "OperationStopped",
            path,
        )
    return path


def get_tasks(call: Call) -> list[dict[str, Any]]:
    """Get-BoxTask."""
    return [call.box.windows.scheduler.get(path) for path in call.texts("TaskPath")]


def test_task(call: Call) -> dict[str, Any]:
    """Test-BoxTask."""
    return call.box.windows.scheduler.validate(_task_path(call), call.text("Xml"))


def register_task(call: Call) -> dict[str, Any]:
    """Register-BoxTask."""
    return call.box.windows.scheduler.register(_task_path(call), call.text("Xml"))


def unregister_task(call: Call) -> dict[str, Any]:
    """Unregister-BoxTask."""
    return call.box.windows.scheduler.delete(_task_path(call))


def start_task(call: Call) -> dict[str, Any]:
    """Start-BoxTask."""
    return call.box.windows.scheduler.start(_task_path(call))


def stop_task(call: Call) -> dict[str, Any]:
    """Stop-BoxTask."""
    return call.box.windows.scheduler.stop(_task_path(call))


def enable_task(call: Call) -> dict[str, Any]:
    """Enable-BoxTask."""
    return call.box.windows.scheduler.set_enabled(_task_path(call), True)


def disable_task(call: Call) -> dict[str, Any]:
    """Disable-BoxTask."""
    return call.box.windows.scheduler.set_enabled(_task_path(call), False)


COMMANDS: dict[str, Command] = {
    "get-boxdisk": disk,
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
    "start-boxtask": start_task,
    "stop-boxtask": stop_task,
    "enable-boxtask": enable_task,
    "disable-boxtask": disable_task,
}
