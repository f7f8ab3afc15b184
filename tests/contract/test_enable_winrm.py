"""bootstrap/enable-winrm.ps1 in PowerShell for Windows, on a machine of stand-ins (winrm_machine.ps1) with a real
registry: what it makes, what it leaves alone, and that -Undo takes away exactly that."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from powershell import EngineBox

pytestmark = pytest.mark.wine

SCRIPT = Path(__file__).resolve().parents[2] / "bootstrap" / "enable-winrm.ps1"
MACHINE = Path(__file__).with_name("winrm_machine.ps1").read_text("ascii")
OWN = "ninfer-fleet WinRM"
RULE = "Inbound Allow TCP 5986 100.64.0.0/10,fd7a:115c:a1e0::/48 Any"
FOREIGN = "$other = New-Certificate -FriendlyName 'somebody'; $global:Machine.Status = 'Running'\n"

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(wine_box: EngineBox) -> Run:
    """Run a text on a fresh machine; the states that it writes."""
    wine_box.host("C:\\enable-winrm.ps1").write_bytes(SCRIPT.read_bytes())

    def ran(text: str, policy: str = "$null") -> list[dict[str, Any]]:
        whole = f"{MACHINE}\nSet-Policy -Value {policy}\n{text}"
        reply = wine_box.reply("Invoke-BoxScript", Text=whole)
        assert reply.output("stderr") == b""
        return [json.loads(line) for line in reply.output("stdout").decode().splitlines()]

    return ran


def test_it_opens_the_box_and_a_second_run_changes_nothing(run: Run) -> None:
    first, second = run("Invoke-Bootstrap\nInvoke-Bootstrap")
    assert first["Service"] == "Automatic Running"
    assert first["Listeners"] == ["HTTPS * 5986 AB1"]
    assert first["Rules"] == {"winrm-https-tailnet": RULE}
    assert first["Policy"] == 1
    fingerprint = "certificate_sha256: " + hashlib.sha256(b"\x01").hexdigest()
    assert first["Told"][-1] == second["Told"][-1] == fingerprint
    assert second["Calls"] == ["Set-NetFirewallRule winrm-https-tailnet"]


def test_undo_leaves_the_box_as_it_was(run: Run) -> None:
    undo = "Invoke-Bootstrap -Undo\nStart-Service; Invoke-Bootstrap -Undo"
    before, _, _, after, again = run(f"Write-Machine\nInvoke-Bootstrap\nInvoke-Bootstrap\n{undo}")
    assert {**after, "Calls": [], "Told": []} == {**before, "Calls": [], "Told": []}
    assert "Remove-Item Cert:\\LocalMachine\\My\\AB1 -DeleteKey" in after["Calls"]
    assert (again["Calls"], again["Told"]) == (["Start-Service"], [])


def test_what_if_lists_and_changes_nothing(run: Run) -> None:
    before, enabling, _, undoing = run(
        "Write-Machine\nInvoke-Bootstrap -WhatIf\nInvoke-Bootstrap\nInvoke-Bootstrap -Undo -WhatIf"
    )
    assert enabling["Calls"] == undoing["Calls"] == []
    assert enabling["Recorded"] is before["Recorded"] is False
    assert len(enabling["Told"]) == 6
    assert len(undoing["Told"]) == 8
    assert all(line.startswith("would ") for line in enabling["Told"] + undoing["Told"])


@pytest.mark.parametrize(("policy", "after"), [("$null", None), ("0", 0), ("1", 1)])
def test_the_policy_is_put_back_as_it_was_found(run: Run, policy: str, after: int | None) -> None:
    enabled, undone = run("Invoke-Bootstrap\nInvoke-Bootstrap -Undo", policy)
    assert (enabled["Policy"], undone["Policy"]) == (1, after)
    assert any("LocalAccountTokenFilterPolicy" in line for line in enabled["Told"]) is (policy != "1")


def test_a_policy_that_is_not_on_record_stays(run: Run) -> None:
    # As after a run of the script before it kept a record.
    (undone,) = run(
        f"""$global:Machine.Status = 'Running'
New-Listener -Transport HTTPS -Address * -Port 5986 -Thumbprint (New-Certificate -FriendlyName '{OWN}').Thumbprint
Invoke-Bootstrap -Undo""",
        "1",
    )
    assert (undone["Listeners"], undone["My"], undone["Policy"]) == ([], [], 1)
    assert any(line.startswith("keep LocalAccountTokenFilterPolicy = 1") for line in undone["Told"])


def test_a_listener_of_somebody_else_is_kept_and_told(run: Run) -> None:
    text = "New-Listener -Transport HTTPS -Address * -Port 5986 -Thumbprint 'ab 1'\n"
    (refused,) = run(FOREIGN + text + "Invoke-Bootstrap")
    assert refused["Listeners"] == ["HTTPS * 5986 ab 1"]
    assert refused["Told"][-1].startswith("error: There is an HTTPS listener of WinRM already, on port 5986")
    assert "-Replace" in refused["Told"][-1]
    assert (refused["Service"], refused["Rules"], refused["Policy"]) == ("Manual Running", {}, None)
    assert refused["Recorded"] is False


def test_a_service_that_was_started_to_look_is_stopped_again(run: Run) -> None:
    text = "New-Listener -Transport HTTPS -Address * -Port 5986 -Thumbprint AB1; $global:Machine.Status = 'Stopped'\n"
    (refused,) = run(FOREIGN + text + "Invoke-Bootstrap")
    assert (refused["Service"], refused["Recorded"]) == ("Manual Stopped", False)


def test_replace_takes_the_place_of_a_listener_and_undo_brings_it_back(run: Run) -> None:
    text = """New-Listener -Transport HTTPS -Address * -Port 443 -Thumbprint AB1 -HostName box.example
New-Listener -Transport HTTP -Address * -Port 5985
New-Listener -Transport HTTPS -Address IP:10.0.0.1 -Port 5999 -Thumbprint AB1
"""
    replaced, undone = run(FOREIGN + text + "Invoke-Bootstrap -Replace\nInvoke-Bootstrap -Undo")
    others = ["HTTP * 5985 ", "HTTPS IP:10.0.0.1 5999 AB1"]
    assert replaced["Listeners"] == [*others, "HTTPS * 5986 AB2"]
    assert undone["Listeners"] == [*others, "HTTPS * 443 AB1"]
    assert "New-Item HTTPS * 443 AB1 box.example" in undone["Calls"]
    assert (undone["My"], undone["CA"], undone["Recorded"]) == (["AB1"], [], False)
    # The service is started for the listeners of others, too.
    assert undone["Service"] == "Automatic Running"


def test_the_newest_certificate_of_ours_that_can_be_used_answers(run: Run) -> None:
    text = f"""$null = New-Certificate -FriendlyName '{OWN}' -FromDays -20
$null = New-Certificate -FriendlyName '{OWN}' -FromDays -10
$null = New-Certificate -FriendlyName '{OWN}' -FromDays -5 -HasPrivateKey $false
$null = New-Certificate -FriendlyName '{OWN}' -FromDays -4 -ToDays 20
$null = New-Certificate -FriendlyName '{OWN}' -FromDays 2
$null = New-Certificate -FriendlyName 'somebody' -FromDays -1
$global:Machine.Status = 'Running'
New-Listener -Transport HTTPS -Address * -Port 5986 -Thumbprint AB4
Invoke-Bootstrap
Invoke-Bootstrap -Undo"""
    enabled, undone = run(text)
    assert enabled["Listeners"] == ["HTTPS * 5986 AB2"]
    assert undone["My"] == ["AB6"]


def test_a_listener_whose_certificate_was_deleted_by_hand_is_still_ours(run: Run) -> None:
    text = "Invoke-Bootstrap\n$global:Machine.My = @()\nInvoke-Bootstrap\nInvoke-Bootstrap -Undo"
    _, again, undone = run(text)
    assert (again["Listeners"], undone["Listeners"]) == (["HTTPS * 5986 AB2"], [])


def test_settings_that_were_unsafe_are_made_safe_and_put_back(run: Run) -> None:
    text = "$global:Machine.Settings['WSMan:\\localhost\\Service\\Auth\\Basic'] = 'true'\n"
    enabled, undone = run(text + "Invoke-Bootstrap\nInvoke-Bootstrap -Undo")
    assert set(enabled["Settings"].values()) == {"false"}
    assert undone["Settings"]["WSMan:\\localhost\\Service\\Auth\\Basic"] == "true"
