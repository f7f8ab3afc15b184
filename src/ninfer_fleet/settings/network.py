"""Who may reach the server."""

from __future__ import annotations

import ipaddress

from pydantic import Field, field_validator

from ninfer_fleet.settings.trap import Values, refuse


class Network(Values):
    """Who reaches the server: its firewall rule, and the check that nobody else does."""

    rule_name: str = Field(
        default="ninfer-fleet-serve", pattern=r"^[A-Za-z0-9._-]+$", description="the rule's own Name"
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
        for text in networks:
            try:
                network = ipaddress.ip_network(text)
            except ValueError as error:
                raise refuse(f"{text!r} is no network ({error})", "for example 100.64.0.0/10") from error
            if network.prefixlen < 8 or (network.version == 6 and network.prefixlen < 16):
                raise refuse(
                    f"{text} lets nearly everybody in; only the key would stand between the GPU and "
                    f"the internet",
                    "use Tailscale's 100.64.0.0/10 and fd7a:115c:a1e0::/48, or your own network",
                )
        return networks
