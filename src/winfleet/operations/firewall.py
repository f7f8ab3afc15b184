"""Windows Firewall rules.

A rule is known by its Name, which begins with ``ninfer-fleet-``; a DisplayName names nothing, several rules
may carry it (ansible/ansible#32478). Rules of others are never changed.

Example::

    firewall.rules(rules=[Rule(
        name="ninfer-fleet-serve", display_name="NInfer", local_ports=(8080,),
        remote=("100.64.0.0/10", "fd7a:115c:a1e0::/48"),
    )])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyinfra import logger

from winfleet import diff
from winfleet.calls import Call
from winfleet.current import box, run
from winfleet.facts import read
from winfleet.facts.firewall import Firewall
from winfleet.models import firewall as model
from winfleet.models.answer import Difference
from winfleet.models.firewall_rule import FIELDS, Rule, rule_differences, shadowing
from winfleet.refusal import BoxError, Refused, box_operation

__all__ = ["Rule", "absent", "rules"]


@box_operation()
def rules(rules: Sequence[Rule], purge: bool = False) -> Iterator[Any]:
    """Firewall rules that must be there, each exactly so.

    Args:
        rules: the declared rules, compared by meaning (networks, ports, profiles as sets) and updated in
        place. purge: remove our other rules, each named in the plan; rules of others stay.
    """
    faults = [fault for rule in rules for fault in rule.faults()]
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
    _warn_of_shadows(found, rules)
    extra = [rule for rule in found.own() if rule.name.lower() not in names] if purge else []
    for other in extra:
        gone = [Difference(one.field, one.found, None) for one in _described(other)]
        diff.show(
            f"Will remove firewall rule {diff.bold(other.name)}", diff.field_lines(gone), other.display_name
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


def _warn_of_shadows(found: model.Firewall, rules: Sequence[Rule]) -> None:
    """A finding, no change: rules of others are theirs."""
    for rule in rules:
        for other in shadowing(found.rules, rule):
            program = f", program {other.program}" if other.program else ""
            logger.warning(
                f"{box().print_prefix}firewall rule {rule.name} is shadowed by the Block rule {other.name}"
                f" ({other.store}{program}); switch that one off with firewall.disabled"
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
def absent(names: Sequence[str]) -> Iterator[Any]:
    """Rules of ours that must not be there."""
    foreign = [name for name in names if not name.lower().startswith(model.OWN_PREFIX)]
    if foreign:
        raise Refused(f"not ours to remove: {', '.join(foreign)}; our rules begin with {model.OWN_PREFIX!r}")
    found = read(Firewall)
    present = [rule for name in names if (rule := found.local_rule(name)) is not None]
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
