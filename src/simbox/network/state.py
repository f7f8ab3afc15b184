"""Listeners and connection profiles of a simulated box."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from simbox.errors import WindowsError
from simbox.process.state import utc_text

if TYPE_CHECKING:
    from simbox.box import Box


def _prefix_lengths(addresses: Iterable[str]) -> list[int]:
    """What a home network and Tailscale's adapter have: /24 and /64, and every node for itself."""
    shared = ipaddress.ip_network("100.64.0.0/10"), ipaddress.ip_network("fd7a:115c:a1e0::/48")
    found: list[int] = []
    for text in addresses:
        address = ipaddress.ip_address(text)
        alone = any(address in network for network in shared if network.version == address.version)
        found.append(address.max_prefixlen if alone else 24 if address.version == 4 else 64)
    return found


class Network:
    """What Get-BoxListener and the connections of Get-BoxFirewall read."""

    REMOTE = frozenset({"listeners", "connections", "set_category"})

    def __init__(self, box: Box) -> None:
        self._box = box
        self._lock = threading.Lock()
        self._listeners: dict[tuple[str, int], int] = {}

    def listen(self, address: str, port: int, pid: int) -> None:
        """Enter a listener: address as the program bound it (0.0.0.0 is the box's own address here)."""
        with self._lock:
            self._listeners[(address, port)] = pid

    def closed(self, address: str, port: int) -> None:
        """Remove a listener."""
        with self._lock:
            self._listeners.pop((address, port), None)

    def listeners(self, ports: Iterable[int] | None = None) -> list[dict[str, Any]]:
        """As Get-BoxListener gives them."""
        wanted = None if ports is None else set(ports)
        with self._lock:
            known = sorted(self._listeners.items(), key=lambda item: (item[0][1], item[0][0]))
        answers = []
        for (address, port), pid in known:
            entry = self._box.windows.process.find(pid)
            if wanted is not None and port not in wanted:
                continue
            answers.append(
                {
                    "LocalAddress": address,
                    "LocalPort": port,
                    "OwningProcess": pid,
                    "ExecutablePath": entry.path if entry else None,
                    "CreationTimeUtc": utc_text(entry.created) if entry else None,
                }
            )
        return answers

    def connections(self) -> list[dict[str, Any]]:
        """As the Connections of Get-BoxFirewall."""
        return [
            {
                "InterfaceAlias": row["alias"],
                "InterfaceGuid": row["guid"],
                "NetworkCategory": row["category"],
                "Addresses": row["addresses"],
                "Prefixes": [
                    f"{address}/{length}"
                    for address, length in zip(
                        row["addresses"],
                        row.get("prefix_lengths", _prefix_lengths(row["addresses"])),
                        strict=True,
                    )
                ],
            }
            for row in self._box.store.get("network", default=[])
        ]

    def set_category(self, alias: str, category: str) -> None:
        """Make an interface Public, Private or DomainAuthenticated."""
        with self._box.store.change() as state:
            for row in state["network"]:
                if row["alias"].casefold() == alias.casefold():
                    row["category"] = category
                    return
        raise WindowsError(
            "Microsoft.Management.Infrastructure.CimException",
            f"No MSFT_NetConnectionProfile objects found with property 'InterfaceAlias' equal to '{alias}'.",
            0x80041002,
            "ObjectNotFound",
            "CmdletizationQuery_NotFound_InterfaceAlias",
        )
