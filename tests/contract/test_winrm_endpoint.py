"""The WinRM endpoint of a simulated box, judged by clients written for Windows: pywinrm and pypsrp."""

from __future__ import annotations

import hashlib
import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
import xmltodict
from pypsrp.exceptions import WSManFaultError as PsrpFault
from pypsrp.shell import Process, SignalCode, WinRS
from pypsrp.wsman import WSMan
from winrm.exceptions import (
    WinRMOperationTimeoutError,
    WinRMTransportError,
    WSManFaultError,
)
from winrm_box import ADDRESS, PASSWORD, USER, events_of, protocol, running_box

from simbox.winrm import Credential, Limits, WinRMEndpoint
from simbox.winrm.refusals import (
    ABORTED,
    ACCESS_DENIED,
    BROKEN_PIPE,
    INVALID_SELECTORS,
    MAX_OPERATIONS,
    MAX_SHELLS,
    NO_COMMAND,
    PROGRAM_NOT_FOUND,
    SCHEMA_VIOLATION,
)

PYWINRM = {
    "https-ntlm": {"scheme": "https"},
    "https-ntlm-sealed": {"scheme": "https", "message_encryption": "always"},
    "http-ntlm-sealed": {"scheme": "http", "message_encryption": "always"},
}
PYPSRP = {
    "https-negotiate": {"ssl": True, "auth": "negotiate"},
    "https-ntlm": {"ssl": True, "auth": "ntlm"},
    "http-negotiate-sealed": {"ssl": False, "auth": "negotiate", "encryption": "always"},
    "http-ntlm-sealed": {"ssl": False, "auth": "ntlm", "encryption": "always"},
}


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
def box(tmp_path: Path, limits: Limits) -> Iterator[WinRMEndpoint]:
    with running_box(tmp_path, limits) as endpoint:
        yield endpoint


def psrp(box: WinRMEndpoint, **options) -> WSMan:
    port = box.https_port if options["ssl"] else box.http_port
    return WSMan(
        ADDRESS, port=port, username=USER, password=PASSWORD, cert_validation=False, no_proxy=True, **options
    )


@pytest.mark.parametrize("options", PYWINRM.values(), ids=PYWINRM)
def test_pywinrm_runs_a_command(box: WinRMEndpoint, options: dict[str, str]) -> None:
    client = protocol(box, **options)
    shell = client.open_shell(codepage=65001, env_vars={"WHO": "tester"}, working_directory="/")
    command = client.run_command(shell, "echo out-$WHO; pwd; echo err >&2; exit 7")
    assert client.get_command_output(shell, command) == (b"out-tester\n/\n", b"err\n", 7)
    client.cleanup_command(shell, command)
    client.close_shell(shell)
    assert box.shells() == []
    totals = events_of(box).totals()
    assert totals["handshake"] == 1
    assert totals["connection"] == 1
    assert totals["process_start"] == totals["shell_created"] == totals["shell_deleted"] == 1


@pytest.mark.parametrize("options", PYPSRP.values(), ids=PYPSRP)
def test_pypsrp_runs_a_command(box: WinRMEndpoint, options: dict) -> None:
    with psrp(box, **options) as wsman, WinRS(wsman, environment={"WHO": "tester"}, codepage=65001) as shell:
        assert shell.owner == f"GPU01\\{USER}"
        process = Process(shell, "echo out-$WHO; echo err >&2; exit", ["7"])
        process.invoke()
        process.signal(SignalCode.TERMINATE)
        assert (process.stdout, process.stderr, process.rc) == (b"out-tester\n", b"err\n", 7)
    assert box.shells() == []
    assert events_of(box).counts("handshake") == 1


def test_pypsrp_reads_the_envelope_limit_and_the_shell_state(box: WinRMEndpoint, limits: Limits) -> None:
    limits.max_envelope_size_kb = 300
    with psrp(box, **PYPSRP["http-negotiate-sealed"]) as wsman:
        wsman.update_max_payload_size()
        assert wsman.max_envelope_size == 300 * 1024
        with WinRS(wsman, name="mine", idle_time_out=900) as shell:
            state = shell._get_shell()
    assert (state["Name"], state["IdleTimeOut"]) == ("mine", "PT900.000S")


@pytest.mark.parametrize("options", PYWINRM.values(), ids=PYWINRM)
def test_long_stdin_arrives_whole(box: WinRMEndpoint, options: dict[str, str]) -> None:
    data = os.urandom(2_000_000)
    client = protocol(box, **options)
    shell = client.open_shell()
    command = client.run_command(shell, "sha256sum", console_mode_stdin=False)
    for start in range(0, len(data), 370_000):
        part = data[start : start + 370_000]
        client.send_command_input(shell, command, part, end=start + 370_000 >= len(data))
    output, _, code = client.get_command_output(shell, command)
    client.close_shell(shell)
    assert (output.split()[0].decode(), code) == (hashlib.sha256(data).hexdigest(), 0)


def test_large_output_comes_in_envelopes_of_the_asked_size(box: WinRMEndpoint) -> None:
    client = protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, "head -c 3000000 /dev/zero | tr '\\0' x")
    output, _, code = client.get_command_output(shell, command)
    client.close_shell(shell)
    assert (output, code) == (b"x" * 3_000_000, 0)
    sizes = [event["bytes_out"] for event in events_of(box).events("http_request")]
    # pywinrm announces MaxEnvelopeSize 153600; HTTP head and sealing come on top.
    assert 100_000 < max(sizes) < 153_600 + 2_000


def test_waiting_receive_is_answered_by_the_output_itself(box: WinRMEndpoint) -> None:
    client, second = protocol(box), protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, "read line; echo got $line; read line", console_mode_stdin=False)
    found: list[bytes] = []
    reader = threading.Thread(
        target=lambda: found.append(client.get_command_output_raw(shell, command)[0]), daemon=True
    )
    reader.start()
    second.send_command_input(shell, command, b"word\n")
    reader.join(10)
    assert found == [b"got word\n"]
    second.close_shell(shell)


def test_many_calls_use_one_connection_and_one_handshake(box: WinRMEndpoint) -> None:
    client = protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, "cat", console_mode_stdin=False)
    for number in range(50):
        client.send_command_input(shell, command, b"%d\n" % number)
        assert client.get_command_output_raw(shell, command)[0] == b"%d\n" % number
    client.close_shell(shell)
    totals = events_of(box).totals()
    # Three blank posts of the handshake, Create, Command, 50 pairs, Delete.
    assert (totals["connection"], totals["handshake"], totals["http_request"]) == (1, 1, 3 + 2 + 100 + 1)


def test_parallel_clients_do_not_disturb_each_other(box: WinRMEndpoint) -> None:
    results: list[bytes] = []

    def work(number: int) -> None:
        client = protocol(box)
        shell = client.open_shell()
        command = client.run_command(shell, f"echo {number}")
        results.append(client.get_command_output(shell, command)[0])
        client.close_shell(shell)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(results) == [b"%d\n" % number for number in range(10)]
    totals = events_of(box).totals()
    assert (totals["handshake"], totals["shell_deleted"]) == (10, 10)


def fault_code(call, *args, **options) -> int:
    with pytest.raises(WSManFaultError) as caught:
        call(*args, **options)
    assert caught.value.code == 500
    return caught.value.wsman_fault_code


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_fault_codes(box: WinRMEndpoint, scheme: str) -> None:
    client = protocol(box, scheme)
    unknown = "11111111-1111-1111-1111-111111111111"
    assert fault_code(client.run_command, unknown, "echo") == INVALID_SELECTORS
    assert fault_code(client.open_shell, idle_timeout=900000) == SCHEMA_VIOLATION
    shell = client.open_shell()
    assert fault_code(client.get_command_output_raw, shell, unknown) == INVALID_SELECTORS
    assert fault_code(client.run_command, shell, "echo \x1b[0m") == SCHEMA_VIOLATION
    missing = fault_code(client.run_command, shell, "/no/such/program", skip_cmd_shell=True)
    assert missing == PROGRAM_NOT_FOUND
    command = client.run_command(shell, "true")
    client.get_command_output(shell, command)
    assert fault_code(client.send_command_input, shell, command, b"late") == BROKEN_PIPE
    client.close_shell(shell, close_session=False)
    assert fault_code(client.close_shell, shell) == INVALID_SELECTORS


def test_receive_before_a_command_exists(box: WinRMEndpoint) -> None:
    with (
        psrp(box, **PYPSRP["https-ntlm"]) as wsman,
        WinRS(wsman) as shell,
        pytest.raises(PsrpFault) as caught,
    ):
        shell.receive()
    assert caught.value.code == NO_COMMAND
    assert caught.value.provider == "Shell cmd plugin"


def test_silent_command_times_out_and_the_limit_clamps_it(box: WinRMEndpoint, limits: Limits) -> None:
    limits.max_timeout_ms = 50
    client = protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, "cat", console_mode_stdin=False)
    with pytest.raises(WinRMOperationTimeoutError):
        client.get_command_output_raw(shell, command)
    client.send_command_input(shell, command, b"still here", end=True)
    assert client.get_command_output(shell, command)[0] == b"still here"
    client.close_shell(shell)


def test_send_to_a_process_that_does_not_read(box: WinRMEndpoint, limits: Limits, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    client = protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, f"read go < {gate}; wc -c", console_mode_stdin=False)
    limits.max_timeout_ms = 50
    with pytest.raises(WinRMOperationTimeoutError):
        client.send_command_input(shell, command, b"x" * 300_000, end=True)
    assert fault_code(client.send_command_input, shell, command, b"more") == 170
    limits.max_timeout_ms = 60_000
    gate.write_text("go\n")
    assert client.get_command_output(shell, command)[0].strip() == b"300000"
    client.close_shell(shell)


def test_shell_quota_and_its_release(box: WinRMEndpoint, limits: Limits) -> None:
    limits.max_shells_per_user = 2
    client = protocol(box)
    shells = [client.open_shell(), client.open_shell()]
    assert fault_code(client.open_shell) == MAX_SHELLS
    client.close_shell(shells.pop(), close_session=False)
    shells.append(client.open_shell())
    for shell in shells:
        client.close_shell(shell, close_session=False)


def test_ended_commands_count_until_their_shell_is_deleted(box: WinRMEndpoint, limits: Limits) -> None:
    limits.max_concurrent_operations_per_user = 3
    client = protocol(box)
    shell = client.open_shell()
    for _ in range(3):
        command = client.run_command(shell, "true")
        client.get_command_output(shell, command)
        client.cleanup_command(shell, command)
    assert fault_code(client.run_command, shell, "true") == MAX_OPERATIONS
    client.close_shell(shell, close_session=False)
    shell = client.open_shell()
    client.run_command(shell, "true")
    client.close_shell(shell)


def test_shell_belongs_to_its_user(tmp_path: Path) -> None:
    accounts = [Credential(USER, PASSWORD), Credential("other", "example-other")]
    with running_box(tmp_path, credentials=accounts) as box:
        mine, theirs = protocol(box), protocol(box, username="other", password="example-other")
        shell = mine.open_shell()
        assert fault_code(theirs.run_command, shell, "true") == ACCESS_DENIED
        assert fault_code(theirs.close_shell, shell) == ACCESS_DENIED
        assert len(box.shells()) == 1
        # Two sessions of the same user may share a shell.
        protocol(box).close_shell(shell)
        assert box.shells() == []


def test_request_larger_than_the_envelope_is_413(box: WinRMEndpoint, limits: Limits) -> None:
    limits.max_envelope_size_kb = 150
    for scheme in ("http", "https"):
        client = protocol(box, scheme)
        shell = client.open_shell()
        command = client.run_command(shell, "wc -c", console_mode_stdin=False)
        with pytest.raises(WinRMTransportError) as caught:
            client.send_command_input(shell, command, b"x" * 200_000)
        assert caught.value.code == 413
        # The service never opened that body: over HTTP the sealing streams of both sides differ from now on.
        client.transport.close_session()
        client.send_command_input(shell, command, b"x" * 100_000, end=True)
        assert client.get_command_output(shell, command)[0].strip() == b"100000"
        client.close_shell(shell)


def test_command_line_limit_of_cmd(box: WinRMEndpoint) -> None:
    client = protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, "echo " + "x" * 8186)
    assert client.get_command_output(shell, command)[2] == 0
    command = client.run_command(shell, "echo " + "x" * 8187)
    output, error, code = client.get_command_output(shell, command)
    assert (output, code) == (b"", 1)
    assert b"too long" in error
    client.close_shell(shell)


@contextmanager
def dies(*pids: int) -> Iterator[None]:
    """Assert that these processes live now and are dead soon after the block."""
    descriptors = [os.pidfd_open(pid) for pid in pids]
    assert select.select(descriptors, [], [], 0)[0] == []
    yield
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], 10)[0] == [descriptor]
        os.close(descriptor)


def test_delete_kills_the_process_tree(box: WinRMEndpoint) -> None:
    client = protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, "sleep 1000 & echo $$ $!; wait")
    parent, child = map(int, client.get_command_output_raw(shell, command)[0].split())
    with dies(parent, child):
        client.close_shell(shell)


def test_terminate_ends_a_command_and_answers_who_waits_for_it(box: WinRMEndpoint) -> None:
    client, second = protocol(box), protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, "echo started; sleep 1000")
    assert client.get_command_output_raw(shell, command)[0] == b"started\n"
    codes: list[int] = []
    waiting = threading.Thread(
        target=lambda: codes.append(fault_code(client.get_command_output_raw, shell, command)), daemon=True
    )
    waiting.start()
    second.cleanup_command(shell, command)
    waiting.join(10)
    # Whether the Receive came before or after the Signal is not ours to say.
    assert codes in ([ABORTED], [INVALID_SELECTORS])
    second.close_shell(shell)


def test_ctrl_c_lets_the_command_say_goodbye(box: WinRMEndpoint) -> None:
    with psrp(box, **PYPSRP["https-ntlm"]) as wsman, WinRS(wsman) as shell:
        script = "trap 'echo bye; exit 3' INT; echo ready; while :; do sleep 0.01; done"
        process = Process(shell, script)
        process.begin_invoke()
        process.poll_invoke()
        assert process.stdout == b"ready\n"
        process.signal(SignalCode.CTRL_C)
        process.end_invoke()
        assert (process.stdout, process.rc) == (b"ready\nbye\n", 3)


def test_idle_shell_expires(box: WinRMEndpoint) -> None:
    client = protocol(box)
    shell = client.open_shell(idle_timeout="PT1S")
    command = client.run_command(shell, "sleep 1000 & echo $!; wait")
    with dies(int(client.get_command_output_raw(shell, command)[0])):
        assert events_of(box).wait_until(lambda totals: totals.get("shell_deleted", 0) == 1)
    assert events_of(box).events("shell_deleted")[0]["reason"] == "idle"
    assert fault_code(client.run_command, shell, "true") == INVALID_SELECTORS


def test_waiting_receive_keeps_a_shell_from_idling(box: WinRMEndpoint) -> None:
    client = protocol(box)
    shell = client.open_shell(idle_timeout="PT1S")
    command = client.run_command(shell, "sleep 2; echo done")
    assert client.get_command_output(shell, command)[0] == b"done\n"
    client.close_shell(shell)
    assert events_of(box).events("shell_deleted")[0]["reason"] == "delete"


def test_shell_lifetime_ends_a_busy_shell(box: WinRMEndpoint, limits: Limits) -> None:
    limits.max_shell_run_time_ms = 1000
    client = protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, "sleep 1000")
    assert fault_code(client.get_command_output_raw, shell, command) == ABORTED
    assert events_of(box).wait_until(lambda totals: totals.get("shell_deleted", 0) == 1)
    assert events_of(box).events("shell_deleted")[0]["reason"] == "lifetime"


def test_output_survives_a_client_that_hangs_up_while_it_waits(box: WinRMEndpoint, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    client = protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, f"read go < {gate}; echo precious")
    client.transport.read_timeout_sec = 0.3
    with pytest.raises(requests.exceptions.ReadTimeout):
        client.get_command_output_raw(shell, command)
    gate.write_text("go\n")
    second = protocol(box)
    assert second.get_command_output(shell, command)[0] == b"precious\n"
    second.close_shell(shell)


def test_same_receive_again_is_replayed_when_allowed(box: WinRMEndpoint, limits: Limits) -> None:
    client = protocol(box)
    shell = client.open_shell()
    command = client.run_command(shell, "echo once; cat", console_mode_stdin=False)
    header = client.build_wsman_header(
        "http://schemas.microsoft.com/wbem/wsman/1/windows/shell/Receive",
        "http://schemas.microsoft.com/wbem/wsman/1/windows/shell/cmd",
        shell,
    )
    stream = {"rsp:DesiredStream": {"@CommandId": command, "#text": "stdout stderr"}}
    text = xmltodict.unparse({"env:Envelope": {**header, "env:Body": {"rsp:Receive": stream}}})
    limits.replay_receive = True
    first = client.send_message(text)
    assert b"b25jZQo=" in first
    assert client.send_message(text) == first
    limits.replay_receive = False
    limits.max_timeout_ms = 50
    with pytest.raises(WinRMOperationTimeoutError):
        client.send_message(text)
    client.close_shell(shell)


def test_stop_ends_everything_and_start_takes_the_same_ports(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with running_box(tmp_path) as box:
        client = protocol(box)
        shell = client.open_shell()
        command = client.run_command(shell, "sleep 1000 & echo $!; wait")
        ports = (box.https_port, box.http_port)
        with dies(int(client.get_command_output_raw(shell, command)[0])):
            box.stop()
        assert set(threading.enumerate()) == before
        with pytest.raises(requests.exceptions.ConnectionError):
            protocol(box).open_shell()
        box.start()
        assert (box.https_port, box.http_port) == ports
        client.transport.close_session()
        assert fault_code(client.run_command, shell, "true") == INVALID_SELECTORS


def test_a_taken_port_is_an_error_that_leaves_nothing_behind(box: WinRMEndpoint, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with pytest.raises(OSError, match="in use"):
        WinRMEndpoint(
            ADDRESS, None, box.http_port, [], None, events_of(box), box.certificate, name="GPU02"
        ).start()
    assert set(threading.enumerate()) == before
