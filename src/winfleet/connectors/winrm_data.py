"""The host data of the @winrm connector and the endpoint that follows from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyinfra.api.hiddenvalue import HiddenValue
from pyinfra.connectors.base import DataMeta
from typing_extensions import TypedDict

from winfleet import secrets
from winfleet.wire.endpoint import HTTP_PORT, HTTPS_PORT, Endpoint, normal_pin
from winfleet.wire.errors import SettingRefused
from winfleet.wire.session import SessionSettings

MODES = ("persistent", "percommand")


class WinRMData(TypedDict, total=False):
    """Types of the host data. Numbers may be text, because ``--data`` and environments give text."""

    winrm_host: str | None
    winrm_port: int | str | None
    winrm_scheme: str
    winrm_transport: str
    winrm_user: str | int | None
    winrm_password: str | HiddenValue | None
    winrm_certificate_sha256: str | None
    winrm_ca_file: str | None
    winrm_validate: bool
    winrm_insecure_basic: bool
    winrm_client_certificate: str | None
    winrm_client_key: str | None
    winrm_proxy: str | None
    winrm_mode: str
    winrm_timeout_s: int | float | str
    winrm_start_timeout_s: int | float | str
    winrm_connect_timeout_s: int | float | str | None
    winrm_operation_timeout_s: int | str
    winrm_idle_rehandshake_s: int | float | str
    winrm_shell_max_age_s: int | float | str


_META: dict[str, tuple[str, Any]] = {
    "winrm_host": ("Host name or address (IPv6 without brackets)", None),
    "winrm_port": ("Port; 5986 for https, 5985 for http", None),
    "winrm_scheme": ("https or http", "https"),
    "winrm_transport": ("ntlm, kerberos, certificate or basic", "ntlm"),
    "winrm_user": ("Administrator of the box: name, or DOMAIN\\name", None),
    "winrm_password": (
        "Reference to the password: env:NAME, file:PATH or cmd:COMMAND; or a HiddenValue",
        None,
    ),
    "winrm_certificate_sha256": (
        "SHA-256 of the box's certificate, which then must be exactly this one",
        None,
    ),
    "winrm_ca_file": ("PEM file of the authority that vouches for the box's certificate", None),
    "winrm_validate": ("false: take any certificate (anybody can pose as the box)", True),
    "winrm_insecure_basic": ("true: allow Basic over plain HTTP, readable by everybody on the way", False),
    "winrm_client_certificate": ("PEM file for transport certificate", None),
    "winrm_client_key": ("PEM file for transport certificate", None),
    "winrm_proxy": ("URL of an HTTP proxy; the environment's proxies are never used", None),
    "winrm_mode": (
        "persistent (one PowerShell per box and run) or percommand (one per request)",
        "persistent",
    ),
    "winrm_timeout_s": ("Longest duration of one box command in seconds, unless it names its own", 600),
    "winrm_start_timeout_s": ("Longest start of PowerShell in seconds", 90),
    "winrm_connect_timeout_s": ("Longest wait for a connection in seconds; default: CONNECT_TIMEOUT", None),
    "winrm_operation_timeout_s": ("Longest wait of one HTTP request at the box in seconds, below 60", 45),
    "winrm_idle_rehandshake_s": ("A sealed connection is made anew after this many quiet seconds", 60),
    "winrm_shell_max_age_s": ("A shell is replaced when it is this many seconds old", 25200),
}
META = {name: DataMeta(description, default) for name, (description, default) in _META.items()}


def endpoint(data: Mapping[str, Any], name: str, connect_timeout_s: float) -> Endpoint:
    """The endpoint that the host data of box name describe.

    Raises: SettingRefused for settings that are unsafe or not understood, secrets.SecretUnavailable.
    """
    scheme = str(data["winrm_scheme"]).lower()
    password = data["winrm_password"]
    return Endpoint(
        name=name,
        host=(data["winrm_host"] or name).strip("[]"),
        port=int(_number(data, "winrm_port", name) or (HTTPS_PORT if scheme == "https" else HTTP_PORT)),
        scheme=scheme,
        transport=str(data["winrm_transport"]).lower(),
        user=str(data["winrm_user"]) if data["winrm_user"] is not None else None,
        password=secrets.resolve(password, f"winrm_password of {name}") if password is not None else None,
        certificate_sha256=normal_pin(data["winrm_certificate_sha256"]),
        ca_file=data["winrm_ca_file"],
        validate=bool(data["winrm_validate"]),
        insecure_basic=bool(data["winrm_insecure_basic"]),
        client_certificate=data["winrm_client_certificate"],
        client_key=data["winrm_client_key"],
        proxy=data["winrm_proxy"],
        connect_timeout_s=_number(data, "winrm_connect_timeout_s", name) or connect_timeout_s,
        operation_timeout_s=int(_number(data, "winrm_operation_timeout_s", name) or 45),
        idle_rehandshake_s=_number(data, "winrm_idle_rehandshake_s", name) or 60.0,
    ).checked()


def session_settings(data: Mapping[str, Any], name: str) -> SessionSettings:
    """How the session of box name behaves. Raises SettingRefused."""
    if data["winrm_mode"] not in MODES:
        raise SettingRefused(
            name, f"winrm_mode is {data['winrm_mode']!r}", " or ".join(MODES), "correct it in the inventory"
        )
    return SessionSettings(
        start_timeout_s=_number(data, "winrm_start_timeout_s", name) or 90.0,
        timeout_s=_number(data, "winrm_timeout_s", name) or 600.0,
        max_age_s=_number(data, "winrm_shell_max_age_s", name) or 25200.0,
        per_command=data["winrm_mode"] == "percommand",
    )


def _number(data: Mapping[str, Any], key: str, name: str) -> float | None:
    value = data[key]
    if value is None or value == "":
        return None
    if not re.fullmatch(r"\d+(\.\d+)?", str(value)):
        raise SettingRefused(name, f"{key} is {value!r}", "a number", "correct it in the inventory")
    return float(value)
