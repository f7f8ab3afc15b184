"""How long the pure models take: a box's whole firewall parsed, and who reaches a port of it reckoned.

    python benchmarks/bench_models.py

Prints the best and the median of several runs. Nothing is asserted: a busy machine is no regression.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from winfleet.firewall.exposure import exposure
from winfleet.firewall.exposure_check import faults
from winfleet.firewall.model import FirewallState

RULES = 1_000
RUNS = 15
EXE = "C:\\ninfer\\current\\ninfer-serve.exe"
NETWORKS = ("100.64.0.0/10", "fd7a:115c:a1e0::/48")
OURS = (
    "v2.32|Action=Allow|Active=TRUE|Dir=In|Protocol=6|LPort=8080|RA4=100.64.0.0/255.192.0.0"
    "|RA6=fd7a:115c:a1e0::/48|Name=NInfer|"
)
CONNECTIONS = [
    ("Ethernet", "{8D3A1F60-5C0E-4B5B-9A64-0A7F8F3E1C11}", ["192.168.10.20/24", "fe80::20/64"]),
    ("Tailscale", "{37217669-42DA-4657-A55B-0D995D328250}", ["100.77.174.21/32", "fd7a:115c:a1e0::1/128"]),
]


def rule(dice: random.Random, hits: bool) -> str:
    """A registry string such as Windows and installers leave behind; hits: it is about our port."""
    parts = [
        "v2.32",
        f"Action={dice.choice(['Allow', 'Allow', 'Allow', 'Block'])}",
        "Active=TRUE",
        f"Dir={'In' if hits else dice.choice(['In', 'Out'])}",
        "Protocol=6",
        *(f"Profile={name}" for name in dice.choice([[], ["Private"], ["Private", "Public"]])),
        "LPort2_10=8000-8100" if hits else f"LPort={dice.randint(9000, 65535)}",
        f"RA4=10.{dice.randint(0, 255)}.0.0/255.255.0.0",
        f"RA4=172.16.{dice.randint(0, 255)}.7-172.16.255.255",
        f"RA6=fd00:{dice.randint(0, 65535):x}::/48",
    ]
    if not hits:
        parts.append(f"App=C:\\Program Files\\Some Maker\\program{dice.randint(0, 300)}.exe")
    return "|".join([*parts, "Name=a rule", "Desc=left behind", "EmbedCtxt=a group"]) + "|"


def answer(hits: int) -> dict[str, Any]:
    """The JSON of Get-BoxFirewall with RULES rules, `hits` of them about our port."""
    dice = random.Random(1)
    rules = [{"Name": f"{{{number}}}", "Data": rule(dice, number < hits)} for number in range(RULES - 1)]
    return {
        "Stores": [{"Store": "Local", "Rules": [*rules, {"Name": "ninfer-fleet-serve", "Data": OURS}]}],
        "Profiles": [
            {"Name": name, "Store": "Local", "Values": {"EnableFirewall": 1}}
            for name in ("Domain", "Private", "Public")
        ],
        "Connections": [
            {
                "InterfaceAlias": alias,
                "InterfaceGuid": guid,
                "NetworkCategory": "Private",
                "Addresses": [prefix.split("/")[0] for prefix in prefixes],
                "Prefixes": prefixes,
            }
            for alias, guid, prefixes in CONNECTIONS
        ],
        "ServiceStatus": "Running",
    }


def measured(what: str, action: Callable[..., object], *arguments: object) -> None:
    """Print how long action takes."""
    times_ms = []
    for _ in range(RUNS):
        start = time.perf_counter()
        action(*arguments)
        times_ms.append((time.perf_counter() - start) * 1000)
    print(f"{what}: best {min(times_ms):.1f} ms, median {statistics.median(times_ms):.1f} ms")


def checked(given: dict[str, Any]) -> list[str]:
    """All that firewall.exposed_only_to reckons."""
    return faults(exposure(FirewallState.parse(given), 8080, EXE), NETWORKS)


def main() -> None:
    """Measure a usual firewall, and one where every fifth rule is about the port."""
    for hits in (5, RULES // 5):
        given = answer(hits)
        print(f"firewall of {RULES} rules, {hits} of them about the port")
        measured("  parsed", FirewallState.parse, given)
        measured("  exposure computed", exposure, FirewallState.parse(given), 8080, EXE)
        measured("  parsed, computed and held against the networks", checked, given)


if __name__ == "__main__":
    main()
