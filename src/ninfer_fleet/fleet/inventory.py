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

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pyinfra import logger

from ninfer_fleet.fleet.fleet_yaml import InventoryError, load
from ninfer_fleet.settings.declared import NOUNS, merged
from ninfer_fleet.settings.trap import Values, refuse
from ninfer_fleet.settings.wording import shown, wanted
from winfleet import secret_reference

__all__ = ["Box", "Groups", "InventoryError", "add", "read_fleet"]

Groups = dict[str, list[tuple[str, dict[str, Any]]]]
UNGROUPED = "boxes"
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Box(Values):
    """One box: how to reach it, its groups, and settings that differ from group_data.

    Attributes: address (name or IP), port, user, password (a reference env:, file: or cmd:), scheme,
    transport, certificate_sha256 (pin of a self-signed certificate), ca_file, groups, and the nouns of
    group_data.
    """

    address: str = Field(min_length=1)
    port: int | None = Field(default=None, ge=1, le=65535)
    user: str = Field(min_length=1)
    password: str = Field(repr=False)
    scheme: Literal["https", "http"] = "https"
    transport: Literal["ntlm", "basic", "kerberos", "certificate"] = "ntlm"
    certificate_sha256: str | None = None
    ca_file: str | None = None
    groups: tuple[str, ...] = (UNGROUPED,)

    @field_validator("password")
    @classmethod
    def _reference(cls, password: str) -> str:
        if not secret_reference.is_reference(password) or not password.partition(":")[2].strip():
            raise refuse(
                "found a literal text (not shown); wanted: a reference env:NAME, file:PATH or cmd:COMMAND",
                "name the place of the password, never the password itself",
            )
        return password

    @field_validator("groups")
    @classmethod
    def _named(cls, groups: tuple[str, ...]) -> tuple[str, ...]:
        if not groups:
            raise refuse(
                "found no group; wanted: names of files in group_data", "leave the key out, or name one"
            )
        for name in groups:
            # pyinfra passes over names with an underscore, and takes a group "all" for the whole inventory.
            if not _GROUP.fullmatch(name) or name == "all":
                raise refuse(
                    f"found {name!r}; wanted: the name of a file in group_data, of letters, digits, dots and"
                    " hyphens, and not all",
                    "correct it (group_data/all.py holds for every box unasked)",
                )
        return tuple(dict.fromkeys(groups))

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


KEYS = (*Box.model_fields, *NOUNS)


def read_fleet(path: Path) -> Groups:
    """The groups of a fleet.yml, each a list of (pyinfra host name, host data).

    A box whose entry is wrong is there as well: it fails by itself on connecting, with what is wrong.

    Raises: InventoryError when the file as a whole cannot be used.
    """
    defaults, entries = load(path)
    group_data = path.resolve().parent.parent / "group_data"
    known = {file.stem for file in group_data.glob("*.py")} - {"all"} if group_data.is_dir() else None
    found: Groups = {}
    for entry in entries:
        declared = entry.declared if entry.declared is not None else {}
        whole = merged([defaults, declared]) if isinstance(declared, dict) else declared
        add(found, entry.name, whole, str(path), known, entry.faults)
    used = {group for group, hosts in found.items() if any("winrm_refused" not in data for _, data in hosts)}
    for group in sorted(used - {UNGROUPED, *known}) if known is not None else ():
        logger.info(f"    {path}: the group {group} has no group_data/{group}.py; it serves --limit only.")
    return found


def add(
    groups: Groups,
    name: str,
    declared: Any,
    source: str,
    known_groups: Collection[str] | None = None,
    faults: Sequence[str] = (),
) -> None:
    """Put one declared box into its groups; a wrong one as a box that fails on connecting, alone.

    Args: known_groups: names for which there are group data, None: not known. faults: what is wrong already.
    """
    told, box = list(faults), None
    if isinstance(declared, dict):
        try:
            box = Box.model_validate({str(key): value for key, value in declared.items() if key not in NOUNS})
        except ValidationError as error:
            told += [_fault(detail) for detail in error.errors(include_url=False)]
    else:
        told.append(
            f"found {shown(declared)}; wanted: settings of the form `name: value`, at least an address"
        )
    known = known_groups or ()
    for group in box.groups if box is not None else ():
        close = get_close_matches(group, known, n=1)
        if group not in (*known, UNGROUPED) and close:
            told.append(f"groups: there is no group_data/{group}.py; did you mean {close[0]!r}?")
    if told or box is None:
        refused = (
            f"{source}: {'; '.join(told)}; mend: correct the entry of {name}; nothing was done to this box"
        )
        data: dict[str, Any] = {"winrm_refused": refused}
    else:
        data = {**box.data(), **{noun: declared[noun] for noun in NOUNS if noun in declared}}
    for group in box.groups if box is not None else (UNGROUPED,):
        groups.setdefault(group, []).append((f"@winrm/{name}", data))


def _fault(detail: ErrorDetails) -> str:
    """One wrong key of an entry: found and wanted. What stands behind an unknown key may be a secret."""
    key = str(detail["loc"][0]) if detail["loc"] else ""
    if detail["type"] == "extra_forbidden":
        close = get_close_matches(key, KEYS, n=1)
        return f"{key}: no such key; " + (
            f"did you mean {close[0]!r}?" if close else f"known: {', '.join(KEYS)}"
        )
    if detail["type"] == "missing":
        return f"{key}: found nothing; wanted: {'an' if key == 'address' else 'a'} {key}"
    if detail["type"] == "refused":
        return f"{key}: {detail['msg']}"
    return f"{key}: found {shown(detail['input'], key)}; wanted: {wanted(detail)}"
