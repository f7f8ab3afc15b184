"""Firewall rules: made, changed in place, read from the registry, switched off, removed; no wildcards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from powershell import BoxFault, EngineBox

NAME = "contract-rule"
RULE: dict[str, Any] = {
    "Name": NAME,
    "DisplayName": "Contract rule",
    "Description": "made by a test",
    "Group": "contract",
    "Enabled": True,
    "Direction": "Inbound",
    "Action": "Allow",
    "Profile": ["Any"],
    "Protocol": "TCP",
    "LocalPort": ["8080"],
    "LocalAddress": ["Any"],
    "RemoteAddress": ["100.64.0.0/10", "fd7a:115c:a1e0::/48"],
}


@pytest.fixture
def rules(box: EngineBox) -> Iterator[EngineBox]:
    yield box
    box.call("Remove-BoxFirewallRule", Name=[NAME])


def stored(box: EngineBox, name: str = NAME) -> str | None:
    """The registry string of a local rule."""
    snapshot = box.call("Get-BoxFirewall")
    (local,) = [store for store in snapshot["Stores"] if store["Store"] == "Local"]
    found = [rule["Data"] for rule in local["Rules"] if rule["Name"] == name]
    return found[0] if found else None


def fields(data: str | None) -> set[str]:
    return set((data or "").strip("|").split("|"))


def test_a_rule_is_created_as_the_service_writes_it(rules: EngineBox) -> None:
    answer = rules.call("Set-BoxFirewallRule", **RULE)
    assert answer["Created"] is True
    assert answer["Data"] == stored(rules)
    assert fields(answer["Data"]) >= {
        "Action=Allow",
        "Active=TRUE",
        "Dir=In",
        "Protocol=6",
        "LPort=8080",
        "RA4=100.64.0.0/255.192.0.0",
        "RA6=fd7a:115c:a1e0::/48",
        "Name=Contract rule",
        "Desc=made by a test",
        "EmbedCtxt=contract",
    }
    assert not [field for field in fields(answer["Data"]) if field.startswith(("Profile=", "App=", "IF="))]


def test_a_rule_is_changed_in_place(rules: EngineBox) -> None:
    rules.call("Set-BoxFirewallRule", **RULE)
    wanted = {
        **RULE,
        "DisplayName": "Renamed",
        "LocalPort": ["80", "7000-7010"],
        "RemoteAddress": ["Any"],
        "Profile": ["Domain", "Private"],
        "Program": "C:\\ninfer\\ninfer-serve.exe",
        "Action": "Block",
    }
    answer = rules.call("Set-BoxFirewallRule", **wanted)
    assert answer["Created"] is False
    assert fields(answer["Data"]) >= {
        "Name=Renamed",
        "LPort=80",
        "LPort2_10=7000-7010",
        "Profile=Domain",
        "Profile=Private",
        "App=C:\\ninfer\\ninfer-serve.exe",
        "Action=Block",
    }
    assert "RA4=" not in answer["Data"]
    again = rules.call("Set-BoxFirewallRule", **wanted)
    assert again == {"Created": False, "Data": answer["Data"]}


def test_what_is_not_declared_is_reset(rules: EngineBox) -> None:
    alias = rules.call("Get-BoxFirewall")["Connections"][0]["InterfaceAlias"]
    bound = rules.call(
        "Set-BoxFirewallRule", **RULE, Program="C:\\x.exe", InterfaceAlias=[alias], RemotePort=["1024"]
    )
    assert "IF={" in bound["Data"]
    free = rules.call("Set-BoxFirewallRule", **RULE)
    assert not {"App=C:\\x.exe", "RPort=1024"} & fields(free["Data"])
    assert "IF=" not in free["Data"]


def test_another_group_makes_the_rule_anew_and_keeps_its_name(rules: EngineBox) -> None:
    rules.call("Set-BoxFirewallRule", **RULE)
    answer = rules.call("Set-BoxFirewallRule", **{**RULE, "Group": "other"})
    assert answer["Created"] is False
    assert "EmbedCtxt=other" in fields(stored(rules))
    assert stored(rules, f"{NAME}.replacement") is None


def test_a_rule_is_disabled_and_removed_once(rules: EngineBox) -> None:
    rules.call("Set-BoxFirewallRule", **RULE)
    assert rules.call("Disable-BoxFirewallRule", Name=[NAME, "absent"]) == {"Changed": [NAME]}
    assert "Active=FALSE" in fields(stored(rules))
    assert rules.call("Disable-BoxFirewallRule", Name=[NAME]) == {"Changed": []}
    assert rules.call("Remove-BoxFirewallRule", Name=[NAME, "absent"]) == {"Changed": [NAME]}
    assert stored(rules) is None
    assert rules.call("Remove-BoxFirewallRule", Name=[NAME]) == {"Changed": []}


@pytest.mark.parametrize("command", ["Disable-BoxFirewallRule", "Remove-BoxFirewallRule"])
def test_an_empty_name_is_refused(box: EngineBox, command: str) -> None:
    before = box.call("Get-BoxFirewall")["Stores"]
    with pytest.raises(BoxFault) as fault:
        box.call(command, Name=[NAME, ""])
    assert fault.value.type == "Refused"
    assert box.call("Get-BoxFirewall")["Stores"] == before


def test_W38_a_name_with_wildcards_is_exactly_one_rule(rules: EngineBox) -> None:
    for name in ("contract-rule", "contract-a", "contract-1"):
        rules.call("Set-BoxFirewallRule", **{**RULE, "Name": name})
    odd = "contract-[ra]*"
    try:
        assert rules.call("Remove-BoxFirewallRule", Name=[odd, "contract-?"]) == {"Changed": []}
        assert rules.call("Set-BoxFirewallRule", **{**RULE, "Name": odd})["Created"] is True
        again = rules.call("Set-BoxFirewallRule", **{**RULE, "Name": odd, "LocalPort": ["9090"]})
        assert again["Created"] is False
        assert "LPort=9090" in fields(stored(rules, odd))
        assert "LPort=8080" in fields(stored(rules, "contract-a"))
        assert rules.call("Disable-BoxFirewallRule", Name=[odd]) == {"Changed": [odd]}
        assert "Active=TRUE" in fields(stored(rules, "contract-rule"))
        assert rules.call("Remove-BoxFirewallRule", Name=[odd]) == {"Changed": [odd]}
        assert stored(rules, "contract-a") is not None
    finally:
        rules.call("Remove-BoxFirewallRule", Name=["contract-a", "contract-1", odd])


def test_W32_a_write_that_fails_leaves_the_rule_in_place(rules: EngineBox) -> None:
    rules.call("Set-BoxFirewallRule", **RULE)
    before = stored(rules)
    for change in ({}, {"Group": "another group, so the rule is made anew"}):
        with pytest.raises(BoxFault):
            rules.call("Set-BoxFirewallRule", **{**RULE, **change, "RemoteAddress": ["10.0.0.0/33"]})
        assert stored(rules) == before


def test_an_address_that_is_none_changes_nothing(rules: EngineBox) -> None:
    rules.call("Set-BoxFirewallRule", **RULE)
    before = stored(rules)
    with pytest.raises(BoxFault) as fault:
        rules.call("Set-BoxFirewallRule", **{**RULE, "RemoteAddress": ["300.1.2.3"]})
    assert fault.value.error["hresult"].lower() == "0x80070057"
    assert stored(rules) == before


def test_the_snapshot_has_all_stores_profiles_and_connections(box: EngineBox) -> None:
    snapshot = box.call("Get-BoxFirewall")
    assert [store["Store"] for store in snapshot["Stores"]] == ["Local", "GroupPolicy", "Mdm", "AppContainer"]
    assert all(store["Key"].startswith("HKLM:\\") for store in snapshot["Stores"])
    local = {
        profile["Name"]: profile["Values"] for profile in snapshot["Profiles"] if profile["Store"] == "Local"
    }
    assert set(local) == {"Domain", "Private", "Public"}
    assert local["Public"]["EnableFirewall"] == 1
    (tailscale,) = [one for one in snapshot["Connections"] if one["InterfaceAlias"] == "Tailscale"]
    assert tailscale["InterfaceGuid"] == "{37217669-42DA-4657-A55B-0D995D328250}"
    assert tailscale["NetworkCategory"] == "Private"
    assert len(tailscale["Addresses"]) == 2
    assert tailscale["Prefixes"] == ["100.77.174.21/32", "fd7a:115c:a1e0::b101:ae15/128"]
    assert snapshot["PortProxies"] == []
    assert snapshot["Products"] == []
    assert snapshot["ServiceStatus"] == "Running"


@pytest.mark.wine
def test_the_rule_is_in_the_registry_of_the_box(wine_box: EngineBox) -> None:
    wine_box.call("Set-BoxFirewallRule", **RULE)
    key = (
        "HKLM:\\SYSTEM\\CurrentControlSet\\Services\\SharedAccess\\Parameters\\FirewallPolicy\\FirewallRules"
    )
    answer = wine_box.call("Get-BoxRegistry", Key=key, Name=[NAME])
    assert answer["Values"][0]["Data"] == stored(wine_box)
    wine_box.call("Remove-BoxFirewallRule", Name=[NAME])
