"""The connector while the network, the service or the process misbehaves; each case is a public report.

R and a number names the report: docs/facts/winrm.md#reports. Every test ends with a check that no
shell is left on the box (the `box` fixture).
"""

from __future__ import annotations

import base64
import io
import json
import random
import threading
from typing import Any

import pytest
from loop_box import PASSWORD, LoopBox
from pyinfra.api.exceptions import ConnectError

from winfleet.call import Call
from winfleet.wire import conversation, winrs
from winfleet.wire.errors import OutcomeUnknown, WireError

SCHEMES = ("https", "http")
CHANGE = Call("New-BoxDirectory", Path=["C:\\a"])


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses of the product would only make the tests slow."""
    monkeypatch.setattr(conversation, "RECONNECT_PAUSES_S", (0.0, 0.05, 0.1))
    monkeypatch.setattr(conversation, "DOUBT_GRACE_S", 0.3)
    monkeypatch.setattr(winrs, "HIVE_PAUSES_S", (0.01, 0.01, 0.01))
    monkeypatch.setattr(winrs, "BUSY_PAUSE_S", 0.01)


def result(output: Any) -> Any:
    """The JSON answer of a Call."""
    return json.loads(output.stdout_lines[0])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("action", ["Send", "Receive"])
@pytest.mark.parametrize(
    "kind", ["close_before", "close_after", "unauthorized", "truncate", "cut", "connection_close"]
)
def test_a_broken_exchange_is_invisible_and_nothing_runs_twice(
    box: LoopBox, scheme: str, action: str, kind: str
) -> None:
    """R1, R2, R4, R5, R14: also a text reply that was cut in the middle."""
    connector = box.connected(scheme)
    box.arm(kind, on=action)
    ok, output = connector.run_shell_command(CHANGE)
    assert ok
    assert result(output)["value"]["Command"] == "New-BoxDirectory"
    assert box.world.executed == ["New-BoxDirectory"]
    assert connector.run_shell_command("print on")[1].stdout == "on"
    assert box.events.counts("process_start") == 1
    assert box.count("fault_injected", fault=kind) == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_one_new_handshake_after_an_idle_close(box: LoopBox, scheme: str) -> None:
    """R1, R4: the service closes a connection that was quiet; its old keys are not used again."""
    box.endpoint.limits.connection_idle_s = 0.2
    connector = box.connected(scheme, winrm_idle_rehandshake_s="0.1")
    before = box.events.counts("handshake")
    threading.Event().wait(0.6)
    assert box.endpoint.connections() == 0
    assert connector.run_shell_command("print on")[1].stdout == "on"
    assert box.events.counts("handshake") - before == 1
    assert box.count("http_request", status=400) == 0


def test_a_sealed_connection_that_was_closed_unnoticed_recovers(box: LoopBox) -> None:
    """R1: without the precaution above, the old key is refused once (400), then all is well."""
    box.endpoint.limits.connection_idle_s = 0.2
    connector = box.connected("http", winrm_idle_rehandshake_s="3600")
    threading.Event().wait(0.6)
    box.endpoint.limits.connection_idle_s = 120
    assert connector.run_shell_command("print on")[1].stdout == "on"
    assert box.world.executed == ["Invoke-BoxScript"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_reply_later_than_the_read_timeout(
    box: LoopBox, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R5, R14, R63: the connection is dropped silently, the result is fetched over a new one, once."""
    monkeypatch.setattr("winfleet.wire.transport.READ_MARGIN_S", 0.5)
    connector = box.connected(scheme, winrm_operation_timeout_s=1)
    box.arm("silence", on="Receive", seconds=20)
    assert connector.run_shell_command(CHANGE)[0]
    assert box.world.executed == ["New-BoxDirectory"]
    assert connector.run_shell_command("print on")[1].stdout == "on"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_answer_soon_after_the_operation_timeout_is_no_failure(box: LoopBox, scheme: str) -> None:
    """R13: the read timeout leaves room after the operation timeout."""
    connector = box.connected(scheme, winrm_operation_timeout_s=1)
    handshakes = box.events.counts("handshake")
    box.arm("delay_reply", on="Receive", seconds=2.0)
    assert connector.run_shell_command("print on")[1].stdout == "on"
    assert box.events.counts("handshake") == handshakes


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("code", [2150858793, 1460, 170])
@pytest.mark.parametrize("kind", ["replace_reply", "fault"])
def test_a_doubtful_send(box: LoopBox, scheme: str, code: int, kind: str) -> None:
    """R16, R17: the reply denies a Send that arrived (replace_reply) or that did not (fault)."""
    connector = box.connected(scheme, winrm_operation_timeout_s=1)
    box.arm(kind, on="Send", code=code)
    assert connector.run_shell_command(CHANGE)[0]
    assert box.world.executed == ["New-BoxDirectory"]
    assert box.events.counts("process_start") == 1


def test_input_that_never_arrives_is_a_defined_failure(box: LoopBox, monkeypatch: pytest.MonkeyPatch) -> None:
    """R16: no acknowledgement after doubtful Sends: the process is ended, nothing hangs."""
    monkeypatch.setattr(conversation, "MAX_RESENDS", 2)
    connector = box.connected(winrm_operation_timeout_s=1)
    box.arm("fault", on="Send", code=2150858793, times=None)
    with pytest.raises(OutcomeUnknown, match="no whole answer after 2 repetitions"):
        connector.run_shell_command(CHANGE)
    assert box.endpoint.shells() == []
    box.endpoint.faults.clear()
    assert connector.run_shell_command("print on")[1].stdout == "on"


def test_the_process_ends_with_words(box: LoopBox) -> None:
    """R19: exit code and stderr reach the user."""
    connector = box.connected()
    with pytest.raises(
        OutcomeUnknown, match="PowerShell ended with exit code 3; it said: OutOfMemory"
    ) as raised:
        connector.run_shell_command("die 3 OutOfMemory")
    assert "may or may not have been carried out" in str(raised.value)
    assert connector.run_shell_command("print on")[1].stdout == "on"
    assert box.endpoint.shells() != []


def test_the_process_ended_before_the_send(box: LoopBox) -> None:
    """R19: 109 on the Send; nothing was run, so the command runs in a new shell."""
    connector = box.connected()
    box.arm("kill_process", on="Send")
    assert connector.run_shell_command(CHANGE)[0]
    assert box.world.executed == ["New-BoxDirectory"]
    assert box.events.counts("process_start") == 2


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_command_without_end_is_stopped_and_the_box_goes_on(
    box: LoopBox, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R2, R20: the user sees the timeout, a Signal ends the process, the next command has a new shell."""
    monkeypatch.setattr("winfleet.connectors.winrm.SCRIPT_GRACE_S", 0.2)
    connector = box.connected(scheme, winrm_operation_timeout_s=1)
    with pytest.raises(TimeoutError, match="Invoke-BoxScript did not end within 1"):
        connector.run_shell_command("wait", _timeout=1)
    assert box.count("http_request", action="Signal", status=200) == 1
    box.world.go_on.set()
    assert connector.run_shell_command("print on")[1].stdout == "on"
    assert box.events.counts("process_start") == 2


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("call", [Call("Get-BoxSystem"), CHANGE])
def test_a_service_restart_between_two_commands_is_invisible(box: LoopBox, scheme: str, call: Call) -> None:
    """R24, R30: an unknown shell is never used again; what surely was not delivered runs in a new one."""
    connector = box.connected(scheme)
    box.endpoint.restart_service()
    assert connector.run_shell_command(call)[0]
    assert box.world.executed == [call.command]
    box.endpoint.restart_service()
    assert connector.run_shell_command("print on")[1].stdout == "on"


def test_a_service_restart_in_mid_command_is_reported_not_repeated(box: LoopBox) -> None:
    """R24"""
    connector = box.connected(winrm_operation_timeout_s=1)
    box.arm("service_restart", on="Receive", after=1)
    with pytest.raises(OutcomeUnknown, match="shell is gone"):
        connector.run_shell_command("wait")
    box.world.go_on.set()
    assert box.world.executed == ["Invoke-BoxScript"]
    assert connector.run_shell_command("print on")[1].stdout == "on"


def test_a_read_never_fails_but_says_what_happened(box: LoopBox) -> None:
    connector = box.connected()
    box.arm("service_restart", on="Receive", times=None)
    ok, output = connector.run_shell_command(Call("Get-BoxSystem"))
    assert ok
    assert result(output)["error"]["type"] == "Transport"
    assert "127.0.0.1" in result(output)["error"]["message"]
    box.endpoint.faults.clear()


def test_an_old_shell_is_replaced_before_the_host_ends_it(box: LoopBox) -> None:
    """R24: shells of old hosts live 8 h."""
    connector = box.connected(winrm_shell_max_age_s="0.05")
    threading.Event().wait(0.1)
    assert connector.run_shell_command("print on")[1].stdout == "on"
    assert box.events.counts("shell_created") == 2
    assert len(box.endpoint.shells()) == 1


@pytest.mark.parametrize("code", [2150859174, 2150859240])
def test_too_many_operations_lead_to_a_new_shell(box: LoopBox, code: int) -> None:
    """R25, R64"""
    connector = box.connected()
    box.arm("fault", on="Send", code=code)
    assert connector.run_shell_command(CHANGE)[0]
    assert box.world.executed == ["New-BoxDirectory"]
    assert len(box.endpoint.shells()) == 1


def test_too_many_shells_names_the_remedy(box: LoopBox) -> None:
    """R27"""
    box.endpoint.limits.max_shells_per_user = 1
    first = box.connected()
    with pytest.raises(ConnectError, match=r"too many shells are open for operator .*Remove-WSManInstance"):
        box.connected()
    first.disconnect()
    box.connected()


def test_a_killed_run_leaves_no_shell_to_the_next_one(box: LoopBox) -> None:
    """R27: the note of an open shell whose process is gone makes the next run remove it."""
    from winfleet.wire import ledger

    killed = box.connected()
    assert len(box.endpoint.shells()) == 1
    note = next(ledger._folder().glob("*.json"))
    note.write_text(
        note.read_text().replace(f'"pid": {json.loads(note.read_text())["pid"]}', '"pid": 4194305')
    )
    killed._session = None
    box.connected()
    assert len(box.endpoint.shells()) == 1
    assert len(list(ledger._folder().glob("*.json"))) == 1


def test_a_shell_that_could_not_be_deleted_is_removed_by_the_next_one(box: LoopBox) -> None:
    """R27"""
    connector = box.connected()
    box.arm("http_status", on="Delete", code=503, times=2)
    connector.disconnect()
    assert len(box.endpoint.shells()) == 1
    connector.connect()
    assert len(box.endpoint.shells()) == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_profile_that_is_still_unloading(box: LoopBox, scheme: str) -> None:
    """R31"""
    box.arm("fault", on="Create", code=2147943418, times=2)
    assert box.connected(scheme).run_shell_command("print on")[1].stdout == "on"
    box.arm("fault", on="Create", code=2147943418, times=None)
    with pytest.raises(ConnectError, match="2147943418"):
        box.connected(scheme)
    box.endpoint.faults.clear()


def test_two_states_in_one_reply(box: LoopBox) -> None:
    """R45"""
    connector = box.connected()
    box.arm("two_states", on="Receive", times=None)
    with pytest.raises(OutcomeUnknown, match="exit code 77"):
        connector.run_shell_command("die 77")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_box_with_small_envelopes(box: LoopBox, scheme: str) -> None:
    """R47: steps down once, remembers, loses and doubles nothing."""
    box.endpoint.limits.max_envelope_size_kb = 150
    connector = box.connected(scheme)
    content = random.Random(3).randbytes(1_500_000)
    connector.put_file(io.BytesIO(content), "C:\\a.bin")
    assert box.world.files == {"C:\\a.bin": content}
    assert box.count("http_request", status=413) == 1
    connector.put_file(io.BytesIO(content[::-1]), "C:\\a.bin")
    assert box.world.files == {"C:\\a.bin": content[::-1]}
    assert box.count("http_request", status=413) == 1


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["close_before", "close_after", "unauthorized", "cut"])
def test_an_upload_over_a_broken_connection(box: LoopBox, scheme: str, kind: str) -> None:
    connector = box.connected(scheme)
    content = random.Random(4).randbytes(2_000_000)
    box.arm(kind, on="Send", after=3)
    box.arm(kind, on="Send", after=5)
    connector.put_file(io.BytesIO(content), "C:\\a.bin")
    assert box.world.files == {"C:\\a.bin": content}


def test_a_failed_upload_leaves_no_part_behind(box: LoopBox) -> None:
    connector = box.connected()
    box.world.files["C:\\a.bin"] = b"old"
    box.arm("service_restart", on="Send", after=4)
    with pytest.raises(WireError):
        connector.put_file(io.BytesIO(random.Random(4).randbytes(2_000_000)), "C:\\a.bin")
    assert box.world.files == {"C:\\a.bin": b"old"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_twenty_callers_of_one_host_take_turns(box: LoopBox, scheme: str) -> None:
    """R7, R8: one connection, no 401 beyond the handshake, no 400."""
    connector = box.connected(scheme)
    unauthorized = box.count("http_request", status=401)
    failures: list[Any] = []

    def work(number: int) -> None:
        try:
            assert connector.run_shell_command(f"print {number}")[1].stdout == str(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert box.count("http_request", status=401) == unauthorized
    assert box.count("http_request", status=400) == 0
    assert box.events.counts("connection") == 1


def test_many_sessions_to_one_box_at_once(box: LoopBox) -> None:
    """R8: N handshakes for N sessions, none fails."""
    failures: list[Any] = []
    connectors = [box.connector("http") for _ in range(10)]

    def work(number: int) -> None:
        try:
            connectors[number].connect()
            assert connectors[number].run_shell_command(f"print {number}")[1].stdout == str(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert box.count("handshake", ok=True) == 10
    assert box.count("handshake", ok=False) == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_noise_and_fragments(box: LoopBox, scheme: str) -> None:
    """R59: noise before, between and after frames, and output in pieces of one byte."""
    box.arm("fragment", on="Receive", times=None, size=50)
    noise = base64.b64encode(b"\r\nprogress 12%\xff\xfe\r\n").decode()
    box.arm("noise", on="Receive", times=6, data_base64=noise)
    connector = box.connected(scheme)
    _, output = connector.run_shell_command("print " + "x" * 10_000)
    assert output.stdout_lines == ["x" * 10_000]


def test_disconnect_never_raises(box: LoopBox) -> None:
    """R36: not when the box is gone, not when it refuses us, not twice."""
    connector = box.connected()
    box.arm("unauthorized", on="Delete", times=2)
    connector.disconnect()
    connector.disconnect()
    box.endpoint.restart_service()
    gone = box.connected()
    box.endpoint.stop()
    gone.disconnect()
    box.endpoint.start()


def test_an_interrupted_run_deletes_its_shell(box: LoopBox, monkeypatch: pytest.MonkeyPatch) -> None:
    """R27: Ctrl-C while a command runs: the Delete goes over a connection of its own."""
    import requests

    connector = box.connected(winrm_operation_timeout_s=1)
    real = requests.Session.send

    def interrupted(self: Any, request: Any, **options: Any) -> Any:
        if b"Receive" in (request.body or b""):
            raise KeyboardInterrupt
        return real(self, request, **options)

    monkeypatch.setattr(requests.Session, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        connector.run_shell_command("wait")
    monkeypatch.setattr(requests.Session, "send", real)
    assert len(box.endpoint.shells()) == 1
    connector.disconnect()
    assert box.endpoint.shells() == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_password_that_changed_in_mid_run_is_one_clear_error(box: LoopBox, scheme: str) -> None:
    connector = box.connected(scheme)
    box.change_password("another example")
    with pytest.raises(WireError, match="user 'operator' or its password was not accepted") as raised:
        connector.run_shell_command(CHANGE)
    assert PASSWORD not in str(raised.value)
    assert box.world.executed == []
