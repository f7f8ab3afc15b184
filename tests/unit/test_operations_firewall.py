from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import pytest
from windows_fleet import Fleet, WindowsBox

from winfleet.models.firewall_rule import Rule
from winfleet.operations import firewall

SERVE = Rule(
    name="ninfer-fleet-serve",
    display_name="NInfer serve",
    local_ports=(8080,),
    remote=("100.64.0.0/10", "fd7a:115c:a1e0::/48"),
    description="Tailscale only",
    group="NInfer",
)


@pytest.fixture
def fleet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Fleet:
    caplog.set_level(logging.INFO, logger="pyinfra")
    return Fleet(tmp_path, "gpu01")


def box(fleet: Fleet) -> WindowsBox:
    return fleet.boxes["gpu01"]


def write(fleet: Fleet, rule: Rule, name: str | None = None) -> None:
    """By hand, as somebody at the box would."""
    box(fleet).Set_BoxFirewallRule(**{**rule.parameters(), "Name": name or rule.name})


def test_rules_are_set_once(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    assert fleet.plan(firewall.rules, rules=[SERVE]).changed == {"gpu01"}
    assert "Will create firewall rule ninfer-fleet-serve" in caplog.text
    assert "+ remote: 100.64.0.0/10, fd7a:115c:a1e0::/48" in caplog.text
    outcome = fleet.apply(firewall.rules, rules=[SERVE])
    assert (outcome.changed, outcome.failed) == ({"gpu01"}, set())
    assert fleet.apply(firewall.rules, rules=[SERVE]).changed == set()
    assert box(fleet).changes() == ["Set-BoxFirewallRule"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("display_name", "other"),
        ("description", "other"),
        ("group", "other"),
        ("enabled", False),
        ("action", "block"),
        ("profiles", ("domain", "private")),
        ("protocol", "udp"),
        ("local_ports", ("8080-8090",)),
        ("remote_ports", (1024,)),
        ("local", ("100.77.1.2",)),
        ("remote", ("any",)),
        ("remote", ("100.64.0.0/10",)),
        ("program", r"C:\ninfer\ninfer-serve.exe"),
    ],
)
def test_each_declared_field_is_named_and_repaired(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, field: str, value: Any
) -> None:
    fleet.apply(firewall.rules, rules=[SERVE])
    write(fleet, dataclasses.replace(SERVE, **{field: value}))
    caplog.clear()
    assert fleet.plan(firewall.rules, rules=[SERVE]).changed == {"gpu01"}
    shown = [record.message for record in caplog.records]
    assert any(line.strip().endswith("Will modify firewall rule ninfer-fleet-serve") for line in shown)
    fields = {line.split("- ")[1].split(":")[0] for line in shown if "  - " in line}
    assert fields == {field}
    fleet.apply(firewall.rules, rules=[SERVE])
    assert fleet.apply(firewall.rules, rules=[SERVE]).changed == set()


@pytest.mark.parametrize(
    "remote",
    [
        ("100.64.0.0/255.192.0.0", "fd7a:115c:a1e0::/48"),
        ("fd7a:115c:a1e0::/48", "100.64.0.0-100.127.255.255"),
        ("100.64.0.0/10", "100.77.0.1", "fd7a:115c:a1e0::/48"),
        ("100.64.0.0/11", "100.96.0.0/11", "FD7A:115C:A1E0:0:0:0:0:0/48"),
    ],
)
def test_spellings_of_one_set_of_networks_are_equal(fleet: Fleet, remote: tuple[str, ...]) -> None:
    fleet.apply(firewall.rules, rules=[SERVE])
    assert fleet.plan(firewall.rules, rules=[dataclasses.replace(SERVE, remote=remote)]).changed == set()


def test_foreign_rules_with_our_display_name_are_left_alone(fleet: Fleet) -> None:
    for name in ("{1}", "{2}", "{3}"):
        write(fleet, SERVE, name)
    fleet.apply(firewall.rules, rules=[SERVE], purge=True)
    names = {rule["Name"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    assert {"{1}", "{2}", "{3}", "ninfer-fleet-serve"} <= names
    assert fleet.apply(firewall.rules, rules=[SERVE], purge=True).changed == set()


def test_purge_names_and_removes_only_ours(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    before = {rule["Name"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    fleet.apply(firewall.rules, rules=[SERVE, dataclasses.replace(SERVE, name="ninfer-fleet-old")])
    assert fleet.plan(firewall.rules, rules=[SERVE]).changed == set()
    fleet.plan(firewall.rules, rules=[SERVE], purge=True)
    assert "Will remove firewall rule ninfer-fleet-old" in caplog.text
    fleet.apply(firewall.rules, rules=[SERVE], purge=True)
    after = {rule["Name"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    assert after == before | {"ninfer-fleet-serve"}
    assert fleet.apply(firewall.absent, names=["ninfer-fleet-serve"]).changed == {"gpu01"}
    assert fleet.apply(firewall.absent, names=["ninfer-fleet-serve"]).changed == set()
    assert fleet.apply(firewall.absent, names=["CoreNet-In"]).failed == {"gpu01"}


def test_a_name_is_taken_literally(fleet: Fleet) -> None:
    odd = dataclasses.replace(SERVE, name="ninfer-fleet-a[1]*")
    fleet.apply(firewall.rules, rules=[SERVE, odd])
    fleet.apply(firewall.absent, names=["ninfer-fleet-a[1]*"])
    names = {rule["Name"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    assert "ninfer-fleet-serve" in names
    assert "ninfer-fleet-a[1]*" not in names


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (dataclasses.replace(SERVE, name="serve"), "must begin with"),
        (dataclasses.replace(SERVE, remote=("any",)), "acknowledge_open"),
        (dataclasses.replace(SERVE, local_ports=("any",)), "acknowledge_open"),
        (dataclasses.replace(SERVE, protocol="any"), "acknowledge_open"),
        (dataclasses.replace(SERVE, remote=()), "say 'any'"),
        (dataclasses.replace(SERVE, remote=("100.64.0.0/33",)), "no address"),
        (dataclasses.replace(SERVE, local_ports=("80a",)), "no port"),
        (dataclasses.replace(SERVE, profiles=("home",)), "unknown profile"),
        (dataclasses.replace(SERVE, display_name="a|b"), "cannot hold"),
    ],
)
def test_rules_that_open_too_much_or_mean_nothing_are_refused(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, rule: Rule, reason: str
) -> None:
    assert fleet.plan(firewall.rules, rules=[rule]).failed == {"gpu01"}
    assert reason in caplog.text
    assert fleet.apply(firewall.rules, rules=[rule]).failed == {"gpu01"}
    assert box(fleet).changes() == []


def test_an_open_rule_is_possible_when_acknowledged(fleet: Fleet) -> None:
    rule = dataclasses.replace(SERVE, remote=("any",), acknowledge_open=True)
    assert fleet.apply(firewall.rules, rules=[rule]).failed == set()


def test_a_write_that_fails_leaves_the_rule_and_fails_the_box(fleet: Fleet) -> None:
    fleet.apply(firewall.rules, rules=[SERVE])
    before = box(fleet).Get_BoxFirewall()
    box(fleet).faults["Set-BoxFirewallRule"] = {"type": "X", "message": "the service refused"}
    changed = dataclasses.replace(SERVE, local_ports=(9090,))
    assert fleet.apply(firewall.rules, rules=[changed]).failed == {"gpu01"}
    assert box(fleet).Get_BoxFirewall() == before


def test_a_write_that_windows_does_not_keep_is_a_failure(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    box(fleet).forget_writes = True
    assert fleet.apply(firewall.rules, rules=[SERVE]).failed == {"gpu01"}
    assert "Windows did not keep the firewall rule" in caplog.text


def test_rules_of_others_can_be_switched_off(fleet: Fleet) -> None:
    write(fleet, SERVE, "TCP Query User{A}C:\\x.exe")
    assert fleet.apply(firewall.disabled, names=["TCP Query User{A}C:\\x.exe"]).changed == {"gpu01"}
    assert fleet.apply(firewall.disabled, names=["TCP Query User{A}C:\\x.exe", "gone"]).changed == set()


def test_a_block_rule_of_others_is_named(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    blocked = dataclasses.replace(SERVE, action="block", remote=("any",), local_ports=("any",))
    write(fleet, blocked, "TCP Query User{A}C:\\x.exe")
    fleet.apply(firewall.rules, rules=[SERVE])
    assert "is shadowed by the Block rule TCP Query User{A}C:\\x.exe" in caplog.text
    fleet.apply(firewall.disabled, names=["TCP Query User{A}C:\\x.exe"])
    caplog.clear()
    assert fleet.apply(firewall.rules, rules=[SERVE]).changed == set()
    assert "shadowed" not in caplog.text
