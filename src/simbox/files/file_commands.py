"""Files: what is there, parts of them, writing and replacing."""

from __future__ import annotations

import base64
import gzip
import ntpath
import uuid
import zlib
from typing import Any

from simbox.engines.python.answers import Answer, Call, Command, bad_request, refused
from simbox.engines.python.errors import file_error, rethrowing
from simbox.engines.python.loopfault import error_object, fault
from simbox.errors import WindowsError
from simbox.files.boxfiles import BoxFiles, o_time

_LINKS = ("junction", "symboliclink")


def describe(files: BoxFiles, path: str, hash_wanted: bool, max_content: int) -> dict[str, Any]:
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
        if kind in _LINKS:
            answer["Target"] = files.target(path)
        if kind == "file":
            answer["SizeBytes"] = status.st_size
            if hash_wanted:
                answer["Sha256"] = files.sha256(path)
            if status.st_size <= max_content:
                with files.reading(path) as file:
                    answer["ContentBase64"] = base64.b64encode(file.read()).decode()
    except WindowsError as error:
        answer["Error"] = error_object(error, "Get-BoxFile")
    return answer


def get(call: Call) -> list[dict[str, Any]]:
    """Get-BoxFile."""
    files, paths = BoxFiles(call.box), call.texts("Path")
    hash_wanted, limit = bool(call.get("Hash", False)), int(call.get("MaxContentBytes", -1))
    answers = []
    for number, path in enumerate(paths):
        if hash_wanted and len(paths) > 1:
            call.progress("hash", number, len(paths))
        answers.append(describe(files, path, hash_wanted, limit))
    return answers


def get_part(call: Call) -> Answer:
    """Get-BoxFilePart."""
    files, path = BoxFiles(call.box), call.text("Path")
    offset = int(call.get("OffsetBytes", 0))
    with files.reading(path) as file:
        file.seek(max(offset, 0))
        data = file.read(int(call.get("LengthBytes", 0)))
    if offset < 0:
        raise file_error(87, files.full(path))
    status = files.status(path)
    value = {
        "OffsetBytes": offset,
        "SizeBytes": status.st_size,
        "LastWriteTimeUtc": o_time(status.st_mtime_ns),
    }
    return Answer(value, data)


def _decoded(call: Call) -> bytes:
    encoding = call.get("Encoding", "none")
    if str(encoding).lower() == "none":
        return call.payload
    if str(encoding).lower() != "gzip":
        raise bad_request(f"'{encoding}' is no encoding; none and gzip are")
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
    files.full(path)
    if offset == 0:
        return {"SizeBytes": files.write(path, 0, data)}
    size = files.status(path).st_size
    files.check_writable(path)
    if size != offset:
        raise bad_request(f"{path} has {size} bytes; a part at {offset} does not continue it")
    return {"SizeBytes": files.write(path, offset, data)}


def set_file(call: Call) -> dict[str, Any]:
    """Set-BoxFile."""
    files, path = BoxFiles(call.box), call.text("Path")
    wanted, temporary = call.text("Sha256"), call.text("TemporaryPath")
    full = files.full(path)
    if files.host(path).is_dir():
        raise refused(f"{path} is a folder; a file is not put in its place. Move it away first.")
    if not temporary:
        content = _decoded(call)
        temporary = ntpath.join(ntpath.dirname(full), f"~{uuid.uuid4().hex}.part")
        files.write(temporary, 0, content)
    try:
        found = files.sha256(temporary)
        if found != wanted.lower():
            raise fault(
                "HashMismatch",
                f"the content for {path} has SHA-256 {found}, not {wanted}; nothing was replaced",
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
        with rethrowing():
            raise
    return {"Sha256": found, "SizeBytes": files.status(path).st_size, "Replaced": replaced}


def set_attribute(call: Call) -> dict[str, Any]:
    """Set-BoxFileAttribute."""
    files = BoxFiles(call.box)
    return {"Changed": files.set_read_only(call.text("Path"), bool(call.get("ReadOnly", False)))}


def copy(call: Call) -> list[dict[str, Any]]:
    """Copy-BoxItem."""
    files, items = BoxFiles(call.box), call.get("Items", [])
    answers = []
    for number, item in enumerate(items):
        call.progress("copy", number, len(items))
        path, destination = str(item.get("Path") or ""), str(item.get("Destination") or "")
        files.full(destination)
        files.copy(path, destination)
        answers.append(
            {
                "Destination": destination,
                "SizeBytes": files.status(destination).st_size,
                "Sha256": files.sha256(destination),
            }
        )
    return answers


COMMANDS: dict[str, Command] = {
    "get-boxfile": get,
    "get-boxfilepart": get_part,
    "write-boxfilepart": write_part,
    "set-boxfile": set_file,
    "set-boxfileattribute": set_attribute,
    "copy-boxitem": copy,
}
