from __future__ import annotations

import dataclasses
import itertools
import logging
from pathlib import Path
from typing import Any

import pytest
from windows_fleet import Fleet, WindowsBox

from ninfer_fleet.owner import OWNER
from winfleet import firewall
from winfleet.firewall.model import SPARE_SUFFIX
from winfleet.firewall.rule import Rule

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
    assert fleet.plan(firewall.rules, owner=OWNER, rules=[SERVE]).changed == {"gpu01"}
    assert "Will create firewall rule ninfer-fleet-serve" in caplog.text
    assert "+ remote: 100.64.0.0/10, fd7a:115c:a1e0::/48" in caplog.text
    outcome = fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    assert (outcome.changed, outcome.failed) == ({"gpu01"}, set())
    assert fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE]).changed == set()
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
def test_W07_each_declared_field_is_named_and_repaired(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, field: str, value: Any
) -> None:
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    write(fleet, dataclasses.replace(SERVE, **{field: value}))
    caplog.clear()
    assert fleet.plan(firewall.rules, owner=OWNER, rules=[SERVE]).changed == {"gpu01"}
    shown = [record.message for record in caplog.records]
    assert any(line.strip().endswith("Will modify firewall rule ninfer-fleet-serve") for line in shown)
    fields = {line.split("- ")[1].split(":")[0] for line in shown if "  - " in line}
    assert fields == {field}
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    assert fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE]).changed == set()


@pytest.mark.parametrize(
    "remote",
    [
        ("100.64.0.0/255.192.0.0", "fd7a:115c:a1e0::/48"),
        ("fd7a:115c:a1e0::/48", "100.64.0.0-100.127.255.255"),
        ("100.64.0.0/10", "100.77.0.1", "fd7a:115c:a1e0::/48"),
        ("100.64.0.0/11", "100.96.0.0/11", "FD7A:115C:A1E0:0:0:0:0:0/48"),
    ],
)
def test_W11_spellings_of_one_set_of_networks_are_equal(fleet: Fleet, remote: tuple[str, ...]) -> None:
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    assert (
        fleet.plan(firewall.rules, owner=OWNER, rules=[dataclasses.replace(SERVE, remote=remote)]).changed
        == set()
    )


def test_W29_foreign_rules_with_our_display_name_are_reported_and_left_alone(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("{1}", "{2}", "{3}"):
        write(fleet, SERVE, name)
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE], purge=True)
    for name in ("{1}", "{2}", "{3}"):
        assert f"firewall rule {name} is not ours, but has the display name of {SERVE.name}" in caplog.text
    names = {rule["Name"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    assert {"{1}", "{2}", "{3}", "ninfer-fleet-serve"} <= names
    assert fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE], purge=True).changed == set()


def test_W31_purge_names_and_removes_only_ours(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    before = {rule["Name"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    fleet.apply(
        firewall.rules, owner=OWNER, rules=[SERVE, dataclasses.replace(SERVE, name="ninfer-fleet-old")]
    )
    assert fleet.plan(firewall.rules, owner=OWNER, rules=[SERVE]).changed == set()
    fleet.plan(firewall.rules, owner=OWNER, rules=[SERVE], purge=True)
    assert "Will remove firewall rule ninfer-fleet-old" in caplog.text
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE], purge=True)
    after = {rule["Name"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    assert after == before | {"ninfer-fleet-serve"}
    assert fleet.apply(firewall.absent, owner=OWNER, names=["ninfer-fleet-serve"]).changed == {"gpu01"}
    assert fleet.apply(firewall.absent, owner=OWNER, names=["ninfer-fleet-serve"]).changed == set()
    assert fleet.apply(firewall.absent, owner=OWNER, names=["CoreNet-In"]).failed == {"gpu01"}


SPARE = "ninfer-fleet-serve.replacement"


@pytest.mark.parametrize("left", ["both", "the spare alone"])
def test_a_second_rule_that_an_interrupted_change_left_is_named_and_removed(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, left: str
) -> None:
    """The swap was ended after the second rule was made, or after the first one was removed."""
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    write(fleet, dataclasses.replace(SERVE, remote=("any",)), SPARE)
    if left == "the spare alone":
        box(fleet).Remove_BoxFirewallRule([SERVE.name])
    caplog.clear()
    assert fleet.plan(firewall.rules, owner=OWNER, rules=[SERVE]).changed == {"gpu01"}
    assert f"Will remove firewall rule {SPARE}" in caplog.text
    # While planning it counts as gone, as it will be.
    assert fleet.plan(firewall.exposed_only_to, **exposed(rules=[SERVE])).failed == set()
    assert fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE]).failed == set()
    names = {rule["Name"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    assert SERVE.name in names
    assert SPARE not in names
    assert fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE]).changed == set()


def test_what_removes_a_rule_removes_its_second_one(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    write(fleet, SERVE, SPARE)
    assert fleet.plan(firewall.absent, owner=OWNER, names=[SERVE.name]).changed == {"gpu01"}
    assert f"Will remove firewall rule {SPARE}" in caplog.text
    fleet.apply(firewall.absent, owner=OWNER, names=[SERVE.name])
    assert SPARE not in {rule["Name"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    assert fleet.apply(firewall.absent, owner=OWNER, names=[SERVE.name]).changed == set()


def test_the_suffix_is_the_one_of_the_box_command() -> None:
    script = Path(firewall.__file__).with_name("firewall.ps1")
    assert f'"$Name{SPARE_SUFFIX}"' in script.read_text()


def test_W38_a_name_is_taken_literally(fleet: Fleet) -> None:
    odd = dataclasses.replace(SERVE, name="ninfer-fleet-a[1]*")
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE, odd])
    fleet.apply(firewall.absent, owner=OWNER, names=["ninfer-fleet-a[1]*"])
    names = {rule["Name"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    assert "ninfer-fleet-serve" in names
    assert "ninfer-fleet-a[1]*" not in names


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (dataclasses.replace(SERVE, name="serve"), "must begin with"),
        (dataclasses.replace(SERVE, name=SPARE), "half-made"),
        (dataclasses.replace(SERVE, remote=("any",)), "acknowledge_open"),
        (dataclasses.replace(SERVE, local_ports=("any",)), "acknowledge_open"),
        (dataclasses.replace(SERVE, protocol="any"), "acknowledge_open"),
        (dataclasses.replace(SERVE, remote=()), "say 'any'"),
        (
            dataclasses.replace(SERVE, remote=("0.0.0.0/0",), acknowledge_open=True),
            "remote is everything; say 'any'",
        ),
        (dataclasses.replace(SERVE, remote=("::/1", "8000::/1")), "remote is everything; say 'any'"),
        (dataclasses.replace(SERVE, remote=("Internet",)), "remote is everything; say 'any'"),
        (dataclasses.replace(SERVE, local_ports=("1-65535",)), "local_ports is everything; say 'any'"),
        (dataclasses.replace(SERVE, remote=("100.64.0.0/33",)), "no address"),
        (dataclasses.replace(SERVE, local_ports=("80a",)), "no port"),
        (dataclasses.replace(SERVE, profiles=("home",)), "unknown profile"),
        (dataclasses.replace(SERVE, display_name="a|b"), "cannot hold"),
    ],
)
def test_rules_that_open_too_much_or_mean_nothing_are_refused(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, rule: Rule, reason: str
) -> None:
    assert fleet.plan(firewall.rules, owner=OWNER, rules=[rule]).failed == {"gpu01"}
    assert reason in caplog.text
    assert fleet.apply(firewall.rules, owner=OWNER, rules=[rule]).failed == {"gpu01"}
    assert box(fleet).changes() == []


def test_an_open_rule_is_possible_when_acknowledged(fleet: Fleet) -> None:
    rule = dataclasses.replace(SERVE, remote=("any",), acknowledge_open=True)
    assert fleet.apply(firewall.rules, owner=OWNER, rules=[rule]).failed == set()


def test_W32_a_write_that_fails_leaves_the_rule_and_fails_the_box(fleet: Fleet) -> None:
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    before = box(fleet).Get_BoxFirewall()
    box(fleet).faults["Set-BoxFirewallRule"] = {"type": "X", "message": "the service refused"}
    changed = dataclasses.replace(SERVE, local_ports=(9090,))
    assert fleet.apply(firewall.rules, owner=OWNER, rules=[changed]).failed == {"gpu01"}
    assert box(fleet).Get_BoxFirewall() == before


def test_a_write_that_windows_does_not_keep_is_a_failure(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    box(fleet).forget_writes = True
    assert fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE]).failed == {"gpu01"}
    assert "Windows did not keep the firewall rule" in caplog.text


def test_rules_of_others_can_be_switched_off(fleet: Fleet) -> None:
    write(fleet, SERVE, "TCP Query User{A}C:\\x.exe")
    assert fleet.apply(firewall.disabled, names=["TCP Query User{A}C:\\x.exe"]).changed == {"gpu01"}
    assert fleet.apply(firewall.disabled, names=["TCP Query User{A}C:\\x.exe", "gone"]).changed == set()


def test_W34_a_block_rule_of_others_is_named(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    blocked = dataclasses.replace(SERVE, action="block", remote=("any",), local_ports=("any",))
    write(fleet, blocked, "TCP Query User{A}C:\\x.exe")
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    assert "is shadowed by the Block rule TCP Query User{A}C:\\x.exe" in caplog.text
    fleet.apply(firewall.disabled, names=["TCP Query User{A}C:\\x.exe"])
    caplog.clear()
    assert fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE]).changed == set()
    assert "shadowed" not in caplog.text


def test_W13_what_only_steers_is_no_state(fleet: Fleet) -> None:
    for number, (purge, acknowledge) in enumerate(itertools.product((False, True), repeat=2)):
        for protocol, ports in (("tcp", ("RPC", 8080)), ("udp", ("80-90",)), ("any", ("any",))):
            rule = dataclasses.replace(
                SERVE,
                name=f"ninfer-fleet-{number}",
                protocol=protocol,
                local_ports=ports,
                acknowledge_open=acknowledge or protocol == "any",
                interfaces=("Tailscale",),
                remote=("LocalSubnet", "Intranet", "10.0.0.0/8"),
            )
            assert fleet.apply(firewall.rules, owner=OWNER, rules=[rule], purge=purge).failed == set()
            assert fleet.plan(firewall.rules, owner=OWNER, rules=[rule], purge=purge).changed == set()


def test_W37_a_policy_that_overrides_the_box_is_told_and_not_fought(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    policy(fleet, "Private", AllowLocalPolicyMerge=0)
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    caplog.clear()
    outcome = fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    assert (outcome.changed, outcome.failed) == (set(), set())
    assert "has no effect on the profile private: Group Policy lets no local rule count there" in caplog.text


def test_W38_rules_of_others_on_our_port_are_listed(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    write(fleet, dataclasses.replace(SERVE, display_name="theirs", remote=("10.0.0.0/8",)), "{9}")
    fleet.plan(firewall.rules, owner=OWNER, rules=[SERVE])
    assert (
        "firewall rule {9} (theirs, Local) is not ours and opens ports of ninfer-fleet-serve" in caplog.text
    )
    assert "CoreNet" not in caplog.text


# Exposure

EXE = "C:\\ninfer\\current\\ninfer-serve.exe"
PROMPT = "TCP Query User{7A}" + EXE.lower()


def policy(fleet: Fleet, profile: str, **values: int) -> None:
    with box(fleet).sim.store.change() as state:
        state["firewall"]["policy_profiles"] = {profile: values}


def prompt(fleet: Fleet, action: str, path: str = EXE) -> None:
    """As Windows writes it when a program listens for the first time."""
    box(fleet).sim.windows.firewall.write(
        "TCP Query User{7A}" + path.lower(),
        f"v2.32|Action={action}|Active=TRUE|Dir=In|Protocol=6|Profile=Private|Profile=Public"
        f"|App={path.lower()}|Name=ninfer-serve.exe|Desc=ninfer-serve.exe|Defer=User|",
    )


def exposed(**more: Any) -> dict[str, Any]:
    return {"port": 8080, "networks": SERVE.remote, "program": EXE, **more}


def test_a_port_as_declared_is_no_change_and_one_read(fleet: Fleet) -> None:
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    box(fleet).calls.clear()
    outcome = fleet.apply(firewall.exposed_only_to, **exposed())
    assert (outcome.changed, outcome.failed) == (set(), set())
    assert [call.command for call in box(fleet).calls] == ["Get-BoxFirewall"]


def test_while_planning_the_rules_of_the_deploy_count(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    assert fleet.plan(firewall.exposed_only_to, **exposed(rules=[SERVE])).failed == set()
    # When it comes to it, the rule must be there.
    box(fleet).sim.windows.firewall.remove(["Tailscale-In"])
    assert fleet.apply(firewall.exposed_only_to, **exposed(rules=[SERVE])).failed == {"gpu01"}
    assert "closed to 100.64.0.0/10 at 100.77.174.21 (Tailscale, private): no rule lets it in" in caplog.text


def test_an_open_port_fails_that_box_alone_with_rule_and_remedy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fleet = Fleet(tmp_path, "gpu01", "gpu02")
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    prompt(fleet, "Allow")
    for outcome in (
        fleet.plan(firewall.exposed_only_to, **exposed()),
        fleet.apply(firewall.exposed_only_to, **exposed()),
    ):
        assert outcome.failed == {"gpu01"}
    assert (
        "TCP port 8080 must be open to 100.64.0.0/10, fd7a:115c:a1e0::/48 and to nobody else" in caplog.text
    )
    assert "open to others at 192.168.10.20 (Ethernet, private): " in caplog.text
    assert (
        f"rule '{PROMPT}' (ninfer-serve.exe, for {EXE.lower()}). Remedy: a first-listen prompt" in caplog.text
    )
    assert box(fleet).changes() == ["Set-BoxFirewallRule"]


def test_W34_a_shadowed_port_fails_the_box(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    prompt(fleet, "Block")
    assert fleet.apply(firewall.exposed_only_to, **exposed()).failed == {"gpu01"}
    assert f"shadowed by the Block rule '{PROMPT}'" in caplog.text


def test_W35_the_category_of_the_adapter_does_not_matter_to_our_rule(fleet: Fleet) -> None:
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    for category in ("Public", "Private", "DomainAuthenticated"):
        box(fleet).sim.windows.network.set_category("Tailscale", category)
        assert fleet.apply(firewall.exposed_only_to, **exposed()).failed == set(), category


def test_W37_a_firewall_that_a_policy_switched_off_fails_the_box_and_says_whose_it_is(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    policy(fleet, "Private", EnableFirewall=0)
    outcome = fleet.apply(firewall.exposed_only_to, **exposed())
    assert (outcome.changed, outcome.failed) == (set(), {"gpu01"})
    assert "managed by Group Policy: have EnableFirewall changed there" in caplog.text


@pytest.mark.parametrize("action", ["Allow", "Block"])
def test_rules_of_a_prompt_are_switched_off_when_told_to(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, action: str
) -> None:
    fleet.apply(firewall.rules, owner=OWNER, rules=[SERVE])
    prompt(fleet, action)
    prompt(fleet, "Allow", "C:\\games\\ninfer-serve.exe")
    told = exposed(disable_query_user=True)
    assert fleet.plan(firewall.exposed_only_to, **told).changed == {"gpu01"}
    assert f"Will disable firewall rule {PROMPT}" in caplog.text
    assert fleet.apply(firewall.exposed_only_to, **told).changed == {"gpu01"}
    held = {rule["Name"]: rule["Data"] for rule in box(fleet).Get_BoxFirewall()["Stores"][0]["Rules"]}
    assert "Active=FALSE" in held[PROMPT]
    assert "Active=TRUE" in held["TCP Query User{7A}c:\\games\\ninfer-serve.exe"]
    assert fleet.apply(firewall.exposed_only_to, **told).changed == set()


def test_nothing_is_switched_off_when_that_is_not_enough(fleet: Fleet) -> None:
    prompt(fleet, "Allow")
    policy(fleet, "Private", DefaultInboundAction=0)
    assert fleet.apply(firewall.exposed_only_to, **exposed(disable_query_user=True)).failed == {"gpu01"}
    assert box(fleet).changes() == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"port": 0}, "0 is no TCP port"),
        ({"networks": ()}, "name those that must get in"),
        ({"networks": ("any",)}, "name those that must get in"),
        ({"networks": ("100.64.0.0/33",)}, "no address, network or range"),
        ({"program": "ninfer-serve.exe"}, "no full path"),
        ({"program": None, "disable_query_user": True}, "needs program"),
    ],
)
def test_a_senseless_assertion_is_refused(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, arguments: dict[str, Any], reason: str
) -> None:
    assert fleet.plan(firewall.exposed_only_to, **exposed(**arguments)).failed == {"gpu01"}
    assert reason in caplog.text
    assert box(fleet).calls == []
