"""What holds on a firewall profile when the machine, Group Policy and a device manager have their say.

Sources: MS-FASP 2.2.39 (profile settings and their defaults), MS-GPFAS 2.2.2 (names of the policy values). A
value of a policy replaces the local one (dsccommunity/NetworkingDsc#327: the local one "does not stick").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from winfleet.answer import Model
from winfleet.firewall.model import FirewallProfile

POLICY_STORES = {"GroupPolicy": "Group Policy", "Mdm": "the device manager (MDM)"}
# Value name: what holds where nobody has set it. Inbound action 1 is block, 0 is allow.
_DEFAULTS = {
    "EnableFirewall": 1,
    "DefaultInboundAction": 1,
    "DoNotAllowExceptions": 0,
    "AllowLocalPolicyMerge": 1,
    "DisableNotifications": 0,
}
_POLICY_ONLY = frozenset({"AllowLocalPolicyMerge"})


@dataclass(frozen=True)
class ProfileSettings(Model):
    """The settings in force on one profile.

    Attributes: profile, enabled, allows_by_default (what no rule names is let in), shields_up (Allow rules do
    not count), local_rules (rules of the local store count), notifies (a program that listens for the first
    time makes Windows ask, and write rules), managed (value name -> who manages it), unknown (why the
    settings cannot be told; empty: they can).
    """

    profile: str
    enabled: bool
    allows_by_default: bool
    shields_up: bool
    local_rules: bool
    notifies: bool
    managed: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def manager(self, value: str) -> str | None:
        """Who manages that value, in words; None: the box itself."""
        return self.managed.get(value)


def settings_of(profile: str, profiles: Iterable[FirewallProfile]) -> ProfileSettings:
    """The settings in force on "domain", "private" or "public"."""
    stores: dict[str, list[Mapping[str, object]]] = {}
    for one in profiles:
        if one.name == profile:
            stores.setdefault(one.store, []).append(one.values)
    unknown = [] if stores else [f"no settings of the profile {profile} were found"]
    held: dict[str, int] = {}
    managed: dict[str, str] = {}
    for name, default in _DEFAULTS.items():
        given: list[tuple[str, object]] = [
            (store, values[name])
            for store in (*POLICY_STORES, *(() if name in _POLICY_ONLY else ("Local",)))
            for values in stores.get(store, [])
            if values.get(name) is not None
        ]
        policy = [(store, value) for store, value in given if store in POLICY_STORES]
        deciding = policy or given
        numbers = {_number(value) for _, value in deciding}
        if policy:
            managed[name] = " and ".join(dict.fromkeys(POLICY_STORES[store] for store, _ in policy))
        if len(numbers) > 1:
            unknown.append(f"the policies of the profile {profile} disagree about {name}")
        elif numbers and not numbers <= {0, 1}:
            unknown.append(f"{name} of the profile {profile} is {deciding[0][1]!r}, which is not known")
        # With an unknown among them the numbers decide nothing: `unknown` tells so.
        held[name] = (max(numbers, key=lambda number: number or 0) or 0) if numbers else default
    return ProfileSettings(
        profile,
        enabled=held["EnableFirewall"] == 1,
        allows_by_default=held["DefaultInboundAction"] == 0,
        shields_up=held["DoNotAllowExceptions"] == 1,
        local_rules=held["AllowLocalPolicyMerge"] == 1,
        notifies=held["DisableNotifications"] == 0,
        managed=managed,
        unknown=tuple(unknown),
    )


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value)
    return int(text) if text.isdigit() else None
