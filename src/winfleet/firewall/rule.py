"""Declared firewall rules, and where a rule on a box is not as declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from winfleet.answer import Difference, Model, ModelError
from winfleet.firewall.model import ALL_PROFILES, SPARE_SUFFIX, Connection, FirewallRule
from winfleet.firewall.rule_string import PORT_WORDS
from winfleet.network.networks import NetworkSet
from winfleet.network.port_ranges import PortRange, merged
from winfleet.owner import Owner
from winfleet.path import normal_path

Action = Literal["allow", "block"]
PROTOCOLS = {"tcp": 6, "udp": 17, "icmpv4": 1, "icmpv6": 58, "any": None}


@dataclass(frozen=True)
class Rule(Model):
    """A declared inbound rule.

    Attributes: name (begins with the prefix of its owner), display_name, local_ports
    ("8080", "7000-7010", "RPC"; the word "any" alone), remote (networks; the word "any" alone), protocol
    ("tcp", "udp", "any"), action, profiles, local (addresses), remote_ports, program (full path), interfaces
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
        if self.name.lower().endswith(SPARE_SUFFIX):
            found.append(
                f"the name {self.name!r} ends with {SPARE_SUFFIX!r}, which stands for a half-made rule"
            )
        if any(sign in self.name + self.display_name + self.description + self.group for sign in "|\r\n"):
            found.append(f"rule {self.name!r}: names and descriptions cannot hold '|' or line ends")
        if self.protocol.lower() not in PROTOCOLS:
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
        return self._too_open(rule) if self.action == "allow" else []

    def _too_open(self, rule: FirewallRule) -> list[str]:
        every_port = any(item.first <= 1 and item.last == 65535 for item in rule.local_ports)
        # What is open, whether it is, and whether it says so with the word.
        scopes = [
            ("protocol", rule.protocol is None, True),
            ("local_ports", not (rule.local_ports or rule.port_words) or every_port, not every_port),
            ("remote", rule.remote.is_wide, any(_word(entry) == "Any" for entry in self.remote)),
        ]
        unsaid = [label for label, is_open, said in scopes if is_open and not said]
        if unsaid:
            return [
                f"rule {self.name!r}: {label} is everything; say 'any' if that is meant" for label in unsaid
            ]
        if self.acknowledge_open or not any(is_open for _, is_open, _ in scopes):
            return []
        what = " and any ".join(label for label, is_open, _ in scopes if is_open)
        return [f"rule {self.name!r} allows any {what}; narrow it, or set acknowledge_open=True"]

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
            protocol=PROTOCOLS[self.protocol.lower()],
            local_ports=_ports(self.local_ports),
            remote_ports=_ports(self.remote_ports),
            port_words=_port_words(self.local_ports),
            remote_port_words=_port_words(self.remote_ports),
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
    return merged(PortRange.parse(entry) for entry in entries if str(entry).lower() not in PORT_WORDS)


def _port_words(entries: Sequence[str | int]) -> frozenset[str]:
    if any(_word(entry) == "Any" for entry in entries):
        return frozenset()
    return frozenset(PORT_WORDS[str(entry).lower()] for entry in entries if str(entry).lower() in PORT_WORDS)


def rule_differences(
    found: FirewallRule | None, declared: Rule, connections: Sequence[Connection] = ()
) -> list[Difference]:
    """Where the rule on the box is not as declared, by field name; all that is declared when it is absent.

    Interfaces are declared by alias and stored by GUID: connections translate.
    """
    wanted = declared.rule()
    aliases = {one.guid.strip("{}").lower(): one.alias.lower() for one in connections if one.guid}
    rows: list[tuple[str, str | None, str]] = [
        (name, None if found is None else show(found, aliases), show(wanted, {})) for name, show in FIELDS
    ]
    return [
        Difference(name, before, after)
        for name, before, after in rows
        if before != after and not (found is None and name in _NEVER_DECLARED)
    ]


def shadowing(rules: Sequence[FirewallRule], declared: Rule) -> list[FirewallRule]:
    """Enabled Block rules of any store that take traffic from a declared Allow rule: Block wins over Allow.

    A rule for another program takes nothing; one whose program is not declared may be ours, so it counts.
    """
    wanted = declared.rule()
    if wanted.action != "allow" or not wanted.enabled:
        return []
    return [rule for rule in rules if rule.action == "block" and _overlaps(rule, wanted)]


def _owned(rule: FirewallRule, owner: Owner) -> bool:
    return rule.store == "Local" and owner.owns(rule.name)


def namesakes(rules: Sequence[FirewallRule], declared: Rule, owner: Owner) -> list[FirewallRule]:
    """Rules of others with the display name of a declared one (several may carry it)."""
    title = declared.display_name.strip().casefold()
    return [
        rule for rule in rules if not _owned(rule, owner) and rule.display_name.strip().casefold() == title
    ]


def foreign_overlaps(rules: Sequence[FirewallRule], declared: Rule, owner: Owner) -> list[FirewallRule]:
    """Allow rules of others that name a port of a declared Allow rule (one for all ports names none)."""
    wanted = declared.rule()
    if wanted.action != "allow" or not wanted.enabled:
        return []
    return [
        rule
        for rule in rules
        if not _owned(rule, owner)
        and rule.action == "allow"
        and rule.local_ports
        and _same_listener(rule, wanted)
    ]


def _overlaps(rule: FirewallRule, wanted: FirewallRule) -> bool:
    return _same_listener(rule, wanted) and bool(rule.remote & wanted.remote or rule.remote.keywords)


def _same_listener(rule: FirewallRule, wanted: FirewallRule) -> bool:
    same_protocol = None in (rule.protocol, wanted.protocol) or rule.protocol == wanted.protocol
    same_port = (
        not rule.local_ports
        or not wanted.local_ports
        or any(
            one.first <= other.last and other.first <= one.last
            for one in rule.local_ports
            for other in wanted.local_ports
        )
    )
    programs = {normal_path(one.program) for one in (rule, wanted) if one.program is not None}
    same_program = len(programs) < 2
    return (
        rule.enabled
        and rule.package is None
        and rule.direction == "in"
        and same_protocol
        and same_port
        and same_program
        and bool(rule.profiles & wanted.profiles)
        and bool(rule.local & wanted.local)
    )


def _interfaces(rule: FirewallRule, aliases: Mapping[str, str]) -> str:
    names = {aliases.get(name.strip("{}"), name) for name in rule.interfaces}
    return ", ".join(sorted(names)) or "any"


def _port_text(ports: tuple[PortRange, ...], words: frozenset[str]) -> str:
    return ", ".join([*(str(item) for item in ports), *sorted(words)]) or "any"


def _protocol_text(number: int | None) -> str:
    names = {value: name for name, value in PROTOCOLS.items()}
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
    ("remote_ports", lambda rule, _: _port_text(rule.remote_ports, rule.remote_port_words)),
    ("local", lambda rule, _: str(rule.local)),
    ("remote", lambda rule, _: str(rule.remote)),
    ("program", lambda rule, _: normal_path(rule.program) if rule.program else "any"),
    ("service", lambda rule, _: rule.service or "any"),
    ("package", lambda rule, _: rule.package or "any"),
    ("interfaces", _interfaces),
    ("interface_types", lambda rule, _: ", ".join(sorted(rule.interface_types)) or "any"),
    ("edge", lambda rule, _: rule.edge),
    ("conditions", lambda rule, _: ", ".join(sorted(rule.conditions)) or "none"),
)
# What every declared rule has alike: of interest only where a box has something else.
_NEVER_DECLARED = frozenset({"direction", "service", "package", "interface_types", "edge", "conditions"})
