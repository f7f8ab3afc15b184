"""Windows Firewall of a simulated box: rules as the registry strings that the service writes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box

POLICY = r"HKLM:\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy"
STORES = {
    "Local": POLICY + r"\FirewallRules",
    "GroupPolicy": r"HKLM:\SOFTWARE\Policies\Microsoft\WindowsFirewall\FirewallRules",
    "Mdm": POLICY + r"\Mdm\FirewallRules",
    "AppContainer": r"HKLM:\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy"
    r"\RestrictedServices\AppIso\FirewallRules",
}
# Where the box's state keeps the profiles of each store.
PROFILE_STORES = {"profiles": "Local", "policy_profiles": "GroupPolicy", "mdm_profiles": "Mdm"}
KEYWORDS = {word.casefold(): word for word in (
    "LocalSubnet", "DNS", "DHCP", "WINS", "DefaultGateway", "Internet", "Intranet", "IntranetRemoteAccess",
    "PlayToDevice", "CaptivePortal")}  # fmt: skip
PROTOCOLS = {"TCP": 6, "UDP": 17, "ICMPV4": 1, "ICMPV6": 58}
# What Windows 10 1809 added is stored under keys of its own, RA42 and RA62, in names of its own.
_LATER_KEYWORDS = {"Internet": "IntErnet", "Intranet": "IntrAnet", "IntranetRemoteAccess": "RmtIntrAnet",
                   "PlayToDevice": "Ply2Renders"}  # fmt: skip
KEYWORDS |= {stored.casefold(): given for given, stored in _LATER_KEYWORDS.items()}
PORT_KEYWORDS = {"rpc": "RPC", "rpcepmap": "RPC-EPMap", "rpc-epmap": "RPC-EPMap", "iphttpsin": "IPHTTPS",
                 "iphttps": "IPHTTPS", "teredo": "Teredo"}  # fmt: skip
_VERSION = "v2.32"


def _bad(parameter: str, value: object) -> WindowsError:
    text = f"The {parameter} is invalid: {value}"
    if "Address" in parameter:
        text = (
            "The address is invalid. Addresses may be specified as IP addresses, ranges, or subnets. Also, "
            f"the following address keywords are allowed in certain places: {', '.join(KEYWORDS.values())}. "
            f"({parameter}: {value})"
        )
    return WindowsError(
        "Microsoft.Management.Infrastructure.CimException",
        text,
        0x80070057,
        "InvalidArgument",
        "HRESULT 0x80070057",
    )


def addresses(parameter: str, values: Iterable[str]) -> list[tuple[int, str]]:
    """Addresses as the service stores them: (the key's number: 4, 6, 42 or 62, and text); Any gives none.

    Masks for IPv4 networks, prefixes for IPv6, ranges as a-b, keywords in their own case for both families;
    ranges that touch or overlap are merged (docs/facts/windows.md#how-windows-writes-addresses).
    """
    words: list[str] = []
    spans: dict[int, list[tuple[int, int]]] = {4: [], 6: []}
    for value in values:
        text = value.strip()
        if text.casefold() in ("any", "*"):
            return []
        if text.casefold() in KEYWORDS:
            words.append(KEYWORDS[text.casefold()])
            continue
        try:
            if "-" in text:
                low, high = (ipaddress.ip_address(part.strip()) for part in text.split("-"))
                if low.version != high.version or int(low) > int(high):
                    raise _bad(parameter, value)
            else:
                network = ipaddress.ip_network(text, strict=False)
                low, high = network[0], network[-1]
        except ValueError as error:
            raise _bad(parameter, value) from error
        spans[low.version].append((int(low), int(high)))
    plain = [word for word in words if word not in _LATER_KEYWORDS]
    later = [_LATER_KEYWORDS[word] for word in words if word in _LATER_KEYWORDS]
    stored = [(number, word) for number in (4, 6) for word in plain]
    stored += [(number, word) for number in (42, 62) for word in later]
    for family, ranges in spans.items():
        stored += [(family, _span(family, low, high)) for low, high in _merged(ranges)]
    return stored


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _span(family: int, low: int, high: int) -> str:
    kind = ipaddress.IPv4Address if family == 4 else ipaddress.IPv6Address
    if low == high:
        return str(kind(low))
    size = high - low + 1
    if size & (size - 1) == 0 and low % size == 0:
        bits = kind(low).max_prefixlen - size.bit_length() + 1
        if family == 4:
            return str(ipaddress.IPv4Network((low, bits)).with_netmask)
        return str(ipaddress.IPv6Network((low, bits)))
    return f"{kind(low)}-{kind(high)}"


def ports(parameter: str, values: Iterable[str | int]) -> list[tuple[str, str]]:
    """Ports as the service stores them: (key suffix, text); a range has the suffix 2_10. Any gives none."""
    stored = []
    for value in values:
        text = str(value).strip()
        if text.casefold() in ("any", "*"):
            return []
        if text.casefold() in PORT_KEYWORDS:
            stored.append(("", PORT_KEYWORDS[text.casefold()]))
            continue
        bounds = text.split("-")
        if not 1 <= len(bounds) <= 2 or not all(part.isdigit() and int(part) <= 65535 for part in bounds):
            raise _bad(parameter, value)
        stored.append(("2_10", text) if len(bounds) == 2 else ("", str(int(text))))
    return stored


def rule_string(
    *,
    display_name: str,
    description: str = "",
    group: str = "",
    enabled: bool = True,
    direction: str = "Inbound",
    action: str = "Allow",
    profile: Sequence[str] = ("Any",),
    protocol: str = "Any",
    local_port: Sequence[str | int] = (),
    remote_port: Sequence[str | int] = (),
    local_address: Sequence[str] = (),
    remote_address: Sequence[str] = (),
    program: str | None = None,
    interface_guids: Sequence[str] = (),
) -> str:
    """The registry value that the firewall service writes for such a rule. Raises WindowsError 0x80070057."""
    for name, text in (("DisplayName", display_name), ("Description", description), ("Group", group)):
        if "|" in text:
            raise _bad(name, text)
    number = PROTOCOLS.get(protocol.upper(), None if protocol.casefold() == "any" else protocol)
    parts = [_VERSION, f"Action={action.capitalize()}", f"Active={str(enabled).upper()}",
             f"Dir={'In' if direction.casefold() in ('in', 'inbound') else 'Out'}"]  # fmt: skip
    if number is not None:
        if not str(number).isdigit() or int(number) > 255:
            raise _bad("Protocol", protocol)
        parts.append(f"Protocol={number}")
    if profile and not any(word.casefold() == "any" for word in profile):
        chosen = {word.casefold() for word in profile}
        parts += [f"Profile={word}" for word in ("Domain", "Private", "Public") if word.casefold() in chosen]
    if number not in (6, 17) and (ports("LocalPort", local_port) or ports("RemotePort", remote_port)):
        raise _bad("Protocol", protocol)
    for key, given in (("LPort", local_port), ("RPort", remote_port)):
        parts += [f"{key}{suffix}={text}" for suffix, text in ports(key, given)]
    for key, who in (("LA", local_address), ("RA", remote_address)):
        parameter = "LocalAddress" if key == "LA" else "RemoteAddress"
        parts += [f"{key}{family}={text}" for family, text in addresses(parameter, who)]
    if program and program.casefold() != "any":
        parts.append(f"App={program}")
    parts += [f"IF={guid}" for guid in interface_guids]
    parts.append(f"Name={display_name}")
    parts += [f"Desc={description}"] if description else []
    parts += [f"EmbedCtxt={group}"] if group else []
    return "|".join(parts) + "|"


def _list(value: Any) -> list[Any]:
    """A parameter as PowerShell may pass it: null, one value, or several."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


class Firewall:
    """Rules and profiles in the store, all four rule stores."""

    REMOTE = frozenset({"snapshot", "set", "set_enabled", "remove", "write"})

    def __init__(self, box: Box) -> None:
        self._box = box

    def snapshot(self) -> dict[str, Any]:
        """As Get-BoxFirewall gives it."""
        firewall = self._box.store.get("firewall")
        rules = {"Local": firewall.get("rules", {}), **firewall.get("other_stores", {})}
        return {
            "Stores": [
                {
                    "Store": store,
                    "Key": key,
                    "Rules": [{"Name": name, "Data": data} for name, data in rules.get(store, {}).items()],
                }
                for store, key in STORES.items()
            ],
            "Profiles": [
                {"Name": name, "Store": store, "Values": values}
                for key, store in PROFILE_STORES.items()
                for name, values in firewall.get(key, {}).items()
            ],
            "Connections": self._box.windows.network.connections(),
            "ServiceStatus": firewall.get("service", "Running"),
            "PortProxies": firewall.get("port_proxies", []),
            "Products": firewall.get("products", []),
        }

    def set(
        self,
        name: str,
        display_name: str,
        description: str = "",
        group: str = "",
        enabled: bool = True,
        direction: str = "Inbound",
        action: str = "Allow",
        profile: Sequence[str] = ("Any",),
        protocol: str = "TCP",
        local_port: Sequence[str | int] = (),
        remote_port: Sequence[str | int] = (),
        local_address: Sequence[str] = (),
        remote_address: Sequence[str] = (),
        program: str | None = None,
        interface_alias: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Create or replace the local rule of that Name; parameters as Set-BoxFirewallRule in snake case.

        Raises: WindowsError 0x80070057 for a value that the service refuses.
        """
        data = rule_string(
            display_name=display_name, description=description or "", group=group or "", enabled=enabled,
            direction=direction, action=action, profile=_list(profile), protocol=protocol,
            local_port=_list(local_port), remote_port=_list(remote_port), local_address=_list(local_address),
            remote_address=_list(remote_address), program=program,
            interface_guids=[self._interface(alias) for alias in _list(interface_alias)],
        )  # fmt: skip
        return {"Created": self.write(name, data), "Data": data}

    def write(self, name: str, data: str, store: str = "Local") -> bool:
        """Put a registry string as it is; True when the rule is new."""
        with self._box.store.change() as state:
            rules = state["firewall"].setdefault("rules", {})
            if store != "Local":
                rules = state["firewall"].setdefault("other_stores", {}).setdefault(store, {})
            key = next((known for known in rules if known.casefold() == name.casefold()), None)
            rules[key or name] = data
            return key is None

    def set_enabled(self, names: Iterable[str], enabled: bool) -> list[str]:
        """Enable or disable local rules; the names that changed. A missing name is an error, as with the
        cmdlet.
        """
        changed = []
        with self._box.store.change() as state:
            rules = state["firewall"]["rules"]
            for name in names:
                key = self._key(rules, name)
                after = rules[key].replace(
                    f"|Active={str(not enabled).upper()}|", f"|Active={str(enabled).upper()}|"
                )
                if after != rules[key]:
                    rules[key] = after
                    changed.append(key)
        return changed

    def remove(self, names: Iterable[str]) -> list[str]:
        """Remove local rules; the names that were there."""
        removed = []
        with self._box.store.change() as state:
            rules = state["firewall"]["rules"]
            for name in names:
                key = next((known for known in rules if known.casefold() == name.casefold()), None)
                if key is not None:
                    del rules[key]
                    removed.append(key)
        return removed

    @staticmethod
    def _key(rules: dict[str, str], name: str) -> str:
        for known in rules:
            if known.casefold() == name.casefold():
                return known
        raise WindowsError(
            "Microsoft.PowerShell.Cmdletization.Cim.CimJobException",
            f"No MSFT_NetFirewallRule objects found with property 'InstanceID' equal to '{name}'. Verify the "
            "value of the property and retry.",
            0x80041002,
            "ObjectNotFound",
            "CmdletizationQuery_NotFound_InstanceID",
        )

    def _interface(self, alias: str) -> str:
        for row in self._box.windows.network.connections():
            if row["InterfaceAlias"].casefold() == alias.casefold():
                return str(row["InterfaceGuid"])
        raise _bad("InterfaceAlias", alias)
