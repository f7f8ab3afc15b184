"""Files and folders beyond single calls: uploads in parts, junctions in trees, on every engine."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
from collections.abc import Iterator

import pytest
from powershell import BoxFault, EngineBox

_NUMBERS = itertools.count(1)


@contextlib.contextmanager
def held(box: EngineBox, path: str) -> Iterator[None]:
    """A program of the box has the file open for writing and lets others read it, as a server has its log."""
    if box.box.engine == "wine":
        # Wine's cmd.exe lets others even replace the file that it redirects into.
        script = f"$file = [IO.File]::Open('{path}', 'Create', 'Write', 'Read'); 'open'; Start-Sleep 120"
        program = box.engine.start(f'powershell.exe -NoProfile -Command "{script}"', {}, None, False)
    else:
        program = box.engine.start(f'(echo open) 1>&2 & ping -n 120 127.0.0.1 >"{path}"', {}, None, False)
    try:
        out = b""
        while b"open" not in out or not box.host(path).exists():
            assert program.exit_code is None, out
            out += b"".join(data for _, data in program.read(1))
        yield
    finally:
        program.terminate()


@pytest.fixture
def folder(box: EngineBox) -> str:
    """A fresh folder of the box."""
    path = f"C:\\file tests\\{next(_NUMBERS)}"
    box.host(path).mkdir(parents=True)
    return path


def test_upload_in_parts_without_answers(box: EngineBox, folder: str) -> None:
    """The parts go out back to back; only the completing call is answered, and it checks the whole."""
    content = bytes(range(256)) * 4096
    part_bytes = 300_000
    for at in range(0, len(content), part_bytes):
        box.loop.tell(
            [
                {
                    "command": "Write-BoxFilePart",
                    "parameters": {
                        "TemporaryPath": f"{folder}\\x.part",
                        "OffsetBytes": at,
                        "Encoding": "gzip",
                    },
                }
            ],
            gzip.compress(content[at : at + part_bytes]),
        )
    digest = hashlib.sha256(content).hexdigest()
    value = box.call("Set-BoxFile", Path=f"{folder}\\x.bin", Sha256=digest, TemporaryPath=f"{folder}\\x.part")
    assert value == {"Sha256": digest, "SizeBytes": len(content), "Replaced": False}
    assert box.host(f"{folder}\\x.bin").read_bytes() == content
    assert not box.host(f"{folder}\\x.part").exists()


def test_upload_with_a_lost_part_is_found_by_its_hash(box: EngineBox, folder: str) -> None:
    part = {"TemporaryPath": f"{folder}\\x.part", "OffsetBytes": 0}
    box.loop.tell([{"command": "Write-BoxFilePart", "parameters": part}], b"first")
    box.loop.tell([{"command": "Write-BoxFilePart", "parameters": {**part, "OffsetBytes": 10}}], b"third")
    with pytest.raises(BoxFault) as fault:
        box.call(
            "Set-BoxFile",
            Path=f"{folder}\\x.bin",
            Sha256=hashlib.sha256(b"firstnextthird").hexdigest(),
            TemporaryPath=f"{folder}\\x.part",
        )
    assert fault.value.type == "HashMismatch"
    assert list(box.host(folder).iterdir()) == []


def test_parts_of_a_file_come_as_they_are(box: EngineBox, folder: str) -> None:
    content = bytes(range(256))
    box.host(f"{folder}\\x.bin").write_bytes(content)
    reply = box.reply("Get-BoxFilePart", Path=f"{folder}\\x.bin", OffsetBytes=250, LengthBytes=100)
    assert reply.payload == content[250:]
    assert reply.answers[0]["value"]["SizeBytes"] == 256


def test_a_junction_is_removed_and_never_followed(box: EngineBox, folder: str) -> None:
    box.host(f"{folder}\\target").mkdir()
    box.host(f"{folder}\\target\\keep.txt").write_text("keep")
    box.host(f"{folder}\\tree").mkdir()
    box.call("New-BoxJunction", Path=f"{folder}\\tree\\link", Target=f"{folder}\\target")
    items = box.call("Get-BoxChildItem", Path=f"{folder}\\tree", Recurse=True)["Items"]
    assert [(item["Name"], item["Kind"]) for item in items] == [("link", "junction")]
    (found,) = box.call("Get-BoxFile", Path=[f"{folder}\\tree\\link"])
    assert (found["Kind"], found["Target"]) == ("junction", f"{folder}\\target")
    box.call("Remove-BoxItem", Path=[f"{folder}\\tree"], Recurse=True)
    assert not box.host(f"{folder}\\tree").exists()
    assert box.host(f"{folder}\\target\\keep.txt").read_text() == "keep"
