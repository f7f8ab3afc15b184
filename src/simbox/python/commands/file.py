"""Files: what is there, parts of them, writing and replacing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import ntpath
import uuid
import zlib
from typing import Any

from simbox.python.answers import Answer, Call, Command
from simbox.python.errors import file_error
from simbox.python.files import BoxFiles, o_time
from simbox.windows.errors import WindowsError


def describe(files: BoxFiles, path: str, hash_wanted: bool, max_content: int | None) -> dict[str, Any]:
    """One element of Get-BoxFile's answer."""
    answer: dict[str, Any] = {
        "Path": path,
        "Kind": "absent",
        "SizeBytes": None,
        "Sha256": None,
        "Attributes": [],
        "LastWriteTimeUtc": None,
        "Target": None,
        "ContentBase64": None,
        "Error": None,
    }
    try:
        kind = files.kind(path)
        if kind == "absent":
            return answer
        status = files.status(path)
        answer["Kind"] = kind
        answer["Attributes"] = files.attributes(path)
        answer["LastWriteTimeUtc"] = o_time(status.st_mtime_ns)
        if kind in ("junction", "symboliclink"):
            answer["Target"] = files.target(path)
        if kind == "file":
            answer["SizeBytes"] = status.st_size
            if hash_wanted:
                answer["Sha256"] = files.sha256(path)
            if max_content is not None and status.st_size <= max_content:
                with files.reading(path) as file:
                    answer["ContentBase64"] = base64.b64encode(file.read()).decode()
    except WindowsError as error:
        answer["Error"] = error.wire() | {"command": "Get-BoxFile"}
    return answer


def get(call: Call) -> list[dict[str, Any]]:
    """Get-BoxFile."""
    files = BoxFiles(call.box)
    limit = call.get("MaxContentBytes")
    return [describe(files, path, bool(call.get("Hash", False)), limit) for path in call.texts("Path")]


def get_part(call: Call) -> Answer:
    """Get-BoxFilePart."""
    files, path = BoxFiles(call.box), call.text("Path")
    offset = int(call.get("OffsetBytes", 0))
    with files.reading(path) as file:
        file.seek(offset)
        data = file.read(int(call.get("LengthBytes", 0)))
    status = files.status(path)
    value = {
        "OffsetBytes": offset,
        "SizeBytes": status.st_size,
        "LastWriteTimeUtc": o_time(status.st_mtime_ns),
    }
    return Answer(value, data)


def _decoded(call: Call) -> bytes:
    encoding = call.text("Encoding").lower() or "none"
    if encoding == "none":
        return call.payload
    if encoding != "gzip":
        raise WindowsError(
            "BadRequest",
            f"'{call.text('Encoding')}' is no encoding; none and gzip are.",
            None,
            "InvalidArgument",
        )
    try:
        return gzip.decompress(call.payload)
    except (OSError, EOFError, zlib.error) as error:
        raise WindowsError(
            "System.IO.InvalidDataException",
            "The archive entry was compressed using an unsupported compression method.",
            0x80131501,
            "NotSpecified",
            "InvalidDataException",
        ) from error


def write_part(call: Call) -> dict[str, Any]:
    """Write-BoxFilePart."""
    files, path = BoxFiles(call.box), call.text("TemporaryPath")
    offset, data = int(call.get("OffsetBytes", 0)), _decoded(call)
    if offset:
        size = files.status(path).st_size
        if size != offset:
            raise WindowsError(
                "BadRequest",
                f"{path} has {size} bytes; a part at {offset} does not continue it.",
                None,
                "InvalidArgument",
            )
    return {"SizeBytes": files.write(path, offset, data)}


def set_file(call: Call) -> dict[str, Any]:
    """Set-BoxFile."""
    files, path = BoxFiles(call.box), call.text("Path")
    wanted = call.text("Sha256").lower()
    temporary = call.text("TemporaryPath")
    full = files.full(path)
    files.require_folder(path)
    if files.kind(path) in ("directory", "junction"):
        raise file_error(5, full)
    if not temporary:
        temporary = ntpath.join(
            ntpath.dirname(full), f"{ntpath.basename(full)[:200]}.{uuid.uuid4().hex[:8]}.tmp"
        )
        files.write(temporary, 0, _decoded(call))
    try:
        found = files.sha256(temporary)
        if found != wanted:
            raise WindowsError(
                "HashMismatch",
                f"The content for {path} has SHA-256 {found}, not {wanted}; nothing was replaced.",
                None,
                "InvalidData",
                "HashMismatch",
            )
        was_read_only = files.kind(path) == "file" and files.set_read_only(path, False)
        try:
            replaced = files.replace(temporary, path)
        finally:
            if was_read_only:
                files.set_read_only(path, True)
    except WindowsError:
        if files.kind(temporary) == "file":
            files.delete_file(temporary)
        raise
    return {"Sha256": found, "SizeBytes": files.status(path).st_size, "Replaced": replaced}


def set_attribute(call: Call) -> dict[str, Any]:
    """Set-BoxFileAttribute."""
    files = BoxFiles(call.box)
    return {"Changed": files.set_read_only(call.text("Path"), bool(call.get("ReadOnly", False)))}


def copy(call: Call) -> list[dict[str, Any]]:
    """Copy-BoxItem."""
    files = BoxFiles(call.box)
    answers = []
    for item in call.get("Items", []):
        path, destination = str(item.get("Path", "")), str(item.get("Destination", ""))
        files.copy(path, destination)
        answers.append(
            {
                "Destination": destination,
                "SizeBytes": files.status(destination).st_size,
                "Sha256": files.sha256(destination),
            }
        )
    return answers


def hash_of(data: bytes) -> str:
    """SHA-256, lower case hex."""
    return hashlib.sha256(data).hexdigest()


COMMANDS: dict[str, Command] = {
    "get-boxfile": get,
    "get-boxfilepart": get_part,
    "write-boxfilepart": write_part,
    "set-boxfile": set_file,
    "set-boxfileattribute": set_attribute,
    "copy-boxitem": copy,
}
