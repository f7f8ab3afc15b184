"""The connector end to end over HTTPS with NTLM and over sealed HTTP, nothing going wrong."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from loop_box import LoopBox
from pyinfra.api.command import HiddenValue, StringCommand

from winfleet.call import Call
from winfleet.wire.errors import ArgumentRefused, TransferFailed

SCHEMES = ("https", "http")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_thousand_commands_are_one_connection_one_shell_one_process(box: LoopBox, scheme: str) -> None:
    connector = box.connected(scheme)
    for number in range(1000):
        ok, output = connector.run_shell_command(Call("Get-BoxRegistry", Key=f"HKLM:\\{number}"))
        assert ok
        assert json.loads(output.stdout)["value"]["Parameters"]["Key"] == f"HKLM:\\{number}"
    connector.disconnect()
    counts = box.events.totals()
    assert (counts["connection"], counts["shell_created"], counts["process_start"]) == (1, 1, 1)
    assert counts["handshake"] == 1
    assert box.count("http_request", action="Send") == 1002


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_run_that_reads_ahead_costs_few_requests(box: LoopBox, scheme: str) -> None:
    connector = box.connected(scheme)
    calls = [Call("Get-BoxRegistry", Key=str(number)) for number in range(12)]
    assert connector.prefetch(calls) == 12
    for call in calls:
        assert connector.run_shell_command(call)[0]
    connector.disconnect()
    assert box.events.counts("http_request") <= 13


def test_text_runs_with_all_supported_arguments(box: LoopBox) -> None:
    connector = box.connected()
    settings: dict[str, Any] = {
        "_shell_executable": "cmd",
        "_chdir": "C:\\work",
        "_timeout": 5,
        "_env": {"KEY": HiddenValue("example-secret")},
        "_stdin": ["one", "two"],
        "_success_exit_codes": [0, 3],
    }
    ok, output = connector.run_shell_command("settings;environment KEY;exit 3", **settings)
    assert ok
    assert output.stdout_lines == ["['cmd', 'C:\\\\work', 5.0]", "example-secret"]
    assert box.world.payloads == [b"one\ntwo\n"]
    assert not connector.run_shell_command("exit 4", **settings)[0]


def test_exit_codes_beyond_31_bits_come_signed_or_unsigned(box: LoopBox) -> None:
    connector = box.connected()
    for wanted in (2147943401, 2147943401 - (1 << 32)):
        assert connector.run_shell_command("exit 2147943401", _success_exit_codes=[wanted])[0]
        assert connector.run_shell_command("exit -2147023895", _success_exit_codes=[wanted])[0]


def test_output_in_the_code_page_of_the_box(box: LoopBox) -> None:
    connector = box.connected()
    hexadecimal = ("中文" * 10 + "\r\n").encode("gbk").hex()
    pieces = ";".join(f"raw {hexadecimal[start : start + 6]}" for start in range(0, len(hexadecimal), 6))
    _, output = connector.run_shell_command(f"print grün;{pieces};raw ff;complain oops")
    assert output.stdout_lines == ["grün", "中文" * 10, "\ufffd"]
    assert output.stderr_lines == ["oops"]


@pytest.mark.parametrize(
    "name", ["_sudo", "_sudo_user", "_su_user", "_doas", "_dzdo", "_get_pty", "_use_sudo_login", "_su_shell"]
)
def test_unix_arguments_are_refused_by_name(box: LoopBox, name: str) -> None:
    connector = box.connected()
    with pytest.raises(ArgumentRefused, match=name):
        connector.run_shell_command("print x", **{name: True})
    assert "Invoke-BoxScript" not in box.world.executed


def test_every_argument_of_this_pyinfra_is_known_and_a_future_one_does_no_harm(box: LoopBox) -> None:
    from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS

    from winfleet.connectors.arguments import HANDLED_BY_PYINFRA, SUPPORTED, UNIX_ONLY

    assert set(CONNECTOR_ARGUMENT_KEYS) == UNIX_ONLY | HANDLED_BY_PYINFRA | SUPPORTED
    assert box.connected().run_shell_command("print x", _new_in_pyinfra_9=True)[0]


def test_a_masked_secret_is_never_sent(box: LoopBox) -> None:
    connector = box.connected()
    secret = HiddenValue("example-secret")
    sends = box.count("http_request", action="Send")
    with pytest.raises(ArgumentRefused, match="MASKED"):
        connector.run_shell_command(f"print {secret}")
    with pytest.raises(ArgumentRefused, match="MASKED"):
        connector.run_shell_command("print x", _env={"A": f"{secret}"})
    with pytest.raises(ArgumentRefused, match="MASKED"):
        connector.run_shell_command(Call("New-BoxDirectory", Path=[f"C:\\{secret}"]))
    with pytest.raises(TransferFailed, match="MASKED"):
        connector.put_file(io.BytesIO(b"x" * (1 << 20) + str(secret).encode()), "C:\\a")
    assert box.count("http_request", action="Send") == sends
    assert connector.run_shell_command(StringCommand("print", secret))[1].stdout == "example-secret"


def test_while_planning_nothing_changes(box: LoopBox) -> None:
    connector = box.connected()
    connector.state.is_executing = False
    ok, output = connector.run_shell_command("print x")
    assert not ok
    assert "only reading is allowed" in output.stderr
    ok, output = connector.run_shell_command(Call("New-BoxDirectory", Path=["C:\\a"]))
    assert not ok
    assert json.loads(output.stdout)["error"]["type"] == "ReadOnlyRefused"
    with pytest.raises(TransferFailed, match="ReadOnlyRefused"):
        connector.put_file(io.BytesIO(b"x"), "C:\\a")
    assert connector.run_shell_command(Call("Get-BoxSystem"))[0]
    assert box.world.files == {}
    assert {name.partition("-")[0] for name in box.world.executed} == {"Get"}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", [0, 1, 300_000, 3_000_000])
def test_files_travel_both_ways_and_are_sent_once(
    box: LoopBox, scheme: str, size: int, tmp_path: Path
) -> None:
    connector = box.connected(scheme)
    content = random.Random(size).randbytes(size)
    assert connector.put_file(io.BytesIO(content), "C:/ninfer/a.bin")
    assert box.world.files == {"C:\\ninfer\\a.bin": content}
    sends = box.count("http_request", action="Send")
    assert connector.put_file(io.BytesIO(content), "C:/ninfer/a.bin")
    assert box.count("http_request", action="Send") == sends + 1
    target = tmp_path / "got.bin"
    assert connector.get_file("C:/ninfer/a.bin", str(target))
    assert target.read_bytes() == content
    sink = io.BytesIO()
    assert connector.get_file("C:/ninfer/a.bin", sink)
    assert sink.getvalue() == content
    assert [path.name for path in tmp_path.glob(".got*")] == []


def test_a_large_file_costs_about_four_requests_a_mebibyte(box: LoopBox) -> None:
    connector = box.connected()
    before = box.events.counts("http_request")
    connector.put_file(io.BytesIO(random.Random(1).randbytes(4 << 20)), "C:\\big.bin")
    assert box.events.counts("http_request") - before <= 4 * 4 + 5


def test_compressible_files_are_compressed(box: LoopBox) -> None:
    connector = box.connected()
    before = box.events.counts("bytes_in")
    connector.put_file(io.BytesIO(b"ninfer " * 500_000), "C:\\text.txt")
    assert box.world.files["C:\\text.txt"] == b"ninfer " * 500_000
    assert box.events.counts("bytes_in") - before < 200_000


def test_a_shell_per_command_leaves_none_between(box: LoopBox) -> None:
    connector = box.connected(winrm_mode="percommand")
    for number in range(3):
        assert connector.run_shell_command(f"print {number}")[1].stdout == str(number)
        assert box.endpoint.shells() == []
    connector.put_file(io.BytesIO(random.Random(1).randbytes(1 << 20)), "C:\\big.bin")
    assert len(box.world.files["C:\\big.bin"]) == 1 << 20
    assert box.endpoint.shells() == []
    assert box.events.counts("process_start") >= 5


def test_noise_of_a_profile_before_the_start_is_ignored(box: LoopBox) -> None:
    box.world.before_ready = b"\xef\xbb\xbfWelcome!\r\nno line end"
    assert box.connected().run_shell_command("print x")[1].stdout == "x"


def test_the_box_ends_a_command_at_its_timeout(box: LoopBox) -> None:
    connector = box.connected()
    with pytest.raises(TimeoutError, match="did not end within 2 s"):
        connector.run_shell_command("overrun", _timeout=2)
    assert connector.run_shell_command("print on")[1].stdout == "on"
    assert box.events.counts("process_start") == 1
