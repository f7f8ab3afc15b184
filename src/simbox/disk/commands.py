"""From a path to the device that holds it."""

from __future__ import annotations

import ntpath
from typing import Any

from simbox.engines.python.answers import Call, Command
from simbox.errors import WindowsError
from simbox.files.boxfiles import BoxFiles

_MOST_LINKS = 32


class _Unresolved(Exception):
    pass


def _existing(files: BoxFiles, path: str, chain: list[str]) -> str:
    """The nearest existing ancestor with every junction on the way replaced; each replacement goes into
    chain."""
    current = files.full(path)
    while not files.host(current).exists():
        parent = ntpath.dirname(current)
        if parent == current:
            raise _Unresolved(f"no part of {path} exists")
        current = parent
    for _ in range(_MOST_LINKS):
        walked, parts = current[:3], [part for part in current[3:].split("\\") if part]
        for number, part in enumerate(parts):
            walked = ntpath.join(walked, part)
            if files.kind(walked) == "junction":
                target = files.target(walked)
                chain.append(f"{walked} -> {target} (Junction)")
                current = ntpath.join(target, *parts[number + 1 :])
                break
        else:
            return current
    raise _Unresolved(f"links of {path} lead in a circle")


def _one(call: Call, path: str) -> dict[str, Any]:
    names = (
        "Path ExistingPath Root DriveType FileSystem SizeBytes FreeBytes BusType MediaType Model Chain Error"
    )
    answer: dict[str, Any] = dict.fromkeys(names.split())
    chain: list[str] = []
    answer |= {"Path": path, "Chain": chain}
    try:
        answer["ExistingPath"] = existing = _existing(BoxFiles(call.box), path, chain)
    except (_Unresolved, WindowsError) as error:
        return answer | {"Error": str(error)}
    answer["Root"] = root = existing[:3]
    rows = [row for row in call.box.windows.disk.topology() if row["DriveLetter"] == root[0]]
    if not rows:
        return answer | {"Error": f"No MSFT_Volume objects found for {root}"}
    row = rows[0]
    chain += [
        f"volume {root} {row['FileSystem']}",
        f"partition {row['PartitionNumber']} of disk {row['DiskNumber']}",
        f"disk {row['DiskNumber']} {row['Model']}, bus {row['BusType']}",
    ]
    keys = ("FileSystem", "SizeBytes", "FreeBytes", "BusType", "MediaType", "Model")
    return answer | {"DriveType": "Fixed"} | {key: row[key] for key in keys}


def get(call: Call) -> list[dict[str, Any]]:
    """Get-BoxDisk."""
    return [_one(call, path) for path in call.texts("Path")]


COMMANDS: dict[str, Command] = {"get-boxdisk": get}
