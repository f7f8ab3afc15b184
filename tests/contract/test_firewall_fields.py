"""Each field of a rule that somebody changed on a box is named, repaired, and then as declared, on every
engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from powershell import EngineBox

from winfleet.firewall.exposure import exposure
from winfleet.firewall.exposure_check import faults
from winfleet.firewall.model import FirewallState
from winfleet.firewall.rule import FIELDS, Rule, rule_differences

RULE = Rule(
    name="ninfer-fleet-fields",
    display_name="NInfer fields",
    local_ports=(8080,),
    remote=("100.64.0.0/10", "fd7a:115c:a1e0::/48"),
    description="a test",
    group="NInfer",
    profiles=("domain", "private", "public"),
    program=r"C:\ninfer\ninfer-serve.exe",
)
# The names of declared fields are those of the model, but for what says how to take the others.
DECLARED: list[tuple[str, Any]] = [
    ("display_name", "other"),
    ("description", "other"),
    ("group", "other"),
    ("enabled", False),
    ("action", "block"),
    ("profiles", ("public",)),
    ("protocol", "udp"),
    ("local_ports", ("8000-8100",)),
    ("local_ports", ("RPC",)),
    ("remote_ports", (1024,)),
    ("local", ("100.77.1.2",)),
    ("remote", ("any",)),
    ("remote", ("100.64.0.0/10",)),
    ("remote", ("100.64.0.0/10", "fd7a:115c:a1e0::/48", "Internet")),
    ("program", r"C:\other\ninfer-serve.exe"),
    ("program", None),
    ("interfaces", ("Ethernet",)),
]
# What only the registry string can say, and the fields that it changes.
BY_HAND = [
    ("Edge=TRUE", "edge"),
    ("Svc=Dnscache", "service"),
    ("IFType=Wireless", "interface_types"),
    ("AppPkgId=S-1-15-2-1-2-3-4-5-6-7", "package"),
    ("Security=Authenticate", "conditions"),
    ("LUAuth=O:LSD:(A;;CC;;;BU)", "conditions"),
    ("FromALaterWindows=1", "conditions"),
]


@pytest.fixture
def rules(box: EngineBox) -> Iterator[EngineBox]:
    box.call("Set-BoxFirewallRule", **RULE.parameters())
    yield box
    box.call("Remove-BoxFirewallRule", Name=[RULE.name])


def read(box: EngineBox) -> FirewallState:
    return FirewallState.parse(box.call("Get-BoxFirewall"))


def differing(box: EngineBox) -> list[str]:
    found = read(box)
    return [one.field for one in rule_differences(found.local_rule(RULE.name), RULE, found.connections)]


def test_every_declared_field_has_a_case() -> None:
    declared = {field.name for field in dataclasses.fields(Rule)} - {"name", "acknowledge_open"}
    assert {field for field, _ in DECLARED} == declared
    assert {name for name, _ in FIELDS} == declared | {"direction"} | {field for _, field in BY_HAND}


@pytest.mark.parametrize(("field", "value"), DECLARED, ids=[f"{name}-{value}" for name, value in DECLARED])
def test_W07_a_changed_field_is_named_and_repaired(rules: EngineBox, field: str, value: Any) -> None:
    assert differing(rules) == []
    rules.call("Set-BoxFirewallRule", **dataclasses.replace(RULE, **{field: value}).parameters())
    assert differing(rules) == [field]
    rules.call("Set-BoxFirewallRule", **RULE.parameters())
    assert differing(rules) == []


@pytest.mark.parametrize(("part", "field"), BY_HAND, ids=[part for part, _ in BY_HAND])
def test_what_was_added_by_hand_is_named_and_repaired(rules: EngineBox, part: str, field: str) -> None:
    stored = read(rules).local_rule(RULE.name)
    assert stored is not None
    rules.box.windows.firewall.write(RULE.name, f"{stored.data}{part}|")
    # Any other write makes the service of a wine box put its registry in order.
    rules.call("Set-BoxFirewallRule", **dataclasses.replace(RULE, name="ninfer-fleet-other").parameters())
    rules.call("Remove-BoxFirewallRule", Name=["ninfer-fleet-other"])
    assert differing(rules) == [field]
    rules.call("Set-BoxFirewallRule", **RULE.parameters())
    assert differing(rules) == []
    assert read(rules).local_rule(f"{RULE.name}.replacement") is None


def test_W11_spellings_of_one_set_read_back_equal(rules: EngineBox) -> None:
    for remote in (
        ("100.64.0.0/255.192.0.0", "fd7a:115c:a1e0::/48"),
        ("FD7A:115C:A1E0::/48", "100.64.0.0-100.127.255.255"),
        ("100.64.0.0/11", "100.96.0.0/11", "100.77.1.2", "fd7a:115c:a1e0::/48"),
    ):
        rules.call("Set-BoxFirewallRule", **dataclasses.replace(RULE, remote=remote).parameters())
        assert differing(rules) == []


def test_W34_a_cancelled_prompt_is_named_as_what_shadows_us(rules: EngineBox) -> None:
    assert RULE.program is not None
    name = f"TCP Query User{{7A}}{RULE.program.lower()}"
    blocked = dataclasses.replace(
        RULE, name=name, action="block", remote=("any",), local_ports=("any",), profiles=("private", "public")
    )
    rules.call("Set-BoxFirewallRule", **blocked.parameters())
    try:
        found = exposure(read(rules), 8080, RULE.program)
        assert any(f"shadowed by the Block rule '{name}'" in fault for fault in faults(found, RULE.remote))
        rules.call("Disable-BoxFirewallRule", Name=[name])
        assert faults(exposure(read(rules), 8080, RULE.program), RULE.remote) == []
    finally:
        rules.call("Remove-BoxFirewallRule", Name=[name])


def test_policies_proxies_and_products_are_read(rules: EngineBox) -> None:
    with rules.box.store.change() as state:
        before = dict(state["firewall"])
        state["firewall"] |= {
            "policy_profiles": {"Private": {"AllowLocalPolicyMerge": 0}},
            "mdm_profiles": {"Public": {"EnableFirewall": 0}},
            "port_proxies": [{"Kind": "v4tov4", "Listen": "0.0.0.0/9000", "Connect": "127.0.0.1/8080"}],
            "products": [{"Name": "Other Wall", "State": 0x61000}],
        }
    try:
        rules.call("Set-BoxFirewallRule", **RULE.parameters())
        found = read(rules)
        values = {(one.store, one.name): one.values for one in found.profiles}
        assert values["GroupPolicy", "private"] == {"AllowLocalPolicyMerge": 0}
        assert values["Mdm", "public"] == {"EnableFirewall": 0}
        assert [(one.kind, one.listen, one.connect_port) for one in found.proxies] == [
            ("v4tov4", "0.0.0.0/9000", 8080)
        ]
        assert found.products is not None
        assert [(one.name, one.on) for one in found.products] == [("Other Wall", True)]
    finally:
        with rules.box.store.change() as state:
            state["firewall"] = before | {"rules": state["firewall"]["rules"]}
        rules.call("Set-BoxFirewallRule", **RULE.parameters())
