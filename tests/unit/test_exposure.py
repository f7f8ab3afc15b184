"""Who reaches a port: the cases that people met, each spelled out."""

from __future__ import annotations

from typing import Any

import pytest

from winfleet.firewall.exposure import Row, exposure
from winfleet.firewall.exposure_check import faults, query_user_rules, warnings
from winfleet.firewall.model import FirewallState, parse_rule
from winfleet.firewall.settings import settings_of
from winfleet.network.networks import NetworkSet

EXE = "C:\\ninfer\\current\\ninfer-serve.exe"
TAILNET = ["100.64.0.0/10", "fd7a:115c:a1e0::/48"]
OURS = (
    "v2.32|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=8080|RA4=100.64.0.0/255.192.0.0"
    "|RA6=fd7a:115c:a1e0::/48|Name=NInfer|"
)
TAILSCALE_IN = (
    "v2.32|Action=Allow|Active=TRUE|Dir=In|Profile=Domain|Profile=Private|LA4=100.77.174.21"
    "|LA6=fd7a:115c:a1e0::b101:ae15|Name=Tailscale-In|"
)
PROMPT = (
    "v2.32|Action={}|Active=TRUE|Dir=In|Protocol=6|Profile=Private|Profile=Public|App={}|Name=n|Defer=User|"
)
PROMPT_NAME = "TCP Query User{7A3C}C:\\ninfer\\current\\ninfer-serve.exe"
ETHERNET = ("Ethernet", "{8D3A1F60-5C0E-4B5B-9A64-0A7F8F3E1C11}", ["192.168.10.20/24"])
TAILSCALE = (
    "Tailscale",
    "{37217669-42DA-4657-A55B-0D995D328250}",
    ["100.77.174.21/32", "fd7a:115c:a1e0::b101:ae15/128"],
)


def firewall(
    *,
    local: dict[str, str] | None = None,
    categories: tuple[str | None, ...] = ("Private", "Private"),
    connections: tuple[Any, ...] = (ETHERNET, TAILSCALE),
    profiles: list[dict[str, Any]] | None = None,
    **more: Any,
) -> FirewallState:
    """A box with our rule and Tailscale's, changed as said; stores other than local as ``group_policy=...``."""
    stores = {
        "GroupPolicy": more.pop("group_policy", {}),
        "Mdm": more.pop("mdm", {}),
        "AppContainer": more.pop("app", {}),
    }
    rules = {"ninfer-fleet-serve": OURS, "Tailscale-In": TAILSCALE_IN} if local is None else local
    return FirewallState.parse(
        {
            "Stores": [
                {
                    "Store": store,
                    "Key": "",
                    "Rules": [{"Name": name, "Data": data} for name, data in held.items()],
                }
                for store, held in {"Local": rules, **stores}.items()
            ],
            "Profiles": [
                {"Name": name, "Store": "Local", "Values": {}} for name in ("Domain", "Private", "Public")
            ]
            + (profiles or []),
            "Connections": [
                {
                    "InterfaceAlias": alias,
                    "InterfaceGuid": guid,
                    "NetworkCategory": category,
                    "Addresses": [prefix.split("/")[0] for prefix in prefixes],
                    "Prefixes": prefixes,
                }
                for (alias, guid, prefixes), category in zip(connections, categories, strict=True)
            ],
            "ServiceStatus": "Running",
            "PortProxies": [],
            "Products": [],
            **more,
        }
    )


def both(extra: dict[str, str]) -> dict[str, str]:
    return {"ninfer-fleet-serve": OURS, "Tailscale-In": TAILSCALE_IN, **extra}


def row(found: FirewallState, address: str, profile: str = "private", program: str | None = EXE) -> Row:
    (wanted,) = [
        one
        for one in exposure(found, 8080, program).rows
        if one.endpoint.address == address and one.endpoint.profile == profile
    ]
    return wanted


def told(found: FirewallState, networks: list[str] = TAILNET) -> str:
    return "\n".join(faults(exposure(found, 8080, EXE), networks))


def policy(profile: str, store: str = "GroupPolicy", **values: int) -> dict[str, Any]:
    return {"Name": profile, "Store": store, "Values": values}


def test_our_rule_and_tailscales_are_as_declared() -> None:
    found = firewall()
    assert told(found) == ""
    ethernet, tailscale = row(found, "192.168.10.20"), row(found, "100.77.174.21")
    assert ethernet.exposed == tailscale.exposed == NetworkSet.parse(["100.64.0.0/10"])
    assert list(ethernet.classes) == ["tailscale"]
    assert ethernet.rule_names == ("ninfer-fleet-serve",)
    assert tailscale.rule_names == ("ninfer-fleet-serve", "Tailscale-In")


def test_an_empty_firewall_lets_nobody_in() -> None:
    found = firewall(local={})
    assert all(not one.possible for one in exposure(found, 8080, EXE).rows)
    assert "closed to 100.64.0.0/10 at 100.77.174.21 (Tailscale, private): no rule lets it in" in told(found)


def test_tailscales_rule_is_for_the_tailnet_though_its_remote_is_any() -> None:
    found = firewall(local={"Tailscale-In": TAILSCALE_IN})
    assert list(row(found, "100.77.174.21").classes) == ["tailscale"]
    assert not row(found, "192.168.10.20").possible
    # The same address on another adapter is no tailnet: the provider's neighbours are there.
    wan = ("WAN", "{00000000-0000-4000-8000-000000000001}", ["100.77.174.21/10"])
    elsewhere = firewall(local=both({}), connections=(wan, ETHERNET))
    assert list(row(elsewhere, "100.77.174.21").classes) == [
        "loopback",
        "carrier-nat",
        "local-subnet",
        "rfc1918",
        "internet-any",
    ]
    assert "open to others at 100.77.174.21 (WAN, private)" in told(elsewhere)
    assert "internet-any; rule 'Tailscale-In'" in told(elsewhere)


def test_neighbours_behind_a_carrier_nat_are_warned_of() -> None:
    wan = ("WAN", "{00000000-0000-4000-8000-000000000001}", ["100.70.1.2/24"])
    found = firewall(
        local={"ninfer-fleet-serve": OURS}, connections=(wan, TAILSCALE), categories=("Public", "Public")
    )
    assert told(found) == ""
    (warning,) = warnings(exposure(found, 8080, EXE), TAILNET)
    assert "100.70.1.2 (WAN) lies in 100.64.0.0/10, but the adapter is not Tailscale's" in warning
    assert warnings(exposure(firewall(), 8080, EXE), TAILNET) == []


def test_classes_say_what_an_address_is() -> None:
    lan = "v2.32|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=8080|RA4={}|Name=x|"
    for remote, kinds in {
        "LocalSubnet": ["local-subnet"],
        "192.168.0.0/255.255.0.0": ["local-subnet", "rfc1918"],
        "10.0.0.0/255.0.0.0": ["rfc1918"],
        "127.0.0.1": ["loopback"],
        "8.8.8.8": ["internet"],
        "0.0.0.0-255.255.255.255": ["loopback", "tailscale", "local-subnet", "rfc1918", "internet-any"],
        "224.0.0.0/240.0.0.0": [],
    }.items():
        assert list(row(firewall(local={"x": lan.format(remote)}), "192.168.10.20").classes) == kinds, remote


def test_W34_a_block_rule_of_a_cancelled_prompt_shadows_the_allow_rule() -> None:
    found = firewall(local=both({PROMPT_NAME: PROMPT.format("Block", EXE.lower())}))
    assert not row(found, "100.77.174.21").possible
    text = told(found)
    assert (
        f"closed to 100.64.0.0/10 at 100.77.174.21 (Tailscale, private): shadowed by the Block rule '{PROMPT_NAME}'"
        in text
    )
    assert "disable_query_user=True" in text
    assert [rule.name for rule in query_user_rules(found, [EXE])] == [PROMPT_NAME]


def test_W34_a_block_rule_of_some_addresses_leaves_the_others() -> None:
    block = "v2.32|Action=Block|Active=TRUE|Dir=In|RA4=100.64.0.0/255.192.0.0|Profile=Public|Name=x|"
    found = firewall(local=both({"no-tailnet": block}), categories=("Private", "Public"))
    assert (
        "closed to 100.64.0.0/10 at 100.77.174.21 (Tailscale, public): shadowed by the Block rule 'no-tailnet'"
        in told(found)
    )
    assert "fd7a" not in told(found)
    assert row(found, "192.168.10.20").exposed
    # A Block rule of another program, or of one nobody runs here, shadows nothing.
    other = PROMPT.format("Block", "C:\\python\\ninfer-serve.exe")
    assert told(firewall(local=both({"TCP Query User{1}x": other}))) == ""


def test_an_allowed_prompt_opens_the_port_to_everybody() -> None:
    found = firewall(local=both({PROMPT_NAME: PROMPT.format("Allow", EXE.lower())}))
    text = told(found)
    assert "open to others at 192.168.10.20 (Ethernet, private)" in text
    assert "internet-any" in text
    assert PROMPT_NAME in text
    # The profile that the prompt did not tick stays closed.
    assert list(row(found, "192.168.10.20", "domain").classes) == ["tailscale"]


@pytest.mark.parametrize(
    ("category", "profile"), [("Private", "private"), ("Public", "public"), (None, "domain")]
)
def test_W35_the_categories_of_the_adapter(category: str | None, profile: str) -> None:
    both_kinds = firewall(categories=(category, category))
    assert told(both_kinds) == ""
    assert row(both_kinds, "100.77.174.21", profile).current
    # Without our rule the tailnet gets in on private and domain only: Tailscale's own rule ends there.
    alone = firewall(local={"Tailscale-In": TAILSCALE_IN}, categories=(category, category))
    reached = {one: bool(row(alone, "100.77.174.21", one).exposed) for one in ("domain", "private", "public")}
    assert reached == {"domain": True, "private": True, "public": False}
    assert ("closed to" in told(alone)) == (category != "Private")


def test_W37_group_policy_has_the_last_word() -> None:
    local_off = {
        "Name": "Private",
        "Store": "Local",
        "Values": {"EnableFirewall": 0, "DefaultInboundAction": 0},
    }
    policy_on = policy("Private", EnableFirewall=1, DefaultInboundAction=1)
    assert told(firewall(profiles=[local_off, policy_on])) == ""
    found = firewall(profiles=[policy("Private", EnableFirewall=0)])
    settings = settings_of("private", found.profiles)
    assert (settings.enabled, settings.manager("EnableFirewall")) == (False, "Group Policy")
    assert row(found, "192.168.10.20").exposed == NetworkSet.family(4)
    assert (
        "the firewall is off there. Remedy: managed by Group Policy: have EnableFirewall changed there"
        in told(found)
    )


def test_a_profile_that_is_off_ignores_block_rules() -> None:
    off = {"Name": "Private", "Store": "Local", "Values": {"EnableFirewall": 0}}
    found = firewall(local=both({PROMPT_NAME: PROMPT.format("Block", EXE)}), profiles=[off])
    assert row(found, "192.168.10.20").exposed == NetworkSet.family(4)
    assert "Set-NetFirewallProfile -Profile Private -Enabled True" in told(found)


def test_a_default_of_allow_opens_all_but_what_is_blocked() -> None:
    lax = {"Name": "Private", "Store": "Local", "Values": {"DefaultInboundAction": 0}}
    block = "v2.32|Action=Block|Active=TRUE|Dir=In|RA4=10.0.0.0/255.0.0.0|Name=x|"
    found = firewall(local=both({"no-ten": block}), profiles=[lax])
    assert row(found, "192.168.10.20").exposed == NetworkSet.family(4) - NetworkSet.parse(["10.0.0.0/8"])
    assert "-DefaultInboundAction Block" in told(found)


def test_local_rules_do_not_count_where_a_policy_says_so() -> None:
    merge_off = policy("Private", AllowLocalPolicyMerge=0)
    found = firewall(profiles=[merge_off])
    assert not row(found, "100.77.174.21").possible
    assert "local rules do not count there (AllowLocalPolicyMerge), so not 'ninfer-fleet-serve'" in told(
        found
    )
    assert told(firewall(profiles=[merge_off], group_policy={"from the domain": OURS})) == ""
    # Only a policy can say so.
    in_vain = {"Name": "Private", "Store": "Local", "Values": {"AllowLocalPolicyMerge": 0}}
    assert told(firewall(profiles=[in_vain])) == ""


def test_shields_up_leaves_authenticated_computers() -> None:
    up = {
        "Name": "Private",
        "Store": "Local",
        "Values": {"DoNotAllowExceptions": 1, "DefaultInboundAction": 0},
    }
    found = firewall(profiles=[up])
    assert not row(found, "100.77.174.21").possible
    assert "shields up). Remedy: Set-NetFirewallProfile -Profile Private -AllowInboundRules True" in told(
        found
    )
    secure = "v2.32|Action=ByPass|Active=TRUE|Dir=In|Security=Authenticate|RMAuth=O:LSD:|Name=s|"
    held = row(firewall(local=both({"secure": secure}), profiles=[up]), "192.168.10.20")
    assert (held.exposed, held.possible) == (NetworkSet(), NetworkSet.family(4))


def test_policies_that_disagree_leave_it_unknown() -> None:
    found = firewall(
        profiles=[policy("Private", EnableFirewall=1), policy("Private", "Mdm", EnableFirewall=0)]
    )
    held = row(found, "192.168.10.20")
    assert (held.exposed, held.possible) == (NetworkSet(), NetworkSet.family(4))
    assert held.unknown == ("the policies of the profile private disagree about EnableFirewall",)
    assert "cannot tell who gets in at 192.168.10.20" in told(found)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ServiceStatus": "Stopped"}, "the firewall service (MpsSvc) is Stopped"),
        ({"ServiceStatus": None}, "the firewall service (MpsSvc) is not there"),
        (
            {"Products": [{"Name": "Other Wall", "State": 0x61000}]},
            "another firewall is registered: Other Wall",
        ),
        (
            {"PortProxies": [{"Kind": "v4tov4", "Listen": "0.0.0.0/9000", "Connect": "127.0.0.1/8080"}]},
            "a port proxy (v4tov4) brings connections to 0.0.0.0/9000 on to 127.0.0.1/8080",
        ),
        (
            {"app": {"odd": "no rule at all"}},
            "firewall rule 'odd': not a rule string: 'no rule at all' (AppContainer)",
        ),
    ],
)
def test_what_cannot_be_seen_is_unknown_with_its_reason(change: dict[str, Any], reason: str) -> None:
    found = firewall(**change)
    assert row(found, "192.168.10.20").unknown == (reason,)
    assert f"cannot tell who gets in at 192.168.10.20 (Ethernet, private): {reason}. Remedy: " in told(found)


def test_a_product_that_is_off_and_a_proxy_to_another_port_change_nothing() -> None:
    proxy = {"Kind": "v4tov4", "Listen": "0.0.0.0/8080", "Connect": "127.0.0.1/80"}
    assert told(firewall(Products=[{"Name": "Off", "State": 0x60010}], PortProxies=[proxy])) == ""
    assert told(firewall(Products=None)) == ""


@pytest.mark.parametrize(
    ("odd", "doubt"),
    [
        ("Platform=2:6:2", "not understood: Platform"),
        ("LUAuth=O:LSD:(A;;CC;;;BU)", "not understood: LUAuth"),
        ("FromALaterWindows=1", "not understood: FromALaterWindows"),
        ("RA42=IntErnet", "only Windows knows what internet is"),
        ("RA4=Nowhere", "not understood: RA: no address, network or range: 'Nowhere'"),
        ("RPort=1024", "it is for some ports of the client"),
        ("IFType=Wireless", "it is for adapters of type wireless"),
        ("Svc=*", "it is for services"),
        ("LPort=RPC", "its port is rpc"),
        ("App=%ProgramFiles%\\current\\ninfer-serve.exe", "may be the program"),
        ("App=\\device\\harddiskvolume3\\ninfer\\current\\ninfer-serve.exe", "may be the program"),
        ("App=C:\\NINFER~1\\current\\NINFER~2.EXE", "may be the program"),
        ("Profile=Guest", "not understood: Profile=Guest"),
        ("Protocol=tcp", "not understood: Protocol=tcp"),
    ],
)
def test_a_rule_that_may_apply_is_neither_ignored_nor_believed(odd: str, doubt: str) -> None:
    allow = f"v2.32|Action=Allow|Active=TRUE|Dir=In|{odd}|Name=x|"
    held = row(firewall(local=both({"odd": allow})), "192.168.10.20")
    assert held.exposed == NetworkSet.parse(["100.64.0.0/10"])
    assert held.possible == NetworkSet.family(4)
    assert any(doubt in one for one in held.doubts())
    assert "would let them in, but" in told(firewall(local=both({"odd": allow})))
    assert "cannot tell" in told(firewall(local=both({"odd": allow})))
    block = allow.replace("Allow", "Block")
    blocked = row(firewall(local=both({"odd": block})), "100.77.174.21")
    assert (blocked.exposed, bool(blocked.possible)) == (NetworkSet(), True)
    assert "shadowed by the Block rule 'odd'" in told(firewall(local=both({"odd": block})))
    assert "perhaps:" in told(firewall(local=both({"odd": block})))


@pytest.mark.parametrize("missing", ["Action=Allow|", "Active=TRUE|", "Dir=In|"])
def test_a_rule_without_a_word_that_matters_is_doubtful(missing: str) -> None:
    data = "v2.32|Action=Allow|Active=TRUE|Dir=In|Name=x|".replace(missing, "")
    held = row(firewall(local=both({"odd": data})), "192.168.10.20")
    assert held.possible == NetworkSet.family(4)
    assert f"not understood: {missing.split('=')[0]} is missing" in " ".join(held.doubts())


@pytest.mark.parametrize(
    "other",
    [
        "Svc=Dnscache",
        "AppPkgId=S-1-15-2-1",
        "App=C:\\other\\ninfer-serve.exe",
        "App=%SystemRoot%\\system32\\svchost.exe",
        "App=System",
        "Protocol=17",
        "LPort=80",
        "LPort=RPC-EPMap",
        "IF={00000000-0000-4000-8000-000000000009}",
        "LA4=10.9.9.9",
    ],
)
def test_a_rule_for_something_else_changes_nothing(other: str) -> None:
    for action in ("Allow", "Block"):
        data = f"v2.32|Action={action}|Active=TRUE|Dir=In|{other}|Name=x|"
        held = row(firewall(local=both({"other": data})), "192.168.10.20")
        assert held.exposed == held.possible == NetworkSet.parse(["100.64.0.0/10"])


@pytest.mark.parametrize(
    "path",
    [
        EXE.upper(),
        f"\\\\?\\{EXE}",
        EXE.replace("\\", "/"),
        f'"{EXE}"',
        "C:\\ninfer\\x\\..\\current\\.\\ninfer-serve.exe",
    ],
)
def test_spellings_of_one_program(path: str) -> None:
    data = f"v2.32|Action=Allow|Active=TRUE|Dir=In|App={path}|Name=x|"
    assert list(row(firewall(local={"x": data}), "192.168.10.20").classes)[-1] == "internet-any"


def test_a_program_has_as_many_paths_as_lead_to_it() -> None:
    release = "C:\\ninfer\\releases\\1\\ninfer-serve.exe"
    data = f"v2.32|Action=Allow|Active=TRUE|Dir=In|App={release}|Name=x|"
    found = firewall(local={"x": data})
    assert [bool(one.exposed) for one in exposure(found, 8080, [EXE, release]).current] == [True] * 3
    assert not any(one.possible for one in exposure(found, 8080, EXE).rows)
    # Which program will listen is not known: it may be that one.
    assert all(one.possible and not one.exposed for one in exposure(found, 8080).current)


def test_the_local_subnet_is_that_of_the_adapter_for_certain_and_of_any_perhaps() -> None:
    data = "v2.32|Action=Allow|Active=TRUE|Dir=In|RA4=LocalSubnet|RA6=LocalSubnet|Name=x|"
    held = row(firewall(local={"x": data}), "192.168.10.20")
    assert held.exposed == NetworkSet.parse(["192.168.10.0/24"])
    assert held.possible == NetworkSet.parse(["192.168.10.0/24", "100.77.174.21", "169.254.0.0/16"])
    assert told(firewall(local=both({"x": data})), [*TAILNET, "LocalSubnet"]) == ""


def test_a_box_without_connections_is_still_held_to_its_rules() -> None:
    assert told(firewall(connections=(), categories=())) == ""
    opened = both({"x": "v2.32|Action=Allow|Active=TRUE|Dir=In|Name=x|"})
    assert "open to others" in told(firewall(local=opened, connections=(), categories=()))


def test_a_version_that_the_box_has_no_address_of_is_passed_over() -> None:
    only_v4 = firewall(connections=(ETHERNET, ("Tailscale", TAILSCALE[1], ["100.77.174.21/32"])))
    assert told(only_v4) == ""
    assert "closed to 172.16.0.0/12" in told(only_v4, [*TAILNET, "172.16.0.0/12"])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_W46_none_one_and_two_rules(count: int) -> None:
    found = firewall(local={f"rule {number}": OURS for number in range(count)})
    assert len(found.rules) == count
    assert (told(found) == "") == (count > 0)


def test_the_unknown_word_of_an_action_may_be_either() -> None:
    rule = parse_rule("x", "v2.32|Action=Maybe|Active=TRUE|Dir=In|Name=x|")
    assert (rule.action, rule.conditions) == ("unknown", frozenset({"Action=Maybe"}))
    held = row(firewall(local=both({"x": rule.data})), "192.168.10.20")
    assert (held.exposed, held.possible) == (NetworkSet(), NetworkSet.family(4))


def test_a_rule_for_the_local_subnet_is_named_as_the_cause() -> None:
    scope = "Protocol=6|LPort2_10=8000-9000|RA4=LocalSubnet|RA6=LocalSubnet"
    found = firewall(local=both({"lan": f"v2.32|Action=Allow|Active=TRUE|Dir=In|{scope}|Name=x|"}))
    assert "open to others" in told(found, TAILNET)
    assert "rule 'lan'" in told(found, TAILNET)
