"""Windows Firewall rules.

A rule is known by its Name, which begins with the prefix of its owner; a DisplayName names nothing, several
rules may carry it (ansible/ansible#32478). Rules of others are never changed.

Example::

    owner = Owner(name="Acme", prefix="acme-", description="Managed by acme's deploy")
    rule = Rule(
        name="acme-agent", display_name="Agent", local_ports=(8080,),
        remote=("100.64.0.0/10", "fd7a:115c:a1e0::/48"),
    )
    firewall.rules(rules=[rule], owner=owner)
    firewall.exposed_only_to(
        port=8080, networks=rule.remote, program=r"C:\\acme\\agent.exe", rules=[rule],
    )
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyinfra import logger

from winfleet import diff
from winfleet.answer import Difference, ModelError
from winfleet.call import Call
from winfleet.current import box, run
from winfleet.fact import read
from winfleet.firewall import exposure_check, model
from winfleet.firewall.exposure import exposure
from winfleet.firewall.fact import Firewall
from winfleet.firewall.rule import FIELDS, Rule, foreign_overlaps, namesakes, rule_differences, shadowing
from winfleet.firewall.settings import settings_of
from winfleet.network.networks import NetworkSet
from winfleet.operation import box_operation
from winfleet.owner import Owner
from winfleet.path import absolute_path
from winfleet.refusal import BoxError, Refused

__all__ = ["Rule", "absent", "disabled", "exposed_only_to", "rules"]


@box_operation()
def rules(rules: Sequence[Rule], owner: Owner, purge: bool = False) -> Iterator[Any]:
    """Firewall rules that must be there, each exactly so.

    Args:
        rules: the declared rules, compared by meaning (networks, ports, profiles as sets) and updated in
            place; a second rule that an interrupted change of one left behind is removed.
        owner: whose rules these are; each name begins with its prefix, and a rule without a description gets its.
        purge: remove the owner's other rules, each named in the plan; rules of others stay.
    """
    faults = [
        f"the name {rule.name!r} must begin with {owner.prefix!r}: rules of others are never changed"
        for rule in rules
        if not owner.owns(rule.name)
    ]
    rules = [rule if rule.description else replace(rule, description=owner.description) for rule in rules]
    faults += [fault for rule in rules for fault in rule.faults()]
    names = [rule.name.lower() for rule in rules]
    faults += [
        f"the rule name {name!r} is declared twice" for name in sorted(set(names)) if names.count(name) > 1
    ]
    if faults:
        raise Refused("; ".join(faults))
    found = read(Firewall)
    changed: list[Rule] = []
    for rule in rules:
        observed = found.local_rule(rule.name)
        differences = rule_differences(observed, rule, found.connections)
        if differences:
            changed.append(rule)
            verb = "create" if observed is None else "modify"
            diff.show(
                f"Will {verb} firewall rule {diff.bold(rule.name)}",
                diff.field_lines(differences),
                diff.named(differences),
            )
    _tell_findings(found, rules, owner)
    extra = (
        [rule for rule in found.own(owner) if rule.name.lower() not in names]
        if purge
        else found.spares(names)
    )
    for other in extra:
        diff.show(
            f"Will remove firewall rule {diff.bold(other.name)}",
            diff.field_lines(_described(other)),
            other.display_name,
        )
    if not changed and not extra:
        box().noop(f"{len(rules)} firewall rules are as declared")
        return
    for rule in changed:
        yield Call("Set-BoxFirewallRule", **rule.parameters())
    if extra:
        yield Call("Remove-BoxFirewallRule", Name=[rule.name for rule in extra])
    if changed and run().is_executing:
        _check_written(changed)


def _tell_findings(found: model.FirewallState, rules: Sequence[Rule], owner: Owner) -> None:
    """Findings, no change: rules of others are theirs, and a policy cannot be changed from the box."""
    prefix = box().print_prefix
    for rule in rules:
        for other in shadowing(found.rules, rule):
            program = f", program {other.program}" if other.program else ""
            logger.warning(
                f"{prefix}firewall rule {rule.name} is shadowed by the Block rule {other.name}"
                f" ({other.store}{program}); switch that one off with firewall.disabled"
            )
        for other in namesakes(found.rules, rule, owner):
            logger.warning(
                f"{prefix}firewall rule {other.name} is not ours, but has the display name of {rule.name}"
                f" ({rule.display_name}); it is left as it is"
            )
        for other in foreign_overlaps(found.rules, rule, owner):
            logger.info(
                f"{prefix}firewall rule {other.name} ({other.display_name}, {other.store}) is not ours and"
                f" opens ports of {rule.name} as well, to {other.remote}"
            )
        for profile in sorted(rule.rule().profiles):
            settings = settings_of(profile, found.profiles)
            if rule.enabled and not settings.local_rules:
                logger.warning(
                    f"{prefix}firewall rule {rule.name} has no effect on the profile {profile}:"
                    f" {settings.manager('AllowLocalPolicyMerge')} lets no local rule count there"
                    f" (AllowLocalPolicyMerge); managed there, so have the rule added there"
                )


def _described(rule: model.FirewallRule) -> list[Difference]:
    return [Difference(name, show(rule, {}), None) for name, show in FIELDS]


def _check_written(changed: Sequence[Rule]) -> None:
    after = read(Firewall)
    for rule in changed:
        left = rule_differences(after.local_rule(rule.name), rule, after.connections)
        if left:
            what = "; ".join(f"{one.field}: {one.found} instead of {one.wanted}" for one in left)
            raise BoxError(f"Windows did not keep the firewall rule {rule.name} as written ({what})")


@box_operation()
def absent(names: Sequence[str], owner: Owner) -> Iterator[Any]:
    """Rules of the owner that must not be there, nor the second rule of one that an interrupted change left
    behind.

    Args:
        names: of the rules.
        owner: whose they are; a name that does not begin with its prefix is refused.
    """
    foreign = [name for name in names if not owner.owns(name)]
    if foreign:
        raise Refused(f"not ours to remove: {', '.join(foreign)}; our rules begin with {owner.prefix!r}")
    found = read(Firewall)
    present = [rule for name in names if (rule := found.local_rule(name)) is not None]
    present += found.spares(names)
    for rule in present:
        diff.show(f"Will remove firewall rule {diff.bold(rule.name)}", diff.field_lines(_described(rule)))
    if not present:
        box().noop("no such firewall rules")
        return
    yield Call("Remove-BoxFirewallRule", Name=[rule.name for rule in present])


@box_operation()
def disabled(names: Sequence[str]) -> Iterator[Any]:
    """Rules, also those of others, that must be switched off: the ones a first-listen prompt left behind,
    say."""
    found = read(Firewall)
    active = [rule for name in names if (rule := found.local_rule(name)) is not None and rule.enabled]
    for rule in active:
        lines = diff.field_lines([Difference("enabled", "true", "false")])
        diff.show(f"Will disable firewall rule {diff.bold(rule.name)}", lines, rule.display_name)
    if not active:
        box().noop("those firewall rules are off or not there")
        return
    yield Call("Disable-BoxFirewallRule", Name=[rule.name for rule in active])


@box_operation()
def exposed_only_to(
    port: int,
    networks: Sequence[str],
    program: str | Sequence[str] | None = None,
    disable_query_user: bool = False,
    rules: Sequence[Rule] = (),
    owner: Owner | None = None,
) -> Iterator[Any]:
    """TCP port must be open to these networks and to nobody else, whatever rules, profiles and policies say.

    Otherwise the box fails, with the rules that are responsible and what to do about each.

    Args:
        port: of the listener.
        networks: who must get in, and nobody else.
        program: full path of the listener, or every full path that leads to it (one through a junction, say); not
            given: rules for any program count as perhaps its own.
        disable_query_user: switch off the rules that Windows wrote when that program first listened ("TCP Query
            User..."), each named in the plan.
        rules: the rules that an earlier operation of the same deploy sets: while planning they count as set.
        owner: whose rules have their remedy in what this deploy declares; None: every rule is somebody else's.
    """
    programs = [program] if isinstance(program, str) else None if program is None else list(program)
    _refuse_senseless(port, networks, programs, disable_query_user)
    found = read(Firewall)
    left_behind = exposure_check.query_user_rules(found, programs or ()) if disable_query_user else []
    expected = _with_rules(found, () if run().is_executing else rules)
    gone = {rule.name for rule in left_behind}
    _assert_exposed(
        replace(
            expected,
            rules=tuple(rule for rule in expected.rules if rule.store != "Local" or rule.name not in gone),
        ),
        port,
        networks,
        programs,
        owner,
    )
    for rule in left_behind:
        lines = diff.field_lines([Difference("enabled", "true", "false")])
        diff.show(f"Will disable firewall rule {diff.bold(rule.name)}", lines, rule.display_name)
    if not left_behind:
        who = ", ".join(networks)
        box().noop(f"TCP port {port} is open to {who} alone")
        return
    yield Call("Disable-BoxFirewallRule", Name=[rule.name for rule in left_behind])
    if run().is_executing:
        _assert_exposed(read(Firewall), port, networks, programs, owner)


def _refuse_senseless(
    port: int, networks: Sequence[str], programs: Sequence[str] | None, disable_query_user: bool
) -> None:
    if not 1 <= port <= 65535:
        raise Refused(f"{port} is no TCP port")
    try:
        declared = NetworkSet.parse(networks)
    except ModelError as error:
        raise Refused(str(error)) from error
    if not declared or declared.is_wide:
        raise Refused(
            f"networks is {declared}: name those that must get in; of everybody there is nothing to check"
        )
    for path in programs or ():
        if not absolute_path(path):
            raise Refused(f"{path!r} is no full path; rules name programs by full paths")
    if disable_query_user and not programs:
        raise Refused("disable_query_user needs program: rules of other programs are never switched off")


def _with_rules(found: model.FirewallState, rules: Sequence[Rule]) -> model.FirewallState:
    declared = [rule.rule() for rule in rules if not rule.faults()]
    names = {rule.name.lower() for rule in declared}
    names |= {rule.name.lower() for rule in found.spares(names)}
    kept = [rule for rule in found.rules if rule.store != "Local" or rule.name.lower() not in names]
    return replace(found, rules=(*kept, *declared))


def _assert_exposed(
    found: model.FirewallState,
    port: int,
    networks: Sequence[str],
    programs: Sequence[str] | None,
    owner: Owner | None,
) -> None:
    seen = exposure(found, port, programs)
    for warning in exposure_check.warnings(seen, networks):
        logger.warning(f"{box().print_prefix}{warning}")
    faults = exposure_check.faults(seen, networks, owner)
    if faults:
        who = ", ".join(networks)
        raise BoxError(
            "\n  ".join([f"TCP port {port} must be open to {who} and to nobody else, but it is", *faults])
        )
