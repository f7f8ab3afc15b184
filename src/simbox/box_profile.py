"""Profiles: what a simulated box is made of, as YAML data in `profiles/`.

A profile may extend another (`extends: rtx4090d`): mappings are merged key by key, everything else is
replaced.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DIRECTORY = Path(__file__).parent / "profiles"


@dataclass(frozen=True)
class Profile:
    """A named description of a box; `data` is the merged YAML (see profiles/rtx4090d.yml for every key)."""

    name: str
    data: Mapping[str, Any]

    def get(self, *keys: str, default: Any = None) -> Any:
        """The value under nested keys, or default."""
        value: Any = self.data
        for key in keys:
            if not isinstance(value, Mapping) or key not in value:
                return default
            value = value[key]
        return copy.deepcopy(value)


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Base with the values of over; nested mappings are merged, a null in over removes the key."""
    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


def names(directory: Path = DIRECTORY) -> list[str]:
    """The profiles that exist."""
    return sorted(path.stem for path in directory.glob("*.yml"))


def load(name: str, directory: Path = DIRECTORY) -> Profile:
    """Read a profile by name, or by path when it ends in .yml. Raises ValueError when there is none."""
    path = Path(name) if name.endswith(".yml") else directory / f"{name}.yml"
    if not path.is_file():
        raise ValueError(f"no profile {name!r}; there are: {', '.join(names(directory))}")
    data = yaml.safe_load(path.read_text("utf-8")) or {}
    base = data.pop("extends", None)
    if base:
        data = merge(load(base, directory).data, data)
    return Profile(path.stem, data)
