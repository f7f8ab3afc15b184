"""Windows Firewall: rules as the registry holds them, declared rules, and where they differ.

Sources: MS-GPFAS 2.2.2 (the ``v2.NN|Key=Value|`` strings), MS-FASP; research: windows.md 3.1 and 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from winfleet.models.answer import Difference, Model, ModelError, items, mapping, optional_text, text
from winfleet.models.file import normal_path
from winfleet.models.networks import NetworkSet
from winfleet.models.port_ranges import PortRange, merged

OWN_PREFIX = "ninfer-fleet-"
ALL_PROFILES = frozenset({"domain", "private", "public"})
Action = Literal["allow", "block"]
_PROTOCOLS = {"tcp": 6, "udp": 17, "icmpv4": 1, "icmpv6": 58, "any": None}
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


@dataclass(frozen=True)
class Rule(Model):
    """A declared inbound rule.

    Attributes: name (begins with ``ninfer-fleet-``: only such rules are ours), display_name, local_ports
    ("8080", "7000-7010"; the word "any" alone), remote (networks; the word "any" alone), protocol ("tcp",
    "udp", "any"), action, profiles, local (addresses), remote_ports, program (full path), interfaces
    (aliases), description, group, enabled, acknowledge_open (must be True when ports, protocol or remote are
    "any").
    """

    name: str
    display_name: str
    local_ports: tuple[str | int, ...]
    remote: tuple[str, ...]
    protocol: str = "tcp"
    action: Action = "allow"
    profiles: tuple[str, ...] = ("any",)
    local: tuple[str, ...] = ("any",)
    remote_ports: tuple[str | int, ...] = ("any",)
    program: str | None = None
    interfaces: tuple[str, ...] = ()
    description: str = ""
    group: str = ""
    enabled: bool = True
    acknowledge_open: bool = False

    def faults(self) -> list[str]:
        """Why this rule must not be applied; empty: nothing."""
        found = []
        if not self.name.lower().startswith(OWN_PREFIX):
            found.append(
                f"the name {self.name!r} must begin with {OWN_PREFIX!r}: rules of others are never changed"
            )
        if any(sign in self.name + self.display_name + self.description + self.group for sign in "|\r\n"):
            found.append(f"rule {self.name!r}: names and descriptions cannot hold '|' or line ends")
        if self.protocol.lower() not in _PROTOCOLS:
            found.append(f"rule {self.name!r}: unknown protocol {self.protocol!r}")
        for profile in self.profiles:
            if profile.lower() not in ALL_PROFILES | {"any"}:
                found.append(f"rule {self.name!r}: unknown profile {profile!r}")
        if not self.profiles:
            found.append(f"rule {self.name!r}: no profile; say 'any' for all")
        for label, entries in (("local_ports", self.local_ports), ("remote_ports", self.remote_ports)):
            if not entries:
                found.append(f"rule {self.name!r}: {label} is empty; say 'any' if that is meant")
        for label, networks in (("local", self.local), ("remote", self.remote)):
            if not networks:
                found.append(f"rule {self.name!r}: {label} is empty; say 'any' if that is meant")
        if found:
            return found
        try:
            rule = self.rule()
        except ModelError as error:
            return [f"rule {self.name!r}: {error}"]
        open_words = [
            label
            for label, is_open in (
                ("protocol", rule.protocol is None),
                ("local_ports", not rule.local_ports),
                ("remote", rule.remote.is_any),
            )
            if is_open
        ]
        if self.action == "allow" and open_words and not self.acknowledge_open:
            what = " and any ".join(open_words)
            found.append(f"rule {self.name!r} allows any {what}; narrow it, or set acknowledge_open=True")
        return found

    def rule(self) -> FirewallRule:
        """The rule as a store would hold it. Raises ModelError."""
        profiles = frozenset(profile.lower() for profile in self.profiles)
        return FirewallRule(
            name=self.name,
            display_name=self.display_name,
            description=self.description,
            group=self.group,
            enabled=self.enabled,
            action=self.action,
            profiles=ALL_PROFILES if "any" in profiles else profiles,
            protocol=_PROTOCOLS[self.protocol.lower()],
            local_ports=_ports(self.local_ports),
            remote_ports=_ports(self.remote_ports),
            local=NetworkSet.parse(self.local),
            remote=NetworkSet.parse(self.remote),
            program=self.program,
            interfaces=frozenset(name.lower() for name in self.interfaces),
        )

    def parameters(self) -> dict[str, Any]:
        """The parameters of Set-BoxFirewallRule."""
        words = {"any": "Any", "domain": "Domain", "private": "Private", "public": "Public"}
        parameters: dict[str, Any] = {
            "Name": self.name,
            "DisplayName": self.display_name,
            "Description": self.description,
            "Group": self.group,
            "Enabled": self.enabled,
            "Direction": "Inbound",
            "Action": self.action.capitalize(),
            "Profile": [words[profile.lower()] for profile in self.profiles],
            "Protocol": self.protocol.upper() if self.protocol.lower() != "any" else "Any",
            "LocalPort": [_word(port) for port in self.local_ports],
            "RemotePort": [_word(port) for port in self.remote_ports],
            "LocalAddress": [_word(address) for address in self.local],
            "RemoteAddress": [_word(address) for address in self.remote],
        }
        if self.program is not None:
            parameters["Program"] = self.program
        if self.interfaces:
            parameters["InterfaceAlias"] = list(self.interfaces)
        return parameters


def _word(value: str | int) -> str:
    return "Any" if str(value).lower() in {"any", "*"} else str(value)


def _ports(entries: Sequence[str | int]) -> tuple[PortRange, ...]:
    if any(_word(entry) == "Any" for entry in entries):
        return ()
    return merged(PortRange.parse(entry) for entry in entries)


def rule_differences(
    found: FirewallRule | None, declared: Rule, connections: Sequence[Connection] = ()
) -> list[Difference]:
    """Where the rule on the box is not as declared, by field name; everything when it is absent.

    Interfaces are declared by alias and stored by GUID: connections translate.
    """
    wanted = declared.rule()
    aliases = {one.guid.strip("{}").lower(): one.alias.lower() for one in connections if one.guid}
    rows: list[tuple[str, str | None, str]] = [
        (name, None if found is None else show(found, aliases), show(wanted, {})) for name, show in FIELDS
    ]
    return [Difference(name, before, after) for name, before, after in rows if before != after]


def _interfaces(rule: FirewallRule, aliases: Mapping[str, str]) -> str:
    names = {aliases.get(name.strip("{}"), name) for name in rule.interfaces}
    return ", ".join(sorted(names)) or "any"


def _port_text(ports: tuple[PortRange, ...], words: frozenset[str]) -> str:
    return ", ".join([*(str(item) for item in ports), *sorted(words)]) or "any"


def _protocol_text(number: int | None) -> str:
    names = {value: name for name, value in _PROTOCOLS.items()}
    return names.get(number, str(number))


# A field's text is its normal form, so equal meaning is equal text.
FIELDS: tuple[tuple[str, Any], ...] = (
    ("display_name", lambda rule, _: rule.display_name.strip()),
    ("description", lambda rule, _: rule.description.strip()),
    ("group", lambda rule, _: rule.group.strip()),
    ("enabled", lambda rule, _: "true" if rule.enabled else "false"),
    ("direction", lambda rule, _: rule.direction),
    ("action", lambda rule, _: rule.action),
    (
        "profiles",
        lambda rule, _: "any" if rule.profiles == ALL_PROFILES else ", ".join(sorted(rule.profiles)),
    ),
    ("protocol", lambda rule, _: _protocol_text(rule.protocol)),
    ("local_ports", lambda rule, _: _port_text(rule.local_ports, rule.port_words)),
    ("remote_ports", lambda rule, _: _port_text(rule.remote_ports, frozenset())),
    ("local", lambda rule, _: str(rule.local)),
    ("remote", lambda rule, _: str(rule.remote)),
    ("program", lambda rule, _: normal_path(rule.program) if rule.program else "any"),
    ("service", lambda rule, _: rule.service or "any"),
    ("interfaces", _interfaces),
    ("interface_types", lambda rule, _: ", ".join(sorted(rule.interface_types - {"all"})) or "any"),
    ("conditions", lambda rule, _: ", ".join(sorted(rule.conditions)) or "none"),
)
