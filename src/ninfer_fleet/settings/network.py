"""Who may reach the server."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field, field_validator

from ninfer_fleet.owner import OWNER
from ninfer_fleet.settings.trap import Values, refuse
from winfleet.firewall.model import SPARE_SUFFIX

MOST_PUBLIC_V4, MOST_PUBLIC_V6 = 2**24, 2**112
_PRIVATE_V4 = [
    ipaddress.IPv4Network(text)
    for text in (
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
    )
]
_PRIVATE_V6 = [ipaddress.IPv6Network(text) for text in ("fc00::/7", "fe80::/10", "::1/128")]
# Mapped, NAT64, 6to4 and Teredo.
_IPV4_IN_IPV6 = [
    ipaddress.IPv6Network(text) for text in ("::ffff:0:0/96", "64:ff9b::/96", "2002::/16", "2001::/32")
]


class Network(Values):
    """Who reaches the server: its firewall rule, and the check that nobody else does."""

    rule_name: str = Field(
        default="ninfer-fleet-serve",
        max_length=120,
        description="the rule's own Name, begins with ninfer-fleet-",
    )
    allowed: tuple[str, ...] = Field(
        default=("100.64.0.0/10", "fd7a:115c:a1e0::/48"),
        min_length=1,
        description="Tailscale's two address ranges",
    )
    disable_query_user: bool = Field(
        default=False,
        description="switch off the rules that Windows wrote when the server first listened; they open or "
        "close every port of it to everybody",
    )

    @field_validator("allowed")
    @classmethod
    def _networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        found = [_network(text) for text in networks]
        v4 = [one for one in found if isinstance(one, ipaddress.IPv4Network)]
        v6 = [one for one in found if isinstance(one, ipaddress.IPv6Network)]
        # The union counts: two halves of the internet are all of it.
        if _public(v4, _PRIVATE_V4) > MOST_PUBLIC_V4 or _public(v6, _PRIVATE_V6) > MOST_PUBLIC_V6:
            few = ", ".join(networks[:4]) + (f" and {len(networks) - 4} more" if len(networks) > 4 else "")
            raise refuse(
                f"{few} together lets nearly everybody in (more public addresses than an IPv4 /8"
                " or an IPv6 /16); only the key would stand between the GPU and the internet",
                "use Tailscale's 100.64.0.0/10 and fd7a:115c:a1e0::/48, or your own network",
            )
        for stranger in (one for one in v6 if any(one.overlaps(other) for other in _IPV4_IN_IPV6)):
            raise refuse(
                f"{stranger} stands for IPv4 addresses in IPv6 clothes, and may let all of the internet in",
                "declare the IPv4 network itself, such as 100.64.0.0/10",
            )
        return networks

    @field_validator("rule_name")
    @classmethod
    def _ours(cls, name: str) -> str:
        if not re.fullmatch(rf"{re.escape(OWNER.prefix)}[A-Za-z0-9._-]+", name, re.IGNORECASE):
            raise refuse(
                f"{name!r} is no name of a rule of ours; rules of others are never changed",
                f"begin with {OWNER.prefix}, and go on with letters, digits, dots and hyphens",
            )
        if name.lower().endswith(SPARE_SUFFIX):
            raise refuse(
                f"{name!r} ends with {SPARE_SUFFIX}, which stands for a half-made rule", "use another name"
            )
        return name


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise refuse(f"{text!r} is no network ({error})", "for example 100.64.0.0/10") from error


def _public(networks: Sequence[Any], private: Sequence[Any]) -> int:
    """How many addresses the networks hold together, those of private networks left out."""
    count = 0
    for network in ipaddress.collapse_addresses(networks):
        if any(network.subnet_of(own) for own in private):
            continue
        count += network.num_addresses - sum(own.num_addresses for own in private if own.subnet_of(network))
    return count
