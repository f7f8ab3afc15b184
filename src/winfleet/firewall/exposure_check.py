"""Is a port open to the declared networks, and to nobody else? Each fault in words, with its remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from winfleet.firewall.exposure import Exposure, Row, Share, classified, shadowers
from winfleet.firewall.model import FirewallState
from winfleet.firewall.rule_string import FirewallRule
from winfleet.firewall.scope import extent, program_path
from winfleet.firewall.settings import POLICY_STORES
from winfleet.network.networks import NetworkSet
from winfleet.owner import Owner

# The names that Windows gives to the rules it writes when a program listens for the first time
# (docs/facts/windows.md#first-listen-rules).
_QUERY_USER = re.compile(r"(?:TCP|UDP) Query User\{", re.IGNORECASE)


def query_user_rules(firewall: FirewallState, programs: Iterable[str]) -> list[FirewallRule]:
    """The enabled rules that a first-listen prompt left behind for one of these paths."""
    ours = {program_path(program) for program in programs}
    return [
        rule
        for rule in firewall.rules
        if is_query_user(rule) and rule.enabled and rule.program and program_path(rule.program) in ours
    ]


def is_query_user(rule: FirewallRule) -> bool:
    """True for a rule that Windows wrote when a program listened for the first time."""
    return rule.store == "Local" and _QUERY_USER.match(rule.name) is not None


def faults(exposure: Exposure, networks: Sequence[str], owner: Owner | None = None) -> list[str]:
    """Where the port is open to others than networks, may be so, or is closed to them; empty: nowhere.

    A declared network must get in at the addresses of the box that lie in it (the tailnet, at the node's own
    address); one that holds no address of the box, at some address. One whose IP version the box has no
    address of is passed over. owner: whose rules are told as ones that are declared; None: nobody's.
    """
    found = [fault for row in exposure.current for fault in _surplus(row, networks, owner)]
    for entry in networks:
        found += _closed(exposure.current, entry, owner)
    return list(dict.fromkeys(found))


def warnings(exposure: Exposure, networks: Sequence[str]) -> list[str]:
    """What is as declared and still not what one expects."""
    declared = NetworkSet.parse(networks)
    return list(
        dict.fromkeys(
            f"{row.endpoint.address} ({row.endpoint.alias}) lies in 100.64.0.0/10, but the adapter is not "
            f"Tailscale's: neighbours behind the same carrier NAT reach TCP port {exposure.port}; bind the "
            f"rule to the adapter with interfaces=('Tailscale',)"
            for row in exposure.current
            if row.classes.get("carrier-nat", NetworkSet()) & declared
        )
    )


def _surplus(row: Row, networks: Sequence[str], owner: Owner | None) -> Iterator[str]:
    declared = extent(NetworkSet.parse(networks), row.endpoint).possible
    if surplus := row.exposed - declared:
        kinds = classified(surplus, row.endpoint)
        what = ", ".join(_class(name, part) for name, part in kinds.items() if name != "loopback")
        yield f"open to others at {row}: {what or surplus}; {_causes(row, surplus, owner)}"
    elif surplus := row.possible - declared:
        yield f"cannot tell who gets in at {row}: {_doubts(row, surplus, owner)}"


def _class(name: str, networks: NetworkSet) -> str:
    """The class, with its addresses when they are few."""
    text = str(networks)
    return name if name == "internet-any" or len(text) > 60 else f"{name} ({text})"


def _causes(row: Row, surplus: NetworkSet, owner: Owner | None) -> str:
    settings = row.settings
    name = settings.profile.capitalize()
    if not settings.enabled:
        mend = f"Set-NetFirewallProfile -Profile {name} -Enabled True"
        return f"the firewall is off there. Remedy: {_by_policy(row, 'EnableFirewall') or mend}"
    meeting = [share for share in row.allowed_by if share.remote.meets(surplus)]
    # A rule with a doubt (how far "LocalSubnet" reaches) still is the cause of what it certainly lets in.
    shares = [share for share in meeting if not share.doubts] or meeting
    if settings.allows_by_default and not settings.shields_up:
        mend = f"Set-NetFirewallProfile -Profile {name} -DefaultInboundAction Block"
        mend = _by_policy(row, "DefaultInboundAction") or mend
        return f"what no rule names is let in there by default. Remedy: {mend}"
    return "; ".join(f"rule {_named(share.rule)}. Remedy: {remedy(share.rule, owner)}" for share in shares)


def _doubts(row: Row, surplus: NetworkSet, owner: Owner | None) -> str:
    if row.unknown:
        return "; ".join(f"{reason}. Remedy: {_unknown_remedy(reason)}" for reason in row.unknown)
    shares = [share for share in row.allowed_by if share.doubts and share.remote.meets(surplus)]
    shares += [
        share for share in row.blocked_by if share.doubts and share.remote.meets(surplus) and not shares
    ]
    return "; ".join(_doubtful(share, owner) for share in shares)


def _doubtful(share: Share, owner: Owner | None) -> str:
    kind = "would let them in" if share.rule.action == "allow" else f"has the action {share.rule.action}"
    why = ", ".join(share.doubts)
    return f"rule {_named(share.rule)} {kind}, but {why}. Remedy: {remedy(share.rule, owner)}"


def _unknown_remedy(reason: str) -> str:
    if "port proxy" in reason:
        return "take it away with 'netsh interface portproxy delete', or serve on another port"
    if "MpsSvc" in reason:
        return "start the service; Windows does not support running without it"
    if "another firewall" in reason:
        return "remove it, or see to it there and leave this check out"
    if "policies" in reason:
        return "make the policies agree"
    return "look at that value of the registry, and correct or delete it"


def _named(rule: FirewallRule) -> str:
    store = "" if rule.store == "Local" else f" of {POLICY_STORES.get(rule.store, rule.store)}"
    program = f" for {rule.program}" if rule.program else " for any program"
    return f"'{rule.name}'{store} ({rule.display_name or 'without a display name'},{program})"


def remedy(rule: FirewallRule, owner: Owner | None = None) -> str:
    """What to do about a rule that stands in the way."""
    if rule.store in POLICY_STORES:
        return f"have it changed in {POLICY_STORES[rule.store]}; a change on the box does not last"
    if is_query_user(rule):
        return (
            "a first-listen prompt left it; have exposed_only_to switch it off with disable_query_user=True, "
            f"or use firewall.disabled(names=[{rule.name!r}])"
        )
    if owner is not None and owner.owns(rule.name):
        return "declare it narrower in firewall.rules, or remove it with firewall.absent"
    return f"narrow it on the box, or switch it off with firewall.disabled(names=[{rule.name!r}])"


def _closed(rows: Sequence[Row], entry: str, owner: Owner | None) -> Iterator[str]:
    wanted = NetworkSet.parse([entry])
    missing: list[tuple[Row, NetworkSet]] = []
    for row in rows:
        certain = extent(wanted, row.endpoint).certain & row.endpoint.senders
        if certain or wanted.keywords:
            missing.append((row, certain - row.exposed))
    inside = [(row, gap) for row, gap in missing if row.endpoint.address in wanted]
    if not inside and any(not gap for _, gap in missing):
        return
    for row, gap in inside or missing:
        if gap:
            yield f"closed to {gap} at {row}: {_why_closed(row, gap, owner)}"


def _why_closed(row: Row, gap: NetworkSet, owner: Owner | None) -> str:
    if row.unknown:
        return "; ".join(row.unknown)
    if row.settings.shields_up:
        mend = f"Set-NetFirewallProfile -Profile {row.settings.profile.capitalize()} -AllowInboundRules True"
        mend = _by_policy(row, "DoNotAllowExceptions") or mend
        return f"the profile lets in nobody, whatever the rules say (shields up). Remedy: {mend}"
    in_the_way = shadowers(row, gap)
    if in_the_way:
        return "; ".join(
            f"shadowed by the Block rule {_named(share.rule)}"
            f"{', perhaps: ' + ', '.join(share.doubts) if share.doubts else ''}. Remedy: {remedy(share.rule, owner)}"
            for share in in_the_way.values()
        )
    if row.left_out:
        names = ", ".join(f"'{rule.name}'" for rule in row.left_out)
        by = _by_policy(row, "AllowLocalPolicyMerge")
        return f"local rules do not count there (AllowLocalPolicyMerge), so not {names}. Remedy: {by}"
    perhaps = [share for share in row.allowed_by if share.doubts and share.remote.meets(gap)]
    if perhaps:
        return "; ".join(_doubtful(share, owner) for share in perhaps)
    return "no rule lets it in. Remedy: declare one with firewall.rules, for any profile"


def _by_policy(row: Row, value: str) -> str | None:
    manager = row.settings.manager(value)
    return None if manager is None else f"managed by {manager}: have {value} changed there"
