"""Access lists from SDDL, network sets, firewall rule strings."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winfleet.account.model import AccountSids
from winfleet.acl.model import (
    FULL,
    READ,
    TRUSTED_OWNERS,
    Access,
    AccessRule,
    Acl,
    acl_differences,
    declared_rules,
    inheritance_differences,
    inherited_sddl,
    owner_difference,
    parse_sddl,
    protected_sddl,
)
from winfleet.answer import ModelError
from winfleet.firewall.model import ALL_PROFILES, parse_rule
from winfleet.firewall.rule import Rule, rule_differences
from winfleet.firewall.scope import for_listener
from winfleet.network.networks import NetworkSet

NOBODY = AccountSids({}, {})


def test_sddl_as_windows_gives_it() -> None:
    owner, protected, rules = parse_sddl(
        "O:BAG:S-1-5-21-1-2-3-513D:PAI(A;OICI;FA;;;SY)(A;OICIID;0x1200a9;;;BU)(D;;GW;;;WD)"
        "S:AI(AU;SAFA;FA;;;WD)"
    )
    assert (owner, protected) == ("S-1-5-32-544", True)
    assert rules == (
        AccessRule("S-1-5-18", FULL, True, frozenset({"OI", "CI"})),
        AccessRule("S-1-5-32-545", READ, True, frozenset({"OI", "CI"}), inherited=True),
        AccessRule("S-1-1-0", 0x120116, False),
    )


def test_accounts_that_sddl_names_by_their_part_are_taken_from_the_entries() -> None:
    # As Windows writes the local Administrator, whose SID no other box knows.
    administrator = "S-1-5-21-7-8-9-500"
    found = Acl.parse(
        {
            "Path": "C:\\x",
            "Exists": True,
            "Sddl": "O:LAG:S-1-5-21-7-8-9-513D:PAI(A;OICI;0x1200a9;;;LA)(D;OICIIO;GA;;;LG)",
            "OwnerSid": administrator,
            "Protected": True,
            "Access": [
                {
                    "Sid": administrator,
                    "Rights": READ,
                    "Type": "Allow",
                    "Inherited": False,
                    "InheritanceFlags": "ContainerInherit, ObjectInherit",
                    "PropagationFlags": "None",
                },
                {
                    "Sid": "S-1-5-21-7-8-9-501",
                    "Rights": 0x10000000,
                    "Type": "Deny",
                    "Inherited": True,
                    "InheritanceFlags": "ContainerInherit, ObjectInherit",
                    "PropagationFlags": "InheritOnly",
                },
            ],
        }
    )
    assert (found.owner_sid, found.protected) == (administrator, True)
    assert found.rules == (
        AccessRule(administrator, READ, True, frozenset({"OI", "CI"})),
        AccessRule("S-1-5-21-7-8-9-501", FULL, False, frozenset({"OI", "CI", "IO"}), inherited=True),
    )
    assert acl_differences(found, [found.rules[0]])[0].found == f"{found.rules[1]} (inherited)"


def test_sddl_without_a_list_and_with_odd_entries() -> None:
    assert parse_sddl("O:SY") == ("S-1-5-18", False, ())
    assert parse_sddl('D:AI(A;;FRFX;;;AU)(XA;;FA;;;WD;(@User.Title=="D:x"))')[2] == (
        AccessRule("S-1-5-11", 0x1200A9),
    )
    for bad in ("", "nonsense", "D:(A;;FA)", "D:(A;;QQ;;;SY)"):
        with pytest.raises(ModelError):
            parse_sddl(bad)


sids = st.sampled_from(["S-1-5-18", "S-1-5-32-544", "S-1-1-0", "S-1-5-21-7-8-9-1001"])
rules_lists = st.lists(
    st.builds(
        AccessRule,
        sid=sids,
        rights=st.integers(1, 0x1F01FF),
        allow=st.booleans(),
        flags=st.frozensets(st.sampled_from(["OI", "CI", "NP", "IO"])),
    ),
    max_size=6,
    unique_by=lambda rule: (rule.sid, rule.allow),
)


@given(rules_lists)
def test_sddl_round_trip(rules: list[AccessRule]) -> None:
    _, protected, found = parse_sddl("O:BAG:SY" + protected_sddl(rules))
    assert protected
    assert sorted(found, key=str) == sorted(rules, key=str)
    acl = Acl("C:\\x", True, None, True, found)
    assert acl_differences(acl, rules) == []


@given(rules_lists.filter(bool))
def test_a_missing_entry_is_a_difference(rules: list[AccessRule]) -> None:
    acl = Acl("C:\\x", True, None, True, tuple(rules[1:]))
    assert [one.wanted for one in acl_differences(acl, rules)] == [str(rules[0])]


def test_declared_access() -> None:
    rules, unknown = declared_rules(
        [Access("SYSTEM"), Access("BUILTIN\\Users", "read"), Access("me")], NOBODY, directory=True
    )
    assert [rule.sid for rule in rules] == ["S-1-5-18", "S-1-5-32-545"]
    assert rules[0].flags == {"OI", "CI"}
    assert unknown == ["me"]


def test_one_account_under_two_names_is_one_entry() -> None:
    rules, _ = declared_rules([Access("SYSTEM"), Access("S-1-5-18", "read")], NOBODY, directory=False)
    assert rules == (AccessRule("S-1-5-18", FULL),)


BELOW = frozenset({"OI", "CI"})
ROOT = [AccessRule("S-1-5-18", FULL, True, BELOW), AccessRule("S-1-5-21-7-8-9-1001", READ, True, BELOW)]
FROM_ROOT = "(A;OICIID;FA;;;SY)(A;OICIID;0x1200a9;;;S-1-5-21-7-8-9-1001)"


@pytest.mark.parametrize(
    ("entries", "settled", "words"),
    [
        ("AI" + FROM_ROOT, True, []),
        # Without the flag that Windows sets only sometimes, in another order, and said twice.
        ("(A;OICIID;FRFX;;;S-1-5-21-7-8-9-1001)(A;OICIID;GA;;;SY)(A;OICI;FA;;;SY)", True, []),
        ("AI(A;OICI;0x1301bf;;;BU)" + FROM_ROOT, True, ["access: allow S-1-5-32-545 modify OICI"]),
        ("AI(A;OICI;0x1301bf;;;BU)" + FROM_ROOT, False, ["access: allow S-1-5-32-545 modify OICI"]),
        # A right of its own for an account that has less from above.
        (
            "AI(A;;FA;;;S-1-5-21-7-8-9-1001)" + FROM_ROOT,
            True,
            ["access: allow S-1-5-21-7-8-9-1001 full"],
        ),
        ("AI(A;ID;FA;;;AU)" + FROM_ROOT, True, ["access: allow S-1-5-11 full (inherited)"]),
        ("AI(A;OICIID;FA;;;AU)", False, []),
        ("PAI(A;OICI;FA;;;SY)", True, ["inheritance: none"]),
        ("AI(A;OICIID;FA;;;SY)", True, ["access: None"]),
        ("NO_ACCESS_CONTROL", True, ["access: None", "access: None"]),
    ],
)
def test_what_is_below_a_protected_folder_has_no_more_than_that(
    entries: str, settled: bool, words: list[str]
) -> None:
    owner, protected, rules = parse_sddl(f"O:BAG:SYD:{entries}")
    found = Acl("C:\\x", True, owner, protected, rules)
    differences = inheritance_differences(found, ROOT, directory=True, settled=settled)
    assert [f"{one.field}: {one.found}" for one in differences] == words


def test_a_file_inherits_entries_without_flags() -> None:
    rules = parse_sddl("D:AI(A;ID;FA;;;SY)(A;ID;0x1200a9;;;S-1-5-21-7-8-9-1001)")[2]
    assert inheritance_differences(Acl("C:\\x", True, None, False, rules), ROOT, directory=False) == []
    assert parse_sddl(inherited_sddl()) == (None, False, ())
    assert parse_sddl(inherited_sddl("S-1-5-32-544")) == ("S-1-5-32-544", False, ())
    assert parse_sddl(protected_sddl(ROOT, "S-1-5-32-544"))[:2] == ("S-1-5-32-544", True)


@pytest.mark.parametrize("owner", sorted(TRUSTED_OWNERS))
def test_whoever_owns_a_path_may_change_its_list(owner: str) -> None:
    assert owner_difference(Acl("C:\\x", True, owner, True, ())) == []
    assert owner_difference(Acl("C:\\x", False, None, True, ())) == []
    (foreign,) = owner_difference(Acl("C:\\x", True, "S-1-5-21-7-8-9-1001", True, ()))
    assert (foreign.found, foreign.wanted) == ("S-1-5-21-7-8-9-1001", "S-1-5-32-544")
    assert owner_difference(Acl("C:\\x", True, "S-1-5-21-7", True, ()), {"S-1-5-21-7"}) == []


# Networks

small = st.tuples(st.integers(0, 255), st.integers(0, 40)).map(
    lambda pair: (pair[0], min(255, pair[0] + pair[1]))
)


def spelled(span: tuple[int, int]) -> str:
    return f"10.0.0.{span[0]}-10.0.0.{span[1]}"


@settings(max_examples=200)
@given(st.lists(small, max_size=6), st.lists(small, max_size=6))
def test_sets_of_networks_are_sets_of_addresses(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    left, right = NetworkSet.parse(map(spelled, one)), NetworkSet.parse(map(spelled, other))
    in_left = {number for first, last in one for number in range(first, last + 1)}
    in_right = {number for first, last in other for number in range(first, last + 1)}

    def members(found: NetworkSet) -> set[int]:
        return {number for number in range(256) if f"10.0.0.{number}" in found}

    assert members(left | right) == in_left | in_right
    assert members(left & right) == in_left & in_right
    assert members(left - right) == in_left - in_right
    assert (left == right) == (in_left == in_right)
    assert bool(left) == bool(in_left)
    assert NetworkSet.parse(str(left).split(", ") if left else []) == left


@given(st.integers(0, 2**32 - 1), st.integers(0, 32))
def test_prefix_and_mask_are_one_network(address: int, prefix: int) -> None:
    network = ipaddress.ip_network((address, prefix), strict=False)
    assert NetworkSet.parse([str(network)]) == NetworkSet.parse([f"{network[0]}/{network.netmask}"])


def test_words_and_any() -> None:
    assert NetworkSet.parse(["localsubnet"]) == NetworkSet.parse(["LocalSubnet"])
    assert NetworkSet.parse(["*"]) == NetworkSet.any() == NetworkSet.parse(["0.0.0.0/0", "::/0"])
    assert str(NetworkSet.any()) == "any"
    assert str(NetworkSet.parse(["0.0.0.0/0"])) == "any IPv4"
    for bad in ("", "1.2.3", "10.0.0.9-10.0.0.1", "1.1.1.1-::2", "Localsubnets"):
        with pytest.raises(ModelError):
            NetworkSet.parse([bad])


# Firewall strings

SERVE = Rule("ninfer-fleet-serve", "NInfer", (8080,), ("100.64.0.0/10", "fd7a:115c:a1e0::/48"))
STORED = (
    "v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=8080|RA4=100.64.0.0/255.192.0.0"
    "|RA6=fd7a:115c:a1e0::/48|Name=NInfer|"
)


def test_a_rule_as_the_registry_holds_it() -> None:
    rule = parse_rule("ninfer-fleet-serve", STORED)
    assert rule.profiles == ALL_PROFILES
    assert for_listener(rule, 8080, None) == ()
    assert for_listener(rule, 8081, None) is None
    assert rule_differences(rule, SERVE) == []


def test_keys_that_are_not_known_make_a_rule_conditional() -> None:
    rule = parse_rule("x", STORED + "LUAuth=O:LSD:(A;;CC;;;S-1-5-18)|NewKey=1|")
    assert rule.conditions == {"LUAuth", "NewKey"}
    assert [one.field for one in rule_differences(rule, SERVE)] == ["conditions"]


def test_a_first_listen_rule() -> None:
    rule = parse_rule(
        "TCP Query User{1}C:\\ninfer\\ninfer-serve.exe",
        "v2.31|Action=Block|Active=TRUE|Dir=In|Protocol=6|Profile=Private|Profile=Public"
        "|App=C:\\ninfer\\ninfer-serve.exe|Name=ninfer-serve.exe|Desc=ninfer-serve.exe|Defer=User|",
    )
    assert rule.action == "block"
    assert rule.profiles == {"private", "public"}
    assert rule.remote.is_any
    assert for_listener(rule, 8080, ["c:/NINFER/ninfer-serve.exe"]) == ()
    assert rule.conditions == frozenset()


def test_ports_in_lists_ranges_and_words() -> None:
    rule = parse_rule(
        "x", "v2.10|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=80|LPort2_10=7000-7010|LPort=RPC|"
    )
    assert [for_listener(rule, port, None) for port in (80, 7005, 81)] == [(), (), ("its port is rpc",)]
    assert rule.port_words == {"rpc"}
    for bad in ("", "Action=Allow", "v3.1|Action=Allow|"):
        with pytest.raises(ModelError):
            parse_rule("x", bad)


def test_interfaces_are_compared_by_alias() -> None:
    from winfleet.firewall.model import Connection

    rule = parse_rule("ninfer-fleet-serve", STORED + "IF={37217669-42DA-4657-A55B-0D995D328250}|")
    tailscale = Connection("Tailscale", "{37217669-42da-4657-a55b-0d995d328250}", "Private", ())
    declared = Rule(
        "ninfer-fleet-serve",
        "NInfer",
        (8080,),
        ("100.64.0.0/10", "fd7a:115c:a1e0::/48"),
        interfaces=("Tailscale",),
    )
    assert rule_differences(rule, declared, [tailscale]) == []
    assert [one.field for one in rule_differences(rule, declared, [])] == ["interfaces"]
