"""Random firewalls: what the sets say of an address is what judging one packet after another says."""

from __future__ import annotations

import ipaddress
import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packets import CATEGORIES, TAILSCALE, Packet, verdict

from winfleet.firewall.exposure import Row, exposure
from winfleet.firewall.model import FirewallState

EXE = "C:\\ninfer\\ninfer-serve.exe"
PORT = 8080
PACKETS_PER_FIREWALL = 40
FIREWALLS = 260
NETWORKS_V4 = [
    "100.64.0.0/255.192.0.0", "100.77.174.21", "10.0.0.0/255.0.0.0", "192.168.10.0/255.255.255.0",
    "192.168.10.7-192.168.10.9", "0.0.0.0-127.255.255.255", "128.0.0.0/1", "8.8.8.8", "LocalSubnet", "DNS",
    "169.254.0.0/16", "100.100.0.0-100.200.0.0",
]  # fmt: skip
NETWORKS_V6 = [
    "fd7a:115c:a1e0::/48", "fe80::/10", "2001:db8::/32", "::/1", "2001:db8::5-2001:db8::9", "LocalSubnet",
    "fd7a:115c:a1e0::1",
]  # fmt: skip
CONNECTIONS = [
    ("Ethernet", "{8D3A1F60-5C0E-4B5B-9A64-0A7F8F3E1C11}", ["192.168.10.20/24", "fe80::20/64"]),
    ("Tailscale", TAILSCALE, ["100.77.174.21/32", "fd7a:115c:a1e0::b101:ae15/128"]),
    ("WAN", "{00000000-0000-4000-8000-000000000001}", ["100.70.1.2/24", "2001:db8::20/64"]),
]

PROXY = {"Kind": "v4tov4", "Listen": "0.0.0.0/9000"}
PROXIED = ["127.0.0.1/80", "127.0.0.1/8080"]
PRODUCTS = [{"Name": "Off", "State": 0x60000}, {"Name": "On", "State": 0x61000}]


def some(values: list[str], most: int = 2) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), max_size=most, unique=True)


@st.composite
def rules(draw: st.DrawFn) -> str:
    """A registry string; most concern the port, so that rules meet."""

    def pick(*values: str) -> str:
        return draw(st.sampled_from(values))

    parts = [
        "v2.32",
        f"Action={pick('Allow', 'Allow', 'Block', 'Block', 'ByPass')}",
        f"Active={pick('TRUE', 'TRUE', 'TRUE', 'TRUE', 'FALSE')}",
        f"Dir={pick('In', 'In', 'In', 'In', 'Out')}",
    ]
    protocol = pick("6", "6", "6", "", "17")
    parts += [f"Protocol={protocol}"] if protocol else []
    parts += [f"Profile={name}" for name in draw(some(["Domain", "Private", "Public"]))]
    if protocol == "6":
        parts += [f"LPort{port}" for port in draw(some(["=8080", "2_10=8000-8100", "=80", "=RPC"]))]
        parts += draw(st.sampled_from([[]] * 8 + [["RPort=1024"]]))
    parts += [f"LA4={one}" for one in draw(st.sampled_from([[]] * 4 + [[one] for one in NETWORKS_V4]))]
    near = draw(st.sampled_from([False, False, False, True]))
    parts += (
        ["RA4=LocalSubnet", "RA6=LocalSubnet"] if near else [f"RA4={one}" for one in draw(some(NETWORKS_V4))]
    )
    parts += [f"RA6={one}" for one in draw(some(NETWORKS_V6))]
    for odd in (
        "RA42=IntErnet",
        "Platform=2:6:2",
        "Svc=*",
        "Svc=Dnscache",
        "IFType=Lan",
        "AppPkgId=S-1-15-2-1",
        "Edge=TRUE",
    ):
        parts += draw(st.sampled_from([[]] * 14 + [[odd]]))
    app = pick(
        "", "", "", EXE, EXE.upper(), "%Root%\\ninfer-serve.exe", "%Root%\\x.exe", "C:\\x\\ninfer-serve.exe"
    )
    parts += [f"App={app}"] if app else []
    parts += draw(st.sampled_from([[]] * 6 + [[f"IF={guid}"] for _, guid, _ in CONNECTIONS]))
    return "|".join([*parts, "Name=x"]) + "|"


@st.composite
def profiles(draw: st.DrawFn, local: bool) -> dict[str, int]:
    values = {
        "EnableFirewall": st.sampled_from([1, 1, 1, 1, 1, 0]),
        "DefaultInboundAction": st.sampled_from([1, 1, 1, 1, 0]),
        "DoNotAllowExceptions": st.sampled_from([0, 0, 0, 0, 1]),
        "AllowLocalPolicyMerge": st.sampled_from([1, 1, 0]),
    }
    likely = [True, True, True, False] if local else [True] + [False] * 4
    return {name: draw(value) for name, value in values.items() if draw(st.sampled_from(likely))}


@st.composite
def firewalls(draw: st.DrawFn) -> dict[str, Any]:
    """The JSON of a Get-BoxFirewall."""
    names = iter(range(1000))
    return {
        "Stores": [
            {
                "Store": store,
                "Rules": [
                    {"Name": f"rule {next(names)}", "Data": data}
                    for data in draw(st.lists(rules(), max_size=6 if store == "Local" else 2))
                ],
            }
            for store in ("Local", "GroupPolicy", "Mdm", "AppContainer")
        ],
        "Profiles": [
            {"Name": name, "Store": store, "Values": draw(profiles(store == "Local"))}
            for store in ("Local", "GroupPolicy", "Mdm")
            for name in ("Domain", "Private", "Public")
        ],
        "Connections": [
            {
                "InterfaceAlias": alias,
                "InterfaceGuid": guid,
                "NetworkCategory": draw(st.sampled_from([*CATEGORIES, None])),
                "Addresses": [prefix.split("/")[0] for prefix in prefixes],
                "Prefixes": prefixes,
            }
            for alias, guid, prefixes in CONNECTIONS
        ],
        "ServiceStatus": draw(st.sampled_from(["Running"] * 15 + ["Stopped"])),
        "PortProxies": draw(st.sampled_from([[]] * 9 + [[PROXY | {"Connect": to}] for to in PROXIED])),
        "Products": draw(st.sampled_from([None, [], [], [], [], *([one] for one in PRODUCTS)])),
    }


def _edges(version: int) -> list[int]:
    found = []
    for entry in NETWORKS_V4 if version == 4 else NETWORKS_V6:
        if "-" in entry:
            found += [int(ipaddress.ip_address(part)) for part in entry.split("-")]
        elif not entry[0].isupper():
            network = ipaddress.ip_network(entry)
            found += [int(network[0]), int(network[-1])]
    return found


EDGES = {version: _edges(version) for version in (4, 6)}


def sender(dice: random.Random, version: int, row: Row) -> str:
    """An address at an edge of what is said to be let in, or of a network in a rule, or anywhere."""
    sets = [row.exposed, row.possible]
    spans = [span for one in sets for span in (one.v4 if version == 4 else one.v6)]
    said = [edge for span in spans for edge in span] or EDGES[version]
    most = 2 ** (32 if version == 4 else 128) - 1
    near = dice.choice([dice.choice(said), dice.choice(EDGES[version])]) + dice.choice([-1, 0, 1])
    number = dice.choice([near, near, dice.randint(0, most)])
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    return str(kind(min(max(number, 0), most)))


@settings(
    max_examples=FIREWALLS,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(firewalls(), st.randoms(use_true_random=False))
def _agree(answer: dict[str, Any], dice: random.Random) -> None:
    rows = {
        (row.endpoint.address, row.endpoint.profile): row
        for row in exposure(FirewallState.parse(answer), PORT, EXE).rows
    }
    for _ in range(PACKETS_PER_FIREWALL):
        connection = dice.choice(answer["Connections"])
        address = dice.choice(connection["Addresses"])
        profile = dice.choice(["domain", "private", "public"])
        row = rows[address, profile]
        source = sender(dice, row.endpoint.version, row)
        wanted = verdict(answer, Packet(source, connection, address, profile, PORT, EXE))
        found = True if source in row.exposed else None if source in row.possible else False
        assert found is wanted, (source, str(row), row.exposed, row.possible)
        category = connection["NetworkCategory"]
        assert row.current is (category is None or CATEGORIES[category] == profile)
        SEEN[wanted] = SEEN.get(wanted, 0) + 1


SEEN: dict[bool | None, int] = {}


def test_sets_say_what_packets_say_in_ten_thousand_cases() -> None:
    SEEN.clear()
    _agree()
    print(f"packets let in, kept out, not known: {[SEEN.get(kind, 0) for kind in (True, False, None)]}")
    assert sum(SEEN.values()) >= 10_000
    # Cases that all end alike would show little.
    assert all(SEEN.get(kind, 0) > 1_000 for kind in (True, False, None))
