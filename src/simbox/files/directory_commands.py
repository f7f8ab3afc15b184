"""Folders, removal, renaming, junctions."""

from __future__ import annotations

import ntpath
import os
import uuid
from typing import Any

from simbox.engines.python.answers import Call, Command, refused, thrown
from simbox.engines.python.errors import file_error, rethrowing
from simbox.errors import WindowsError
from simbox.files.boxfiles import BoxFiles, o_time
from simbox.files.guard import require_changeable


def children(call: Call) -> dict[str, Any]:
    """Get-BoxChildItem."""
    files, path = BoxFiles(call.box), call.text("Path")
    if not files.host(path).is_dir():
        return {"Exists": False, "Items": []}
    items: list[dict[str, Any]] = []

    def walk(folder: str, prefix: str) -> None:
        for name in files.children(folder):
            child = ntpath.join(folder, name)
            kind, status = files.kind(child), files.status(child)
            items.append(
                {
                    "Name": prefix + name,
                    "Kind": kind,
                    "SizeBytes": status.st_size if kind == "file" else None,
                    "Sha256": files.sha256(child) if kind == "file" and call.get("Hash", False) else None,
                    "LastWriteTimeUtc": o_time(status.st_mtime_ns),
                }
            )
            if kind == "directory" and call.get("Recurse", False):
                walk(child, prefix + name + "\\")

    walk(files.full(path), "")
    return {"Exists": True, "Items": items}


def new(call: Call) -> dict[str, Any]:
    """New-BoxDirectory."""
    files = BoxFiles(call.box)
    created = []
    for path in call.texts("Path"):
        full = files.full(path)
        if files.host(full).is_dir():
            continue
        if not call.box.filesystem.drive(full[0]).is_dir():
            raise file_error(3, full)
        above = full
        while len(above) > 3:
            if files.kind(above) == "file":
                raise file_error(183, above)
            above = ntpath.dirname(above)
        files.host(full).mkdir(parents=True)
        created.append(path)
    return {"Created": created}


def remove(call: Call) -> dict[str, Any]:
    """Remove-BoxItem."""
    files = BoxFiles(call.box)
    for path in call.texts("Path"):
        require_changeable(files, path, "removed")
    removed = []
    for path in call.texts("Path"):
        kind = files.kind(path)
        if kind == "absent":
            continue
        if kind == "directory" and call.get("Recurse", False):
            _remove_tree(files, files.full(path))
        elif kind == "file":
            _remove_file(files, path)
        else:
            files.delete_directory(path)
        removed.append(path)
    return {"Removed": removed}


def _remove_file(files: BoxFiles, path: str) -> None:
    was_read_only = files.set_read_only(path, False)
    try:
        files.delete_file(path)
    except WindowsError:
        if was_read_only:
            files.set_read_only(path, True)
        with rethrowing():
            raise


def _remove_tree(files: BoxFiles, folder: str) -> None:
    for name in files.children(folder):
        child = ntpath.join(folder, name)
        match files.kind(child):
            case "directory":
                _remove_tree(files, child)
            case "file":
                _remove_file(files, child)
            case _:
                files.delete_directory(child)
    files.delete_directory(folder)


def move(call: Call) -> dict[str, Any]:
    """Move-BoxItem."""
    files, path = BoxFiles(call.box), call.text("Path")
    require_changeable(files, path, "moved")
    if files.kind(path) == "absent":
        raise thrown("System.IO.FileNotFoundException", f"Could not find '{path}'.", 0x80070002)
    files.move(path, call.text("Destination"))
    return {"Moved": True}


def junction(call: Call) -> dict[str, Any]:
    """New-BoxJunction: a new one beside the old, then the names are swapped."""
    files = BoxFiles(call.box)
    require_changeable(files, call.text("Path"), "made a junction")
    path, target = files.full(call.text("Path")), call.text("Target")
    if not files.host(target).is_dir():
        message = f"Could not find the target folder '{target}' of the junction '{path}'."
        raise thrown("System.IO.DirectoryNotFoundException", message, 0x80070003)
    kind = files.kind(path)
    previous = None
    if kind not in ("absent", "junction"):
        raise refused(f"{path} is there already and is no junction; it is left as it is. Move it away first.")
    if kind == "junction":
        previous = files.target(path)
        if previous.rstrip("\\").casefold() == files.full(target).rstrip("\\").casefold():
            return {"Changed": False, "PreviousTarget": previous}
    files.require_folder(path)
    beside = f"{path}.new-{uuid.uuid4().hex[:8]}"
    call.box.filesystem.make_junction(beside, files.full(target))
    os.replace(files.host(beside), files.host(path))
    return {"Changed": True, "PreviousTarget": previous}


COMMANDS: dict[str, Command] = {
    "get-boxchilditem": children,
    "new-boxdirectory": new,
    "remove-boxitem": remove,
    "move-boxitem": move,
    "new-boxjunction": junction,
}
