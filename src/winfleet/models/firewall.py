"""Windows Firewall: rules as the registry holds them, profiles and connections.

Sources: MS-GPFAS 2.2.2 (the ``v2.NN|Key=Value|`` strings), MS-FASP; research: windows.md 3.1 and 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from winfleet.models.answer import Model, ModelError, items, mapping, optional_text, text
from winfleet.models.networks import NetworkSet
from winfleet.models.port_ranges import PortRange, merged

OWN_PREFIX = "ninfer-fleet-"
ALL_PROFILES = frozenset({"domain", "private", "public"})
_ADDRESS_KEYS = {"LA4": "local", "LA6": "local", "RA4": "remote", "RA6": "remote"}
_PORT_KEYS = {"LPort": "local", "LPort2_10": "local", "RPort": "remote", "RPort2_10": "remote"}
# Keys that narrow to whom or what a rule applies in ways that are not modelled, and keys that are not known,
# make a rule conditional: it may apply or not, and must never be skipped.
_PLAIN_KEYS = frozenset(
    {
        "Action",
        "Active",
        "Dir",
        "Protocol",
        "Profile",
        "App",
        "Svc",
        "IF",
        "IFType",
        "Name",
        "Desc",
        "EmbedCtxt",
    }
    | set(_ADDRESS_KEYS)
    | set(_PORT_KEYS)
    | {"Edge", "Defer"}
)


@dataclass(frozen=True)
class FirewallRule(Model):
    """One rule as a store holds it.

    Attributes: name (identity within its store), store, display_name, description, group, enabled, direction
    ("in", "out"), action ("allow", "block", "bypass"), profiles (of domain, private, public), protocol (IP
    number; None: any), local_ports and remote_ports (empty: any), port_words (local ports given as a word,
    such as rpc: Windows picks them at run time), local and remote (addresses),
    program (None: any), service, interfaces (GUIDs or aliases), interface_types, conditions (names of keys
    that narrow the rule in a way not modelled), data (the registry string).
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
    local: NetworkSet = field(default_factory=NetworkSet.any)
    remote: NetworkSet = field(default_factory=NetworkSet.any)
    program: str | None = None
    service: str | None = None
    interfaces: frozenset[str] = frozenset()
    interface_types: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    data: str = ""

    @property
    def ours(self) -> bool:
        """True when the name says that this project owns the rule."""
        return self.store == "Local" and self.name.lower().startswith(OWN_PREFIX)

    def concerns(self, port: int) -> bool:
        """True when the rule is enabled, inbound and its protocol and ports hold TCP port."""
        if not self.enabled or self.direction != "in" or self.protocol not in (None, 6):
            return False
        return not self.local_ports or any(port in item for item in self.local_ports)


def parse_rule(name: str, data: str, store: str = "Local") -> FirewallRule:
    """A rule from its registry value. Raises ModelError when the string is no rule.

    Example:
    ``v2.31|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=8080|RA4=100.64.0.0/255.192.0.0|Name=x|``
    """
    parts = data.strip().split("|")
    if not parts or not parts[0].lower().startswith("v2."):
        raise ModelError(f"firewall rule {name!r}: not a rule string: {data[:60]!r}")
    keys: dict[str, list[str]] = {}
    for part in parts[1:]:
        if part:
            key, _, value = part.partition("=")
            keys.setdefault(key, []).append(value)
    one = {key: values[-1] for key, values in keys.items()}
    addresses: dict[str, list[str]] = {"local": [], "remote": []}
    for key, side in _ADDRESS_KEYS.items():
        addresses[side] += keys.get(key, [])
    ports: dict[str, list[PortRange]] = {"local": [], "remote": []}
    words: dict[str, set[str]] = {"local": set(), "remote": set()}
    for key, side in _PORT_KEYS.items():
        for value in keys.get(key, []):
            for item in value.split(","):
                if item.strip()[:1].isdigit():
                    ports[side].append(PortRange.parse(item))
                elif item.strip() and item.strip().lower() not in {"any", "*"}:
                    words[side].add(item.strip().lower())
    profiles = frozenset(value.lower() for value in keys.get("Profile", []))
    protocol = one.get("Protocol")
    app = one.get("App")
    return FirewallRule(
        name=name,
        store=store,
        display_name=one.get("Name", ""),
        description=one.get("Desc", ""),
        group=one.get("EmbedCtxt", ""),
        enabled=one.get("Active", "TRUE").lower() == "true",
        direction=one.get("Dir", "In").lower(),
        action={"byPass": "bypass"}.get(one.get("Action", "Allow"), one.get("Action", "Allow").lower()),
        profiles=profiles & ALL_PROFILES if profiles and "any" not in profiles else ALL_PROFILES,
        protocol=int(protocol) if protocol and protocol.isdigit() and int(protocol) != 256 else None,
        local_ports=merged(ports["local"]),
        remote_ports=merged(ports["remote"]),
        port_words=frozenset(words["local"]),
        local=_addresses(addresses["local"]),
        remote=_addresses(addresses["remote"]),
        program=app if app and app != "*" else None,
        service=one.get("Svc") if one.get("Svc") not in (None, "", "*") else None,
        interfaces=frozenset(value.lower() for value in keys.get("IF", [])),
        interface_types=frozenset(value.lower() for value in keys.get("IFType", [])),
        conditions=(frozenset(keys) - _PLAIN_KEYS) | ({"RPort"} if words["remote"] else frozenset()),
        data=data,
    )


def _addresses(entries: Sequence[str]) -> NetworkSet:
    flat = [item for entry in entries for item in entry.split(",") if item.strip()]
    return NetworkSet.parse(flat) if flat else NetworkSet.any()


@dataclass(frozen=True)
class FirewallProfile(Model):
    """One profile in one store. Attributes: name ("domain", "private", "public"), store, values (raw, by
    name)."""

    name: str
    store: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Connection(Model):
    """A network connection. Attributes: alias, guid, category ("Public", "Private", "DomainAuthenticated"),
    addresses."""

    alias: str
    guid: str | None
    category: str | None
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Firewall(Model):
    """Answer of Get-BoxFirewall.

    Attributes: rules (of all stores), profiles, connections, service_status ("Running"), unreadable (rule
    names whose string could not be parsed, each with the reason).
    """

    rules: tuple[FirewallRule, ...]
    profiles: tuple[FirewallProfile, ...]
    connections: tuple[Connection, ...]
    service_status: str | None
    unreadable: tuple[str, ...] = ()

    @classmethod
    def parse(cls, value: Any) -> Firewall:
        """From the JSON value. Raises ModelError."""
        data = mapping(value, "Get-BoxFirewall")
        rules, unreadable = [], []
        for entry in items(data.get("Stores"), "Stores"):
            store = mapping(entry, "Stores")
            for raw in items(store.get("Rules"), "Rules"):
                rule = mapping(raw, "Rules")
                try:
                    rules.append(parse_rule(text(rule, "Name"), text(rule, "Data"), text(store, "Store")))
                except ModelError as error:
                    unreadable.append(str(error))
        return cls(
            tuple(rules),
            tuple(
                FirewallProfile(
                    text(one, "Name").lower(),
                    optional_text(one, "Store") or "Local",
                    dict(one.get("Values") or {}),
                )
                for one in (mapping(item, "Profiles") for item in items(data.get("Profiles"), "Profiles"))
            ),
            tuple(
                Connection(
                    optional_text(one, "InterfaceAlias") or "",
                    optional_text(one, "InterfaceGuid"),
                    optional_text(one, "NetworkCategory"),
                    tuple(str(address) for address in items(one.get("Addresses"), "Addresses")),
                )
                for one in (
                    mapping(item, "Connections") for item in items(data.get("Connections"), "Connections")
                )
            ),
            optional_text(data, "ServiceStatus"),
            tuple(unreadable),
        )

    def local_rule(self, name: str) -> FirewallRule | None:
        """The rule of that name in the local store (case does not count, wildcards mean nothing), or None."""
        return next(
            (one for one in self.rules if one.store == "Local" and one.name.lower() == name.lower()), None
        )

    def own(self) -> list[FirewallRule]:
        """All rules that this project owns."""
        return [rule for rule in self.rules if rule.ours]
