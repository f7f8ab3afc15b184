"""inventory/fleet.yml: the boxes of a fleet in plain YAML, as pyinfra groups.

Example::

    defaults: {user: Administrator, password: "env:NINFER_FLEET_PASSWORD"}
    boxes:
      gpu01: {address: 100.77.174.21, groups: [rtx4090d]}
      gpu02:
        address: 100.77.174.22
        groups: [rtx4090d]
        serve: {max_concurrency: 2}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pyinfra.api.exceptions import PyinfraError

from ninfer_fleet.settings.declared import NOUNS, merged

Groups = dict[str, list[tuple[str, dict[str, Any]]]]


class InventoryError(PyinfraError):
    """fleet.yml cannot be used; the text says where and why."""


class Box(BaseModel):
    """One box: how to reach it, its groups, and settings that differ from group_data.

    Attributes: address (name or IP), port, user, password (a reference env:, file: or cmd:), scheme,
    transport, certificate_sha256 (pin of a self-signed certificate), ca_file, groups, and the nouns of
    group_data.
    """

    model_config = ConfigDict(extra="forbid")

    address: str = Field(min_length=1)
    port: int | None = Field(default=None, ge=1, le=65535)
    user: str = Field(min_length=1)
    password: str = Field(pattern=r"^(env|file|cmd):.+", repr=False)
    scheme: Literal["https", "http"] = "https"
    transport: Literal["ntlm", "basic", "kerberos", "certificate"] = "ntlm"
    certificate_sha256: str | None = None
    ca_file: str | None = None
    groups: list[str] = Field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """Connector data of this box, under the names that the winrm connector reads."""
        values = {
            "winrm_host": self.address,
            "winrm_port": self.port,
            "winrm_scheme": self.scheme,
            "winrm_transport": self.transport,
            "winrm_user": self.user,
            "winrm_password": self.password,
            "winrm_certificate_sha256": self.certificate_sha256,
            "winrm_ca_file": self.ca_file,
        }
        return {name: value for name, value in values.items() if value is not None}


def read_fleet(path: Path) -> Groups:
    """The groups of a fleet.yml, each a list of (pyinfra host name, host data).

    Raises InventoryError.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InventoryError(f"{path}: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("boxes"), dict) or not document["boxes"]:
        raise InventoryError(
            f"{path}: wanted: a mapping `boxes` with at least one box; see fleet.example.yml"
        )
    unknown = set(document) - {"boxes", "defaults"}
    if unknown:
        raise InventoryError(
            f"{path}: unknown: {', '.join(sorted(map(str, unknown)))}; known: boxes, defaults"
        )
    found: Groups = {}
    for name, declared in document["boxes"].items():
        add(found, str(name), merged([document.get("defaults") or {}, declared or {}]), str(path))
    return found


def add(groups: Groups, name: str, declared: dict[str, Any], source: str) -> None:
    """Put one declared box into its groups. Raises InventoryError."""
    settings = {noun: declared[noun] for noun in NOUNS if noun in declared}
    try:
        box = Box.model_validate({key: value for key, value in declared.items() if key not in NOUNS})
    except ValidationError as error:
        details = error.errors(include_input=False, include_url=False)
        faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in details)
        raise InventoryError(f"{source}: box {name}: {faults}") from error
    for group in box.groups or ["boxes"]:
        groups.setdefault(group, []).append((f"@winrm/{name}", {**box.data(), **settings}))
