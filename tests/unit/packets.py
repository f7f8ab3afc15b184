"""A firewall that judges one packet at a time, for checking the one that reckons with sets.

It reads registry strings by itself and shares nothing with winfleet: addresses are numbers compared one by
one, rules are looked at in turn. What may or may not apply is None.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

NAMES = {"Domain": "domain", "Private": "private", "Public": "public"}
CATEGORIES = {"DomainAuthenticated": "domain", "Private": "private", "Public": "public"}
UNDERSTOOD = {
    "Action", "Active", "Dir", "Protocol", "Profile", "LPort", "LPort2_10", "RPort", "LA4", "LA6", "RA4",
    "RA6", "RA42", "RA62", "App", "Svc", "AppPkgId", "IF", "Name", "Desc", "EmbedCtxt", "Edge", "Defer",
}  # fmt: skip
TAILSCALE = "{37217669-42DA-4657-A55B-0D995D328250}"


@dataclass(frozen=True)
class Packet:
    """A first TCP packet. Attributes: sender, connection (an entry of Connections), address (of the box it is
    for), profile (in force there), port, exe (of the listener)."""

    sender: str
    connection: dict[str, Any]
    address: str
    profile: str
    port: int
    exe: str


def verdict(answer: dict[str, Any], packet: Packet) -> bool | None:
    """True: it gets in. False: it does not. None: that cannot be told."""
    if not _can_arrive(packet):
        return False
    if answer["ServiceStatus"] != "Running" or any(
        one["State"] == 0x61000 for one in answer["Products"] or []
    ):
        return None
    if any(int(one["Connect"].split("/")[1]) == packet.port for one in answer["PortProxies"]):
        return None
    settings = _settings(answer, packet.profile)
    if settings is None:
        return None
    if settings["EnableFirewall"] == 0:
        return True
    shields_up = settings["DoNotAllowExceptions"] == 1
    block: list[bool | None] = []
    allow: list[bool | None] = [True] if settings["DefaultInboundAction"] == 0 and not shields_up else []
    past: list[bool | None] = []
    for store in answer["Stores"]:
        if store["Store"] == "Local" and settings["AllowLocalPolicyMerge"] == 0:
            continue
        for rule in store["Rules"]:
            keys = [(part.split("=")[0], part.split("=")[1]) for part in rule["Data"].split("|")[1:] if part]
            fits = _fits(keys, packet, answer)
            if fits is False:
                continue
            action = dict(keys).get("Action")
            if action == "Block":
                block.append(fits)
            elif action == "Allow" and not shields_up:
                allow.append(fits)
            elif action == "ByPass":
                past.append(None)
    if True in block:
        return None if past else False
    if not allow:
        return None if past else False
    return None if None in block or True not in allow else True


def _can_arrive(packet: Packet) -> bool:
    sender, address = ipaddress.ip_address(packet.sender), ipaddress.ip_address(packet.address)
    if sender.version != address.version:
        return False
    if packet.connection["InterfaceGuid"] != TAILSCALE:
        return True
    if sender.version == 6:
        return sender.exploded.startswith("fd7a:115c:a1e0:")
    first, second = packet.sender.split(".")[:2]
    return first == "100" and 64 <= int(second) <= 127


def _settings(answer: dict[str, Any], profile: str) -> dict[str, int] | None:
    result = {
        "EnableFirewall": 1,
        "DefaultInboundAction": 1,
        "DoNotAllowExceptions": 0,
        "AllowLocalPolicyMerge": 1,
    }
    by_store = {
        store: [
            one["Values"]
            for one in answer["Profiles"]
            if NAMES[one["Name"]] == profile and one["Store"] == store
        ]
        for store in ("Local", "GroupPolicy", "Mdm")
    }
    if not any(by_store.values()):
        return None
    for name in result:
        policy = [
            values[name] for store in ("GroupPolicy", "Mdm") for values in by_store[store] if name in values
        ]
        local = [
            values[name] for values in by_store["Local"] if name in values and name != "AllowLocalPolicyMerge"
        ]
        if len(set(policy)) == 2:
            return None
        for value in policy or local:
            result[name] = value
    return result


def _fits(keys: list[tuple[str, str]], packet: Packet, answer: dict[str, Any]) -> bool | None:
    perhaps = False
    one = dict(keys)
    if one["Active"] == "FALSE" or one["Dir"] == "Out" or one.get("Protocol", "6") != "6":
        return False
    if "AppPkgId" in one or one.get("Svc", "*") != "*":
        return False
    perhaps |= "Svc" in one
    perhaps |= any(key not in UNDERSTOOD for key in one)
    ports = [value for key, value in keys if key.startswith("LPort")]
    if ports:
        hits = [_port(value, packet.port) for value in ports]
        if not any(hit is not False for hit in hits):
            return False
        perhaps |= True not in hits
    perhaps |= "RPort" in one
    if "App" in one:
        app, exe = one["App"].lower(), packet.exe.lower()
        if app.startswith("%"):
            if not exe.endswith(app.split("%")[2]):
                return False
            perhaps = True
        elif app != exe:
            return False
    profiles = [NAMES[value] for key, value in keys if key == "Profile"]
    if profiles and packet.profile not in profiles:
        return False
    guids = [value for key, value in keys if key == "IF"]
    if guids and packet.connection["InterfaceGuid"] not in guids:
        return False
    for side, address in (("LA", packet.address), ("RA", packet.sender)):
        entries = [value for key, value in keys if key.startswith(side)]
        if not entries:
            continue
        hits = [_address(entry, address, packet, answer) for entry in entries]
        if True not in hits:
            if None not in hits:
                return False
            perhaps = True
    return None if perhaps else True


def _port(text: str, port: int) -> bool | None:
    if text == "RPC":
        return None
    low, _, high = text.partition("-")
    return int(low) <= port <= int(high or low)


def _address(entry: str, text: str, packet: Packet, answer: dict[str, Any]) -> bool | None:
    address = ipaddress.ip_address(text)
    if entry in ("DNS", "IntErnet"):
        return None
    if entry == "LocalSubnet":
        if any(address in ipaddress.ip_network(one, strict=False) for one in packet.connection["Prefixes"]):
            return True
        everywhere = [one for other in answer["Connections"] for one in other["Prefixes"]]
        near = [*everywhere, "169.254.0.0/16", "fe80::/10"]
        return None if any(address in ipaddress.ip_network(one, strict=False) for one in near) else False
    if "-" in entry:
        low, high = (ipaddress.ip_address(part) for part in entry.split("-"))
        return low.version == address.version and int(low) <= int(address) <= int(high)
    return address in ipaddress.ip_network(entry, strict=False)
