"""What only the python engine has to prove: that it refuses what the program lacks, and how it keeps files
and frames."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
from collections.abc import Iterator

import pytest
from powershell import COMMAND, BoxFault, EngineBox, Loop, engine_box

from simbox.engines.python import handles
from simbox.engines.python.programtext import functions
from winfleet.wire.program import bootstrap_line, build_program

D = "C:\\python engine"


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineBox]:
    with engine_box("python") as box:
        box.call("New-BoxDirectory", Path=[D])
        yield box


def put(box: EngineBox, path: str, data: bytes) -> None:
    box.call("Set-BoxFile", data, Path=path, Sha256=hashlib.sha256(data).hexdigest())


def test_a_command_that_the_program_lacks_is_unknown(engine: EngineBox) -> None:
    """The answers come from what was sent, not from what this engine could do."""
    program = "function Get-BoxSession {\n}\nfunction Get-BoxFile {\nparam([string[]] $Path)\n}\n"
    loop = Loop(engine.engine.start(COMMAND, {}, None, False))
    digest = hashlib.sha256(program.encode()).hexdigest()
    loop.send((bootstrap_line(loop.nonce, digest) + "\n\n").encode())
    assert loop.frame().kind == "loaded"
    loop.send(base64.b64encode(gzip.compress(program.encode())) + b"\n")
    assert loop.frame().kind == "ready"
    assert loop.call("Get-BoxFile", Path=["C:\\"])[0]["Kind"] == "directory"
    with pytest.raises(BoxFault, match="knows no command 'Get-BoxSystem'"):
        loop.call("Get-BoxSystem")
    with pytest.raises(BoxFault, match="has no parameter 'Hash'; it has: Path"):
        loop.call("Get-BoxFile", Path=["C:\\"], Hash=True)
    loop.close()


def test_a_damaged_program_is_not_run(engine: EngineBox) -> None:
    loop = Loop(engine.engine.start(COMMAND, {}, None, False))
    loop.send((bootstrap_line(loop.nonce, build_program().sha256) + "\n\n").encode())
    assert loop.frame().kind == "loaded"
    loop.send(base64.b64encode(gzip.compress(b"something else")) + b"\n")
    loop.process.write_stdin(b"", True)
    with pytest.raises(AssertionError, match="its SHA-256 differs"):
        loop.frame(20)
    loop.close()


def test_every_command_of_the_contract_is_known_here() -> None:
    """What the program offers and this engine does not know would look like an old box."""
    from simbox.engines.python.commands import COMMANDS

    offered = {name for name in functions(build_program().text) if "-box" in name}
    assert offered == set(COMMANDS)


def test_parameters_are_read_from_the_text() -> None:
    text = """
    function Get-BoxA { param([Parameter(Mandatory = $true)] [string] $Path, [int] $Count = 3, $Free)
        $x = 'function Get-BoxFake { param($No) }' # function Get-BoxFake2 { param($No) }
    }
    function Get-BoxB {
        [CmdletBinding()]
        param(
            [ValidateSet('a, b', "c)")] [string[]] $Names = @('x', 'y'), # trailing, with ) and ,
            [bool] $Flag = ($true -and (1 -eq 1))
        )
    }
    function Get-BoxC { return { param($Inner) } }
    function Get-BoxD([string] $One, [long] $Two) { }
    """
    found = functions(text)
    assert set(found) == {"get-boxa", "get-boxb", "get-boxc", "get-boxd"}
    shape = {
        name: [(item.name, item.type, item.mandatory) for item in function.parameters.values()]
        for name, function in found.items()
    }
    assert shape["get-boxa"] == [("Path", "string", True), ("Count", "int", False), ("Free", "", False)]
    assert shape["get-boxb"] == [("Names", "string[]", False), ("Flag", "bool", False)]
    assert shape["get-boxc"] == []
    assert shape["get-boxd"] == [("One", "string", False), ("Two", "long", False)]
    assert [found[name].advanced for name in sorted(found)] == [True, True, False, False]


def test_a_locked_file_is_a_sharing_violation(engine: EngineBox) -> None:
    path = f"{D}\\locked.txt"
    put(engine, path, b"old")
    table, host = handles.of(engine.box), engine.host(path)
    held = table.open(host, handles.READ_WRITE, handles.NOTHING)
    state = engine.call("Get-BoxFile", Path=[path], Hash=True)[0]
    assert state["Error"]["hresult"] == "0x80070020"
    assert state["SizeBytes"] == 3, "what the folder knows is told all the same"
    for command, parameters in (
        ("Remove-BoxItem", {"Path": [path]}),
        ("Move-BoxItem", {"Path": path, "Destination": f"{D}\\other.txt"}),
        ("Copy-BoxItem", {"Items": [{"Path": f"{D}\\locked.txt", "Destination": f"{D}\\copy.txt"}]}),
        ("Get-BoxFilePart", {"Path": path, "LengthBytes": 1}),
    ):
        with pytest.raises(BoxFault) as caught:
            engine.call(command, **parameters)
        assert (caught.value.type, caught.value.error["hresult"]) == ("System.IO.IOException", "0x80070020")
    with pytest.raises(BoxFault) as caught:
        put(engine, path, b"new")
    assert caught.value.error["hresult"] == "0x80070020"
    table.close(held)
    assert [item["Name"] for item in engine.call("Get-BoxChildItem", Path=D)["Items"]] == ["locked.txt"]
    put(engine, path, b"new")
    assert engine.host(path).read_bytes() == b"new"


def test_a_reader_that_shares_everything_is_in_nobodys_way(engine: EngineBox) -> None:
    path = f"{D}\\shared.txt"
    put(engine, path, b"old")
    held = handles.of(engine.box).open(engine.host(path), handles.READ, handles.EVERYTHING)
    put(engine, path, b"new")
    engine.call("Remove-BoxItem", Path=[path])
    handles.of(engine.box).close(held)


def test_a_very_long_path(engine: EngineBox) -> None:
    folder = D + "".join(f"\\{letter * 60}" for letter in "abcdef")
    assert len(folder) > 260
    engine.call("New-BoxDirectory", Path=[folder])
    put(engine, f"{folder}\\f.txt", b"deep")
    assert engine.call("Get-BoxFile", Path=[f"{folder}\\f.txt"], Hash=True)[0]["SizeBytes"] == 4
    engine.call("Remove-BoxItem", Path=[f"{D}\\{'a' * 60}"], Recurse=True)


def test_times_have_the_steps_of_windows(engine: EngineBox) -> None:
    path = f"{D}\\time.txt"
    put(engine, path, b"x")
    os.utime(engine.host(path), ns=(0, 1_700_000_000_123_456_789))
    found = engine.call("Get-BoxFile", Path=[path])[0]["LastWriteTimeUtc"]
    assert found == "2023-11-14T22:13:20.1234567Z"


def test_a_session_that_is_killed_stops_reading(engine: EngineBox) -> None:
    loop = engine.new_loop()
    pid = loop.call("Get-BoxSession")["ProcessId"]
    rows = engine.call("Get-BoxProcess", ProcessId=[pid])
    assert rows[0]["Name"].lower() == "powershell.exe"
    loop.close()
    entry = engine.box.windows.process.find(pid)
    assert entry is None or entry.gone.wait(10)
    with pytest.raises(BrokenPipeError):
        loop.send(b"\n")


def test_answers_are_kept_for_four_requests(engine: EngineBox) -> None:
    loop = engine.new_loop()
    calls = [{"command": "Get-BoxSession", "parameters": {}}]
    for seq in range(1, 7):
        loop.ask(calls, "read", seq=seq)
    again = loop.ask(calls, "read", seq=6)
    assert again.answers[0]["ok"] is True
    assert loop.ask(calls, "read", seq=3).answers[0]["ok"] is True
    forgotten = loop.ask(calls, "read", seq=2)
    assert forgotten.answers[0]["error"]["type"] == "AnswerForgotten"
    loop.close()


def test_a_repeated_change_is_made_once(engine: EngineBox) -> None:
    loop = engine.new_loop()
    calls = [{"command": "New-BoxDirectory", "parameters": {"Path": [f"{D}\\once"]}}]
    first = loop.ask(calls, "change", seq=1)
    engine.call("Remove-BoxItem", Path=[f"{D}\\once"])
    assert loop.ask(calls, "change", seq=1).answers == first.answers
    assert not engine.host(f"{D}\\once").exists()
    loop.close()


def test_what_is_no_request_is_passed_over(engine: EngineBox) -> None:
    loop = engine.new_loop()
    header = b'{"nonce": "%s", "seq": 1, "mode": "change", "calls": [], "payload_bytes": 9}'
    cut = base64.b64encode(header % loop.nonce.encode()) + b" " + base64.b64encode(b"short")
    for line in (b"garbage", b"", b"e30=", cut, base64.b64encode(header % (b"0" * 32))):
        loop.send(line + b"\n")
    assert loop.call("Get-BoxSession")["ComputerName"] == "GPU01"
    loop.close()


def test_a_failed_change_stops_the_rest(engine: EngineBox) -> None:
    calls = [
        {"command": "Move-BoxItem", "parameters": {"Path": f"{D}\\nope", "Destination": f"{D}\\x"}},
        {"command": "New-BoxDirectory", "parameters": {"Path": [f"{D}\\never"]}},
    ]
    answers = engine.loop.ask(calls, "change").answers
    assert [answer["error"]["type"] for answer in answers] == ["System.IO.FileNotFoundException", "NotRun"]
    assert not engine.host(f"{D}\\never").exists()


def test_a_read_only_request_changes_nothing(engine: EngineBox) -> None:
    calls = [
        {"command": "New-BoxDirectory", "parameters": {"Path": [f"{D}\\never"]}},
        {"command": "Get-BoxFile", "parameters": {"Path": [f"{D}\\never"]}},
    ]
    answers = engine.loop.ask(calls, "read").answers
    assert answers[0]["error"]["type"] == "ReadOnlyRefused"
    assert answers[1]["value"][0]["Kind"] == "absent"


def test_powershell_text_is_refused_with_the_way_out(engine: EngineBox) -> None:
    with pytest.raises(BoxFault, match="--engine wine") as caught:
        engine.call("Invoke-BoxScript", Text="Get-Date")
    assert caught.value.type == "Refused"
