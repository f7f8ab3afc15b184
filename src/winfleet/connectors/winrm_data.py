"""The host data of the @winrm connector and the endpoint that follows from it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from pyinfra.api.hiddenvalue import HiddenValue
from pyinfra.connectors.base import DataMeta
from typing_extensions import TypedDict

from winfleet import redaction, secret_reference
from winfleet.wire.endpoint import HTTP_PORT, HTTPS_PORT, Endpoint, normal_pin
from winfleet.wire.errors import SettingRefused
from winfleet.wire.session import SessionSettings

MODES = ("persistent", "percommand")


class WinRMData(TypedDict, total=False):
    """The host data. Their types are checked on connecting: pyinfra itself would end the run of all boxes for
    a wrong one. Numbers and switches may be text, because ``--data`` and environments give text.
    """

    winrm_host: Any
    winrm_port: Any
    winrm_scheme: Any
    winrm_transport: Any
    winrm_user: Any
    winrm_password: Any
    winrm_certificate_sha256: Any
    winrm_ca_file: Any
    winrm_validate: Any
    winrm_insecure_basic: Any
    winrm_client_certificate: Any
    winrm_client_key: Any
    winrm_proxy: Any
    winrm_mode: Any
    winrm_timeout_s: Any
    winrm_start_timeout_s: Any
    winrm_connect_timeout_s: Any
    winrm_operation_timeout_s: Any
    winrm_idle_rehandshake_s: Any
    winrm_shell_max_age_s: Any
    winrm_refused: Any


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
    "winrm_refused": (
        "Set by an inventory that cannot use the entry of this box: what is wrong, and how to mend it",
        None,
    ),
}
META = {name: DataMeta(description, default) for name, (description, default) in _META.items()}


_RANGES: dict[str, tuple[float, float]] = {
    "winrm_port": (1, 65535),
    "winrm_connect_timeout_s": (0.01, 3600),
    # The service ends a request after 60 s by itself (MaxTimeoutms).
    "winrm_operation_timeout_s": (1, 59),
}
_SECONDS = (0.01, 31 * 86400.0)


def refuse_unknown(keys: Iterable[str], name: str) -> None:
    """Raise SettingRefused for a key that begins as ours do and is none: a misspelt pin protects nothing."""
    for key in sorted(set(keys) - META.keys()):
        if key.startswith("winrm_"):
            close = get_close_matches(key, META, n=1)
            wanted = f"{close[0]}, probably" if close else f"one of {', '.join(META)}"
            raise SettingRefused(
                name, f"{key} is no setting of @winrm", wanted, "correct it in the inventory"
            )


def endpoint(data: Mapping[str, Any], name: str, connect_timeout_s: float) -> Endpoint:
    """The endpoint that the host data of box name describe.

    Raises: SettingRefused for settings that are unsafe or not understood, secret_reference.SecretUnavailable.
    """
    if data.get("winrm_refused"):
        raise SettingRefused(name, str(data["winrm_refused"]))
    scheme = (_text(data, "winrm_scheme", name) or "https").lower()
    proxy = _text(data, "winrm_proxy", name)
    if proxy is not None:
        _hide_proxy_password(proxy)
    return Endpoint(
        name=name,
        host=(_text(data, "winrm_host", name) or name).strip("[]"),
        port=_whole(data, "winrm_port", name) or (HTTPS_PORT if scheme == "https" else HTTP_PORT),
        scheme=scheme,
        transport=(_text(data, "winrm_transport", name) or "ntlm").lower(),
        user=_user(data, name),
        password=_password(data, name),
        certificate_sha256=normal_pin(_text(data, "winrm_certificate_sha256", name)),
        ca_file=_text(data, "winrm_ca_file", name),
        validate=_switch(data, "winrm_validate", name),
        insecure_basic=_switch(data, "winrm_insecure_basic", name),
        client_certificate=_text(data, "winrm_client_certificate", name),
        client_key=_text(data, "winrm_client_key", name),
        proxy=proxy,
        connect_timeout_s=_number(data, "winrm_connect_timeout_s", name) or connect_timeout_s,
        operation_timeout_s=_whole(data, "winrm_operation_timeout_s", name) or 45,
        idle_rehandshake_s=_number(data, "winrm_idle_rehandshake_s", name) or 60.0,
    ).checked()


def session_settings(data: Mapping[str, Any], name: str) -> SessionSettings:
    """How the session of box name behaves. Raises SettingRefused."""
    if data["winrm_mode"] not in MODES:
        raise _refused(name, "winrm_mode", data["winrm_mode"], " or ".join(MODES))
    return SessionSettings(
        start_timeout_s=_number(data, "winrm_start_timeout_s", name) or 90.0,
        timeout_s=_number(data, "winrm_timeout_s", name) or 600.0,
        max_age_s=_number(data, "winrm_shell_max_age_s", name) or 25200.0,
        per_command=data["winrm_mode"] == "percommand",
    )


def _refused(name: str, key: str, found: object, wanted: str) -> SettingRefused:
    return SettingRefused(name, f"{key} is {found!r}", wanted, "correct it in the inventory")


def _text(data: Mapping[str, Any], key: str, name: str) -> str | None:
    value = data[key]
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        # YAML and --data take a text of digits for a number.
        raise _refused(name, key, value, "text, in quotes where it looks like something else")
    if not value.isprintable():
        raise _refused(name, key, value, "text on one line, without control characters")
    return value


def _user(data: Mapping[str, Any], name: str) -> str | None:
    value = data["winrm_user"]
    return (
        str(value)
        if isinstance(value, int) and not isinstance(value, bool)
        else _text(data, "winrm_user", name)
    )


def _password(data: Mapping[str, Any], name: str) -> HiddenValue | None:
    value = data["winrm_password"]
    if value is None:
        return None
    if not isinstance(value, str | HiddenValue):
        raise SettingRefused(
            name,
            f"winrm_password is no text, but {type(value).__name__} (not shown)",
            "a reference env:NAME, file:PATH or cmd:COMMAND",
            "correct it in the inventory",
        )
    return secret_reference.resolve(value, f"winrm_password of {name}")


def _switch(data: Mapping[str, Any], key: str, name: str) -> bool:
    value = data[key]
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if value is None or value == "":
        return bool(META[key].default)
    raise _refused(name, key, value, "true or false")


def _whole(data: Mapping[str, Any], key: str, name: str) -> int | None:
    value = _number(data, key, name)
    if value is not None and value != int(value):
        raise _refused(name, key, data[key], "a whole number")
    return None if value is None else int(value)


def _number(data: Mapping[str, Any], key: str, name: str) -> float | None:
    value = data[key]
    if value is None or value == "":
        return None
    least, most = _RANGES.get(key, _SECONDS)
    wanted = f"a number from {least:g} to {most:.0f}"
    if isinstance(value, bool) or not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", str(value), re.ASCII):
        raise _refused(name, key, value, wanted)
    if not least <= float(value) <= most:
        raise _refused(name, key, value, wanted)
    return float(value)


def _hide_proxy_password(proxy: str) -> None:
    """Messages about a proxy may hold its URL."""
    with contextlib.suppress(ValueError):
        password = urlsplit(proxy).password
        if password:
            redaction.register(HiddenValue(password))  # type: ignore[no-untyped-call]
