"""One firewall rule, and its registry string.

Sources: MS-GPFAS 2.2.2.19 (grammar of the ``v2.NN|Key=Value|`` strings), MS-FASP 2.2.37 (what the fields
mean); docs/facts/windows.md#firewall-rules,
docs/facts/windows.md#how-windows-writes-addresses. The strings of Windows 10 1809 and later also have ``RA42``/``RA62``
for the address words that came with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from winfleet.answer import Model, ModelError
from winfleet.network.networks import NetworkSet
from winfleet.network.port_ranges import PortRange, merged

ALL_PROFILES = frozenset({"domain", "private", "public"})
_ADDRESS_KEY = re.compile(r"([LR])A[46]2?")
_PORT_KEY = re.compile(r"([LR])Port(?:2_\d+)?")
# All other keys narrow to whom or what a rule applies in ways that are not modelled, or are not known: they
# make a rule conditional. Edge and Defer are about traffic from behind a NAT that Windows itself traverses
# (Teredo); ICMP types say nothing of TCP and UDP, since they only come with the ICMP protocols.
_PLAIN_KEYS = frozenset(
    {
        "Action", "Active", "Dir", "Protocol", "Profile", "App", "Svc", "AppPkgId", "IF", "IFType", "Name",
        "Desc", "EmbedCtxt", "Edge", "Defer", "ICMP4", "ICMP6",
    }
)  # fmt: skip
# A word for a port, in the spellings of cmdlets and registry (lower case): one spelling.
PORT_WORDS = {
    "rpc": "rpc",
    "rpcepmap": "rpc-epmap",
    "rpc-epmap": "rpc-epmap",
    "iphttpsin": "iphttps",
    "iphttps": "iphttps",
    "iptlsin": "iphttps",
    "teredo": "teredo",
}
_ACTIONS = {"allow": "allow", "block": "block", "bypass": "bypass"}


@dataclass(frozen=True)
class FirewallRule(Model):
    """One rule as a store holds it.

    Attributes: name (identity within its store), store, display_name, description, group, enabled, direction
    ("in", "out"), action ("allow", "block", "bypass"; "unknown": a word that is not known), profiles (of
    domain, private, public), protocol (IP number; None: any), local_ports and remote_ports (empty: any),
    port_words and remote_port_words (ports given as a word, such as rpc: Windows picks them at run time),
    local and remote (addresses), program (None: any), service ("*": any service, but no other program),
    package (SID of an app container; None: any), interfaces (GUIDs or aliases), interface_types, edge
    ("block", "allow", "defer user", "defer app"), conditions (keys that narrow the rule in a way not
    modelled, and values that cannot be read: the rule may apply or not), data (the registry string).
    """

    name: str
    store: str = "Local"
    display_name: str = ""
    description: str = ""
    group: str = ""
    enabled: bool = True
    direction: str = "in"
    action: str = "allow"
    profiles: frozenset[str] = ALL_PROFILES
    protocol: int | None = None
    local_ports: tuple[PortRange, ...] = ()
    remote_ports: tuple[PortRange, ...] = ()
    port_words: frozenset[str] = frozenset()
    remote_port_words: frozenset[str] = frozenset()
    local: NetworkSet = field(default_factory=NetworkSet.any)
    remote: NetworkSet = field(default_factory=NetworkSet.any)
    program: str | None = None
    service: str | None = None
    package: str | None = None
    interfaces: frozenset[str] = frozenset()
    interface_types: frozenset[str] = frozenset()
    edge: str = "block"
    conditions: frozenset[str] = frozenset()
    data: str = ""


def parse_rule(name: str, data: str, store: str = "Local") -> FirewallRule:
    """A rule from its registry value. Raises ModelError when the string is no rule.

    Whatever it cannot make sense of becomes a condition, and the field is as wide as it can be: a rule is
    never ignored. Example:
    ``v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=8080|RA4=100.64.0.0/255.192.0.0|Name=x|``
    """
    parts = data.strip().split("|")
    if not parts[0].lower().startswith("v2."):
        raise ModelError(f"firewall rule {name!r}: not a rule string: {data[:60]!r}")
    keys: dict[str, list[str]] = {}
    for part in parts[1:]:
        if part:
            key, _, value = part.partition("=")
            keys.setdefault(key, []).append(value)
    doubts: set[str] = set()
    one = {key: values[-1] for key, values in keys.items()}
    values_of: dict[str, list[str]] = {"LA": [], "RA": [], "LP": [], "RP": []}
    for key, values in keys.items():
        if found := _ADDRESS_KEY.fullmatch(key):
            values_of[f"{found[1]}A"] += values
        elif found := _PORT_KEY.fullmatch(key):
            values_of[f"{found[1]}P"] += values
        elif key not in _PLAIN_KEYS:
            doubts.add(key)
    local_ports, port_words = _ports(values_of["LP"])
    remote_ports, remote_port_words = _ports(values_of["RP"])
    app = one.get("App")
    return FirewallRule(
        name=name,
        store=store,
        display_name=one.get("Name", ""),
        description=one.get("Desc", ""),
        group=one.get("EmbedCtxt", ""),
        enabled=_word(one, "Active", {"true": "true", "false": ""}, "true", doubts) == "true",
        direction=_word(one, "Dir", {"in": "in", "out": "out"}, "in", doubts),
        action=_word(one, "Action", _ACTIONS, "unknown", doubts),
        profiles=_profiles(keys.get("Profile", []), doubts),
        protocol=_protocol(one.get("Protocol"), doubts),
        local_ports=local_ports,
        remote_ports=remote_ports,
        port_words=port_words,
        remote_port_words=remote_port_words,
        local=_addresses("LA", values_of["LA"], doubts),
        remote=_addresses("RA", values_of["RA"], doubts),
        program=app if app and app != "*" else None,
        service=one.get("Svc") or None,
        package=one.get("AppPkgId") or None,
        interfaces=frozenset(value.lower() for value in keys.get("IF", [])),
        interface_types=frozenset(value.lower() for value in keys.get("IFType", [])) - {"all"},
        edge=_edge(one),
        conditions=frozenset(doubts),
        data=data,
    )


def _word(one: Mapping[str, str], key: str, known: Mapping[str, str], other: str, doubts: set[str]) -> str:
    value = one.get(key)
    if value is None or value.lower() not in known:
        doubts.add(f"{key} is missing" if value is None else f"{key}={value}")
        return other
    return known[value.lower()]


def _profiles(values: Sequence[str], doubts: set[str]) -> frozenset[str]:
    named = frozenset(value.lower() for value in values)
    if not named or "any" in named or "all" in named:
        return ALL_PROFILES
    if named <= ALL_PROFILES:
        return named
    doubts.update(f"Profile={value}" for value in values if value.lower() not in ALL_PROFILES)
    return ALL_PROFILES


def _protocol(value: str | None, doubts: set[str]) -> int | None:
    if value is None or value.lower() in {"any", "*", "256"}:
        return None
    if value.isdigit() and int(value) < 256:
        return int(value)
    doubts.add(f"Protocol={value}")
    return None


def _ports(values: Sequence[str]) -> tuple[tuple[PortRange, ...], frozenset[str]]:
    ranges: list[PortRange] = []
    words: set[str] = set()
    for item in (item.strip() for value in values for item in value.split(",")):
        if item in {"", "*"} or item.lower() == "any":
            continue
        try:
            ranges.append(PortRange.parse(item))
        except ModelError:
            words.add(PORT_WORDS.get(item.lower(), item.lower()))
    return merged(ranges), frozenset(words)


def _addresses(key: str, values: Sequence[str], doubts: set[str]) -> NetworkSet:
    entries = [item for value in values for item in value.split(",") if item.strip()]
    if not entries:
        return NetworkSet.any()
    try:
        return NetworkSet.parse(entries)
    except ModelError as error:
        doubts.add(f"{key}: {error}")
        return NetworkSet.any()


def _edge(one: Mapping[str, str]) -> str:
    if defer := one.get("Defer"):
        return f"defer {defer.lower()}"
    return "allow" if one.get("Edge", "FALSE").lower() == "true" else "block"
