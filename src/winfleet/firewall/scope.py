"""Whether a firewall rule applies to one listening program at one address of a box: yes, no, or perhaps.

Each question answers with the doubts that remain: none means yes, ``NO`` means no. A doubt is a reason in
words, so that "unknown" can be explained.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from winfleet.answer import Model
from winfleet.firewall.rule_string import FirewallRule
from winfleet.network.networks import NetworkSet
from winfleet.path import normal_path

Doubts: TypeAlias = tuple[str, ...]
NO: Final = None
# Words that always mean the same port.
_FIXED_PORT_WORDS = {"rpc-epmap": 135, "iphttps": 443}
TAILNET = NetworkSet.parse(["100.64.0.0/10", "fd7a:115c:a1e0::/48"])
LINK_LOCAL = NetworkSet.parse(["169.254.0.0/16", "fe80::/10"])


@dataclass(frozen=True)
class Endpoint(Model):
    """One address of a box as packets arrive at it.

    Attributes: alias, guid, address, profile (in force there), tailscale (the address is one of Tailscale's
    own adapter), on_link (the networks of this adapter; None: not known), on_link_anywhere (of all adapters;
    None: not known).
    """

    alias: str
    guid: str | None
    address: str
    profile: str
    tailscale: bool = False
    on_link: NetworkSet | None = None
    on_link_anywhere: NetworkSet | None = None

    @property
    def version(self) -> int:
        """4 or 6."""
        return ipaddress.ip_address(self.address).version

    @property
    def senders(self) -> NetworkSet:
        """Every address that a packet to this one can come from.

        Windows takes a packet for an address only on the adapter that has it, and Tailscale's adapter brings
        none but the tailnet's: so "any" there is no more than the tailnet (docs/facts/windows.md#tailscale).
        """
        return (TAILNET if self.tailscale else NetworkSet.any()).of_family(self.version)


@dataclass(frozen=True)
class Extent(Model):
    """Addresses that are meant for certain, and those that may be meant."""

    certain: NetworkSet = field(default_factory=NetworkSet)
    possible: NetworkSet = field(default_factory=NetworkSet)


def extent(networks: NetworkSet, endpoint: Endpoint) -> Extent:
    """What networks mean for packets to endpoint, of its IP version.

    Keywords: LocalSubnet is at least the networks of that adapter, at most those of all adapters and the
    link-local ones; what the others stand for only Windows knows.
    """
    certain = possible = NetworkSet(networks.v4, networks.v6)
    for word in networks.keywords:
        version = {"localsubnet4": 4, "localsubnet6": 6}.get(word)
        if not word.startswith("localsubnet"):
            possible = NetworkSet.any()
        elif version in (None, endpoint.version):
            certain |= endpoint.on_link or NetworkSet()
            anywhere = endpoint.on_link_anywhere
            possible |= NetworkSet.any() if anywhere is None else anywhere | LINK_LOCAL
    return Extent(certain.of_family(endpoint.version), possible.of_family(endpoint.version))


def for_listener(
    rule: FirewallRule, port: int, programs: Iterable[str] | None, protocol: int = 6
) -> Doubts | None:
    """Does the rule apply to a program (any of its paths) that listens on port, wherever packets arrive?

    programs None: which program will listen is not known. The program is taken to be no Windows service and
    in no app container.
    """
    if not rule.enabled or rule.direction != "in" or rule.protocol not in (None, protocol):
        return NO
    if rule.package is not None:
        return NO
    on_port = _on_port(rule, port)
    if on_port is NO:
        return NO
    in_program = _in_program(rule.program, programs)
    if in_program is NO:
        return NO
    service: Doubts = ()
    if rule.service == "*":
        service = ("it is for services",)
    elif rule.service is not None:
        return NO
    # A client picks its own port, so such a rule lets through whoever wants, but not everybody.
    client: Doubts = ("it is for some ports of the client",) if _restricts_client(rule) else ()
    odd = tuple(f"not understood: {condition}" for condition in sorted(rule.conditions))
    return (*on_port, *in_program, *service, *client, *odd)


def at_endpoint(rule: FirewallRule, endpoint: Endpoint) -> Doubts | None:
    """Does the rule apply to packets that arrive at endpoint?"""
    if endpoint.profile not in rule.profiles:
        return NO
    doubts: list[str] = []
    if rule.interfaces:
        names = {name.strip("{}").casefold() for name in rule.interfaces}
        if (
            endpoint.alias.casefold() not in names
            and (endpoint.guid or "").strip("{}").casefold() not in names
        ):
            if endpoint.guid is not None:
                return NO
            doubts.append(f"the GUID of {endpoint.alias} is not known")
    if rule.interface_types:
        doubts.append(f"it is for adapters of type {', '.join(sorted(rule.interface_types))}")
    local = extent(rule.local, endpoint)
    if endpoint.address not in local.certain:
        if endpoint.address not in local.possible:
            return NO
        doubts.append(f"its local address is {', '.join(sorted(rule.local.keywords))}")
    return tuple(doubts)


def _restricts_client(rule: FirewallRule) -> bool:
    every = (
        len(rule.remote_ports) == 1 and rule.remote_ports[0].first <= 1 and rule.remote_ports[0].last == 65535
    )
    return bool(rule.remote_ports or rule.remote_port_words) and not every


def _on_port(rule: FirewallRule, port: int) -> Doubts | None:
    if not rule.local_ports and not rule.port_words:
        return ()
    if any(port in item for item in rule.local_ports):
        return ()
    if any(_FIXED_PORT_WORDS.get(word) == port for word in rule.port_words):
        return ()
    moving = sorted(rule.port_words - set(_FIXED_PORT_WORDS))
    return (f"its port is {', '.join(moving)}",) if moving else NO


def _in_program(given: str | None, programs: Iterable[str] | None) -> Doubts | None:
    if given is None:
        return ()
    if programs is None:
        return (f"it is for the program {given}",)
    found = program_path(given)
    doubts: Doubts | None = NO
    for program in programs:
        ours = program_path(program)
        if found == ours:
            return ()
        if _may_be(found, ours):
            doubts = (f"{given} may be the program",)
    return doubts


def program_path(path: str) -> str:
    """The spelling under which paths of programs compare: no quotes, ``\\\\?\\``, case, ``.`` and ``..``."""
    parts: list[str] = []
    for part in normal_path(path.strip().strip('"')).split("\\"):
        if part == ".." and len(parts) > 1:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "\\".join(parts)


def _may_be(found: str, ours: str) -> bool:
    """True when a variable, a volume or a short name in a path can make it the other one."""
    if "%" in found:
        return ours.endswith(found.rpartition("%")[2])
    if found.startswith("\\device\\"):
        return found.endswith(ours[2:])
    if "~" not in found or found.count("\\") != ours.count("\\"):
        return False
    pairs = zip(found.split("\\"), ours.split("\\"), strict=True)
    return all(one == other or "~" in one for one, other in pairs)
