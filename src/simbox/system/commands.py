"""Session, operating system, accounts."""

from __future__ import annotations

from typing import Any

from simbox.engines.python.answers import Call, Command

PS_VERSION = "5.1.22621.4391"


def session(call: Call) -> dict[str, Any]:
    """Get-BoxSession."""
    facts = call.box.windows.system.session()
    return {
        "ComputerName": facts["ComputerName"],
        "PSVersion": PS_VERSION,
        "LanguageMode": facts["LanguageMode"],
        "OemCodePage": facts["OemCodePage"],
        "AnsiCodePage": facts["AnsiCodePage"],
        "Elevated": facts["Elevated"],
        "UserName": facts["UserName"],
        "UserSid": facts["UserSid"],
        "ProcessId": call.process_id,
        "BootTimeUtc": facts["BootTimeUtc"],
        "Is64BitProcess": facts["Is64BitProcess"],
    }


def system(call: Call) -> dict[str, Any]:
    """Get-BoxSystem."""
    return call.box.windows.system.facts()


def accounts(call: Call) -> list[dict[str, Any]]:
    """Get-BoxAccount: a name gives its SID, a SID gives its name."""
    service = call.box.windows.account
    answers = []
    for name in call.texts("Name"):
        answer = service.resolve([name])[0]
        if answer["Sid"] is not None and name.upper().startswith("S-1-"):
            known = service.name_of(name)
            if known == name:
                answer["Error"] = "Some or all identity references could not be translated."
            else:
                answer["Name"] = known
        answers.append(answer)
    return answers


COMMANDS: dict[str, Command] = {
    "get-boxsession": session,
    "get-boxsystem": system,
    "get-boxaccount": accounts,
}
