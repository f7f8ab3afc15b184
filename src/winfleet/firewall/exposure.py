"""Who can reach a port of a box: what all firewall rules, profiles and defaults together let through.

The algorithm (docs/facts/windows.md#effective-exposure): Block beats Allow beats the default of the
profile; a profile that is off lets everything in and its Block rules do nothing; shields up leaves only rules
that let authenticated computers past Block rules. A rule that may apply or not widens what is possible and
narrows what is certain, so between the two lies what nobody can tell without asking Windows.

Connections from the box to itself pass no filter (a test from there proves nothing), and so they are in no
answer here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from winfleet.answer import Model
from winfleet.firewall.model import ALL_PROFILES, Connection, FirewallState
from winfleet.firewall.rule_string import FirewallRule
from winfleet.firewall.scope import LINK_LOCAL, TAILNET, Doubts, Endpoint, at_endpoint, extent, for_listener
from winfleet.firewall.settings import ProfileSettings, settings_of
from winfleet.network.networks import NetworkSet

# Tailscale makes its adapter with this GUID on every machine (docs/facts/windows.md#tailscale).
TAILSCALE_GUID = "37217669-42da-4657-a55b-0d995d328250"
_CATEGORIES = {"public": "public", "private": "private", "domainauthenticated": "domain", "domain": "domain"}
_LOOPBACK = NetworkSet.parse(["127.0.0.0/8", "::1"])
# RFC 1918 and, for IPv6, RFC 4193.
_PRIVATE = NetworkSet.parse(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"])
# Nobody sends from these: this network, multicast, reserved, unspecified.
_NO_SENDERS = NetworkSet.parse(["0.0.0.0/8", "224.0.0.0/3", "::", "ff00::/8"])


@dataclass(frozen=True)
class Share(Model):
    """A rule's part in an answer.

    Attributes: rule, remote (the addresses that it is about, at that endpoint), doubts (why it may not apply;
    empty: it does).
    """

    rule: FirewallRule
    remote: NetworkSet
    doubts: Doubts = ()


@dataclass(frozen=True)
class Row(Model):
    """Who reaches the port at one address while one profile is in force there.

    Attributes: endpoint, current (that profile is in force there now), settings, exposed (who gets in for
    certain), possible (who may get in; holds exposed), allowed_by and blocked_by (the rules that have a part
    in it), left_out (rules that would apply but for the policy that switches local rules off), unknown (why
    nothing is certain here; empty: the rules tell).
    """

    endpoint: Endpoint
    current: bool
    settings: ProfileSettings
    exposed: NetworkSet
    possible: NetworkSet
    allowed_by: tuple[Share, ...] = ()
    blocked_by: tuple[Share, ...] = ()
    left_out: tuple[FirewallRule, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def classes(self) -> dict[str, NetworkSet]:
        """`exposed` by what it is, see `classified`."""
        return classified(self.exposed, self.endpoint)

    @property
    def rule_names(self) -> tuple[str, ...]:
        """The names of the rules that let somebody in."""
        return tuple(dict.fromkeys(share.rule.name for share in self.allowed_by))

    def doubts(self) -> tuple[str, ...]:
        """Why `possible` is more than `exposed`."""
        doubtful = [share for share in (*self.allowed_by, *self.blocked_by) if share.doubts]
        return (*self.unknown, *(f"rule {one.rule.name}: {', '.join(one.doubts)}" for one in doubtful))

    def __str__(self) -> str:
        end = self.endpoint
        return f"{end.address} ({end.alias or 'no adapter'}, {end.profile})"


@dataclass(frozen=True)
class Exposure(Model):
    """Who reaches a TCP port. Attributes: port, programs, rows (each address with each profile)."""

    port: int
    programs: tuple[str, ...] | None
    rows: tuple[Row, ...] = field(default_factory=tuple)

    @property
    def current(self) -> tuple[Row, ...]:
        """The rows of the profiles in force."""
        return tuple(row for row in self.rows if row.current)


def exposure(firewall: FirewallState, port: int, program: str | Sequence[str] | None = None) -> Exposure:
    """Who can reach TCP port of a program, at each address of the box and under each profile.

    Args:
        firewall: the fact. port: 1 to 65535. program: full path, or all full paths that lead to it (through a
        junction, say); None: not known, so a rule for any program may be for this one.

    Example::

        [row.classes for row in exposure(read(FirewallState), 8080, r"C:\\\\ninfer\\\\ninfer-serve.exe").current]
    """
    programs = (program,) if isinstance(program, str) else None if program is None else tuple(program)
    candidates = [
        (rule, doubts)
        for rule in firewall.rules
        if (doubts := for_listener(rule, port, programs)) is not None
    ]
    settings = {profile: settings_of(profile, firewall.profiles) for profile in sorted(ALL_PROFILES)}
    unknown = (*_blind_spots(firewall), *_forwards(firewall, port))
    rows = tuple(
        _row(endpoint, current, settings[endpoint.profile], candidates, unknown)
        for endpoint, current in endpoints(firewall.connections)
    )
    return Exposure(port, programs, rows)


def endpoints(connections: Sequence[Connection]) -> Iterator[tuple[Endpoint, bool]]:
    """Every address with every profile, and whether that profile is in force there.

    Of a connection whose category is not known, each profile may be. A box without connections is looked at
    as if it had an address of each version, so that the rules are still held against what is declared.
    """
    shown = connections or (Connection("", None, None, ("0.0.0.0", "::")),)
    on_link = {one: _on_link(one) for one in shown}
    anywhere: NetworkSet | None = NetworkSet()
    for network in on_link.values():
        anywhere = None if anywhere is None or network is None else anywhere | network
    for connection in shown:
        for address in connection.addresses:
            plain = address.partition("%")[0]
            for profile in sorted(ALL_PROFILES):
                endpoint = Endpoint(
                    connection.alias,
                    connection.guid,
                    plain,
                    profile,
                    tailscale=_is_tailscale(connection, plain),
                    on_link=on_link[connection],
                    on_link_anywhere=anywhere,
                )
                in_force = _CATEGORIES.get((connection.category or "").casefold())
                yield endpoint, in_force in (None, profile)


def classified(networks: NetworkSet, endpoint: Endpoint) -> dict[str, NetworkSet]:
    """networks by what they are; each address in one class, classes without addresses left out.

    "loopback", "tailscale", "carrier-nat" (100.64.0.0/10 where it is not Tailscale's), "local-subnet" (on
    that adapter), "rfc1918" (with IPv6's RFC 4193), and the rest: "internet-any" when it is all of the
    internet, else "internet".
    """
    on_link = endpoint.on_link or NetworkSet()
    neighbours = not endpoint.tailscale and endpoint.address in TAILNET and endpoint.version == 4
    kinds = [
        ("loopback", _LOOPBACK),
        ("carrier-nat" if neighbours else "tailscale", TAILNET),
        ("local-subnet", on_link | LINK_LOCAL),
        ("rfc1918", _PRIVATE),
    ]
    found: dict[str, NetworkSet] = {}
    internet = NetworkSet.family(endpoint.version) - _NO_SENDERS
    rest = networks.of_family(endpoint.version) - _NO_SENDERS
    for name, kind in kinds:
        if part := rest & kind:
            found[name] = part
        rest, internet = rest - kind, internet - kind
    if rest:
        found["internet" if internet - rest else "internet-any"] = rest
    return found


def _row(
    endpoint: Endpoint,
    current: bool,
    settings: ProfileSettings,
    candidates: Sequence[tuple[FirewallRule, Doubts]],
    unknown: tuple[str, ...],
) -> Row:
    everybody, nobody = endpoint.senders, NetworkSet()
    unknown = (*unknown, *settings.unknown)
    if not settings.enabled and not unknown:
        return Row(endpoint, current, settings, everybody, everybody)
    # What is let in, kept out and let past a Block rule: for certain, and perhaps.
    allow_sure, allow_may = [nobody], [nobody]
    block_sure, block_may = [nobody], [nobody]
    past_block = [nobody]
    if settings.allows_by_default and not settings.shields_up:
        allow_sure, allow_may = [everybody], [everybody]
    allowed, blocked, left_out = [], [], []
    for rule, doubts in candidates:
        there = at_endpoint(rule, endpoint)
        if there is None:
            continue
        if rule.store == "Local" and not settings.local_rules:
            left_out.append(rule)
            continue
        remote = extent(rule.remote, endpoint)
        may = remote.possible & everybody
        sure = nobody if doubts or there else remote.certain & everybody
        reasons = (*doubts, *there)
        if remote.certain != remote.possible:
            reasons = (*reasons, f"only Windows knows what {', '.join(sorted(rule.remote.keywords))} is")
        if rule.action == "bypass":
            # It asks for a computer that proves by IPsec who it is: perhaps there is one.
            past_block.append(may)
            allowed.append(Share(rule, may, (*reasons, "it is for authenticated computers")))
            continue
        if rule.action in ("allow", "unknown") and not settings.shields_up:
            allow_sure.append(sure)
            allow_may.append(may)
            allowed.append(Share(rule, may, reasons))
        if rule.action in ("block", "unknown"):
            block_sure.append(sure)
            block_may.append(may)
            blocked.append(Share(rule, may, reasons))
    allowable = NetworkSet.union(allow_may)
    exposed = NetworkSet.union(allow_sure) - NetworkSet.union(block_may)
    possible = NetworkSet.union([allowable - NetworkSet.union(block_sure), *past_block])
    if unknown:
        exposed, possible = nobody, everybody
    return Row(
        endpoint,
        current,
        settings,
        exposed,
        possible,
        tuple(share for share in allowed if share.remote.meets(possible)),
        tuple(share for share in blocked if share.remote.meets(allowable)),
        tuple(left_out),
        unknown,
    )


def _on_link(connection: Connection) -> NetworkSet | None:
    prefixes = list(connection.prefixes)
    if len(prefixes) < len(connection.addresses):
        return None
    return NetworkSet.parse(prefixes)


def _is_tailscale(connection: Connection, address: str) -> bool:
    if connection.guid is None:
        is_its_adapter = connection.alias.casefold() == "tailscale"
    else:
        is_its_adapter = connection.guid.strip("{}").casefold() == TAILSCALE_GUID
    return is_its_adapter and (address in TAILNET or ipaddress.ip_address(address).is_link_local)


def _blind_spots(firewall: FirewallState) -> Iterator[str]:
    if (firewall.service_status or "").casefold() != "running":
        yield f"the firewall service (MpsSvc) is {firewall.service_status or 'not there'}"
    for product in firewall.products or ():
        if product.on:
            yield f"another firewall is registered: {product.name}"
    yield from firewall.unreadable


def _forwards(firewall: FirewallState, port: int) -> Iterator[str]:
    for proxy in firewall.proxies:
        if proxy.connect_port in (None, port):
            yield f"a port proxy ({proxy.kind}) brings connections to {proxy.listen} on to {proxy.connect}"


def shadowers(row: Row, networks: NetworkSet) -> Mapping[str, Share]:
    """The Block rules that take some of networks from the row, by name."""
    return {share.rule.name: share for share in row.blocked_by if share.remote.meets(networks)}
