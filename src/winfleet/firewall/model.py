"""Windows FirewallState of a box: rules of all stores, profiles, connections, and what may lead around them.

Sources: MS-GPFAS 2.2.2, MS-FASP; docs/facts/windows.md#firewall-rules,
docs/facts/windows.md#effective-exposure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, ModelError, integer, items, mapping, optional_text, text
from winfleet.firewall.rule_string import ALL_PROFILES, FirewallRule, parse_rule
from winfleet.owner import Owner

__all__ = [
    "ALL_PROFILES",
    "SPARE_SUFFIX",
    "Connection",
    "FirewallProfile",
    "FirewallRule",
    "FirewallState",
    "PortProxy",
    "Product",
    "parse_rule",
]

SPARE_SUFFIX = ".replacement"
"""What firewall.ps1 adds to the name of a rule for the second one, which holds its place while it is made anew."""


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
    addresses, prefixes (the same with their prefix lengths, "192.168.10.20/24"; empty: not known)."""

    alias: str
    guid: str | None
    category: str | None
    addresses: tuple[str, ...]
    prefixes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PortProxy(Model):
    """A ``netsh interface portproxy`` forward. Attributes: kind ("v4tov4"), listen and connect
    ("address/port"; the address may be ``*``)."""

    kind: str
    listen: str
    connect: str

    @property
    def connect_port(self) -> int | None:
        """The port it leads to, or None when it cannot be read."""
        port = self.connect.rpartition("/")[2]
        return int(port) if port.isdigit() else None


@dataclass(frozen=True)
class Product(Model):
    """A firewall of another maker that the Security Center knows. Attributes: name, state (its number)."""

    name: str
    state: int

    @property
    def on(self) -> bool:
        """False only when its state says off or expired (bits 12 to 15; the layout is not documented)."""
        return self.state >> 12 & 0xF not in (0, 3)


@dataclass(frozen=True)
class FirewallState(Model):
    """Answer of Get-BoxFirewall.

    Attributes: rules (of all stores), profiles, connections, service_status ("Running"), unreadable (rule
    names whose string is none, each with the reason), proxies, products (None: the box has no Security
    Center, as a server).
    """

    rules: tuple[FirewallRule, ...]
    profiles: tuple[FirewallProfile, ...]
    connections: tuple[Connection, ...]
    service_status: str | None
    unreadable: tuple[str, ...] = ()
    proxies: tuple[PortProxy, ...] = ()
    products: tuple[Product, ...] | None = None

    @classmethod
    def parse(cls, value: Any) -> FirewallState:
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
                    unreadable.append(f"{error} ({store['Store']})")
        products = data.get("Products")
        return cls(
            tuple(rules),
            tuple(_profile(mapping(one, "Profiles")) for one in items(data.get("Profiles"), "Profiles")),
            tuple(
                _connection(mapping(one, "Connections"))
                for one in items(data.get("Connections"), "Connections")
            ),
            optional_text(data, "ServiceStatus"),
            tuple(unreadable),
            tuple(
                PortProxy(text(one, "Kind"), text(one, "Listen"), text(one, "Connect"))
                for one in (
                    mapping(item, "PortProxies") for item in items(data.get("PortProxies"), "PortProxies")
                )
            ),
            None
            if products is None
            else tuple(
                Product(text(one, "Name"), integer(one, "State"))
                for one in (mapping(item, "Products") for item in items(products, "Products"))
            ),
        )

    def local_rule(self, name: str) -> FirewallRule | None:
        """The rule of that name in the local store (case does not count, wildcards mean nothing), or None."""
        return next(
            (one for one in self.rules if one.store == "Local" and one.name.lower() == name.lower()), None
        )

    def spares(self, names: Iterable[str]) -> list[FirewallRule]:
        """Second rules that an interrupted Set-BoxFirewallRule left behind for the rules of these names."""
        kept = {name.lower() for name in names}
        found = (self.local_rule(name + SPARE_SUFFIX) for name in sorted(kept))
        return [rule for rule in found if rule is not None and rule.name.lower() not in kept]

    def own(self, owner: Owner) -> list[FirewallRule]:
        """All rules of that owner."""
        return [rule for rule in self.rules if rule.store == "Local" and owner.owns(rule.name)]


def _profile(one: Mapping[str, Any]) -> FirewallProfile:
    return FirewallProfile(
        text(one, "Name").lower(), optional_text(one, "Store") or "Local", dict(one.get("Values") or {})
    )


def _connection(one: Mapping[str, Any]) -> Connection:
    return Connection(
        optional_text(one, "InterfaceAlias") or "",
        optional_text(one, "InterfaceGuid"),
        optional_text(one, "NetworkCategory"),
        tuple(str(address) for address in items(one.get("Addresses"), "Addresses")),
        tuple(str(prefix) for prefix in items(one.get("Prefixes"), "Prefixes")),
    )
