"""Files and folders: the cases of cases/files.yml, junctions and uploads, on every engine."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from powershell import BoxFault, EngineBox

CASES: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("cases").joinpath("files.yml").read_text("utf-8")
)
_NUMBERS = itertools.count(1)


def filled(value: Any, folder: str) -> Any:
    """The case with its scratch folder and its long name put in."""
    if isinstance(value, str):
        return value.replace("{D}", folder).replace("{long}", "a name of many characters " * 4 + "x")
    if isinstance(value, list):
        return [filled(item, folder) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, folder) for key, item in value.items()}
    return value


def assert_contains(found: Any, wanted: Any) -> None:
    """Every named property has the wanted value; lists have the same length."""
    if isinstance(wanted, dict):
        for key, item in wanted.items():
            assert_contains(found[key], item)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), found
        for one, item in zip(found, wanted, strict=True):
            assert_contains(one, item)
    else:
        assert found == wanted


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


def lay(box: EngineBox, item: dict[str, Any], stack: contextlib.ExitStack) -> None:
    if "held" in item:
        stack.enter_context(held(box, item["held"]))
    elif "directory" in item:
        box.host(item["directory"]).mkdir(parents=True)
    else:
        host = box.host(item["file"])
        host.parent.mkdir(parents=True, exist_ok=True)
        host.write_bytes(item["text"].encode())
        if item.get("read_only"):
            box.call("Set-BoxFileAttribute", Path=item["file"], ReadOnly=True)


def check(box: EngineBox, item: dict[str, Any]) -> None:
    host = box.host(item["path"])
    if "children" in item:
        assert sorted(child.name for child in host.iterdir()) == item["children"]
        return
    if "no_parts" in item:
        assert not list(host.glob("*.part"))
        return
    (found,) = box.call("Get-BoxFile", Path=[item["path"]])
    assert found["Kind"] == item["kind"]
    assert host.exists() == (item["kind"] != "absent")
    if "text" in item:
        assert host.read_bytes() == item["text"].encode()
    if "size_bytes" in item:
        assert host.stat().st_size == found["SizeBytes"] == item["size_bytes"]
    if "read_only" in item:
        assert ("ReadOnly" in found["Attributes"]) == item["read_only"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(box: EngineBox, case: dict[str, Any]) -> None:
    folder = f"C:\\file cases\\{next(_NUMBERS)}"
    case = filled(case, folder)
    box.host(folder).mkdir(parents=True)
    payload = bytes(index * 7 % 251 for index in range(case.get("content_bytes", 0)))
    payload = payload or case.get("content", "").encode()
    parameters = dict(case["parameters"])
    if case["call"] == "Set-BoxFile":
        parameters.setdefault("Sha256", hashlib.sha256(payload).hexdigest())
    with contextlib.ExitStack() as stack:
        for item in case.get("given", []):
            lay(box, item, stack)
        if "error" in case:
            with pytest.raises(BoxFault) as fault:
                box.call(case["call"], payload, **parameters)
            assert_contains(fault.value.error, case["error"])
        else:
            assert_contains(box.call(case["call"], payload, **parameters), case.get("value", {}))
        for item in case.get("then", []):
            check(box, item)


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
