"""Firewall rules of a simulated box: what the service makes of what it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simbox.box import Box
from simbox.errors import WindowsError
from simbox.firewall import state as firewall


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "rtx4090d")


def _local(box: Box) -> dict[str, str]:
    stores = {store["Store"]: store["Rules"] for store in box.windows.firewall.snapshot()["Stores"]}
    return {rule["Name"]: rule["Data"] for rule in stores["Local"]}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (["100.64.0.0/10"], [(4, "100.64.0.0/255.192.0.0")]),
        (["1.2.3.4"], [(4, "1.2.3.4")]),
        (["1.2.3.4/32"], [(4, "1.2.3.4")]),
        (["FD7A:115C:A1E0::/48"], [(6, "fd7a:115c:a1e0::/48")]),
        (["10.0.0.1-10.0.0.9"], [(4, "10.0.0.1-10.0.0.9")]),
        (["10.0.0.0/24", "10.0.0.7", "10.0.1.0/24"], [(4, "10.0.0.0/255.255.254.0")]),
        (["localsubnet"], [(4, "LocalSubnet"), (6, "LocalSubnet")]),
        (["10.0.0.1", "Any"], []),
        (["*"], []),
        ([], []),
    ],
)
def test_addresses_are_stored_as_the_service_does(given: list[str], stored: list[tuple[int, str]]) -> None:
    assert firewall.addresses("RemoteAddress", given) == stored


@pytest.mark.parametrize("given", ["10.0.0.0/33", "host.example", "10.0.0.9-10.0.0.1", "1.1.1.1-::1"])
def test_a_wrong_address_is_refused(given: str) -> None:
    with pytest.raises(WindowsError) as caught:
        firewall.addresses("RemoteAddress", [given])
    assert caught.value.hresult == 0x80070057


def test_the_whole_registry_string(box: Box) -> None:
    answer = box.windows.firewall.set(
        "ninfer-serve",
        "NInfer (Tailscale only)",
        description="of the fleet",
        group="NInfer",
        profile=["Private", "Domain"],
        local_port=["8080", "9000-9010"],
        remote_address=["100.64.0.0/10", "fd7a:115c:a1e0::/48"],
        program="C:\\ninfer\\current\\ninfer-serve.exe",
        interface_alias=["Tailscale"],
    )
    assert answer["Created"]
    assert answer["Data"] == (
        "v2.32|Action=Allow|Active=TRUE|Dir=In|Protocol=6|Profile=Domain|Profile=Private|LPort=8080"
        "|LPort2_10=9000-9010|RA4=100.64.0.0/255.192.0.0|RA6=fd7a:115c:a1e0::/48"
        "|App=C:\\ninfer\\current\\ninfer-serve.exe|IF={37217669-42DA-4657-A55B-0D995D328250}"
        "|Name=NInfer (Tailscale only)|Desc=of the fleet|EmbedCtxt=NInfer|"
    )
    assert _local(box)["ninfer-serve"] == answer["Data"]


def test_a_second_set_updates_in_place_whatever_the_case_of_the_name(box: Box) -> None:
    assert box.windows.firewall.set("Rule", "one", local_port="80")["Created"]
    # PowerShell passes null for a list that is not given
    again = {"name": "RULE", "display_name": "two", "local_port": None}
    assert not box.windows.call("firewall.set", again)["Created"]
    assert [data for name, data in _local(box).items() if name.casefold() == "rule"] == [
        "v2.32|Action=Allow|Active=TRUE|Dir=In|Protocol=6|Name=two|"
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"local_port": ["70000"]},
        {"local_port": ["1-2-3"]},
        {"protocol": "Any", "local_port": ["80"]},
        {"protocol": "999"},
        {"interface_alias": ["Nonesuch"]},
        {"description": "a|b"},
    ],
)
def test_what_the_service_refuses(box: Box, wrong: dict[str, Any]) -> None:
    before = _local(box)
    with pytest.raises(WindowsError):
        box.windows.firewall.set("x", "X", **wrong)
    assert _local(box) == before


def test_enable_disable_and_remove(box: Box) -> None:
    service = box.windows.firewall
    assert service.set_enabled(["tailscale-in"], False) == ["Tailscale-In"]
    assert service.set_enabled(["Tailscale-In"], False) == []
    assert "|Active=FALSE|" in _local(box)["Tailscale-In"]
    with pytest.raises(WindowsError, match="No MSFT_NetFirewallRule objects found"):
        service.set_enabled(["none"], False)
    assert service.remove(["none", "TAILSCALE-IN"]) == ["Tailscale-In"]
    assert "Tailscale-In" not in _local(box)


def test_other_stores_and_connections_are_in_the_snapshot(box: Box) -> None:
    box.windows.firewall.write("Gpo", "v2.32|Action=Block|Active=TRUE|Dir=In|Name=g|", "GroupPolicy")
    snapshot = box.windows.firewall.snapshot()
    policy = next(store for store in snapshot["Stores"] if store["Store"] == "GroupPolicy")
    assert [rule["Name"] for rule in policy["Rules"]] == ["Gpo"]
    assert {row["InterfaceAlias"] for row in snapshot["Connections"]} == {"Ethernet", "Tailscale"}
    box.windows.network.set_category("tailscale", "Public")
    categories = {row["InterfaceAlias"]: row["NetworkCategory"] for row in box.windows.network.connections()}
    assert categories == {"Ethernet": "Private", "Tailscale": "Public"}
