"""The small layers under the WinRM endpoint: sealing, faults, commands, host processes, event log, limits."""

from __future__ import annotations

import os
import threading
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbox.engines.engine import Chunk
from simbox.eventlog import EventLog
from simbox.hostprocess import HostProcess
from simbox.winrm import sealing
from simbox.winrm.command import ClientGone, Command
from simbox.winrm.faults import Fault, FaultPlan
from simbox.winrm.limits import Limits
from simbox.winrm.refusals import OPERATION_TIMED_OUT, Refusal


def wrap(data: bytes) -> tuple[bytes, bytes, int]:
    return b"S" * 16, bytes(byte ^ 0x55 for byte in data), 0


def unwrap(signature: bytes, data: bytes) -> bytes:
    if signature != b"S" * 16:
        raise ValueError("signature")
    return bytes(byte ^ 0x55 for byte in data)


boundary = bytes(byte ^ 0x55 for byte in b"--Encrypted Boundary--\r\n")


@given(st.one_of(st.binary(max_size=200), st.binary(max_size=20).map(lambda data: data + boundary + data)))
def test_seal_and_unseal(data: bytes) -> None:
    content_type, body = sealing.seal(data, wrap)
    assert sealing.is_sealed(content_type)
    assert body.endswith(b"--Encrypted Boundary--\r\n")
    assert sealing.unseal(body, unwrap) == data


@given(st.binary(max_size=100), st.data())
def test_cut_body_is_an_error(data: bytes, draw: st.DataObject) -> None:
    _, body = sealing.seal(data, wrap)
    cut = draw.draw(st.integers(0, len(body) - len(b"--Encrypted Boundary--\r\n") - 1))
    with pytest.raises(sealing.SealError):
        sealing.unseal(body[:cut], unwrap)


def test_several_parts_are_joined_and_a_foreign_key_is_an_error() -> None:
    end = len(b"--Encrypted Boundary--\r\n")
    parts = [sealing.seal(data, wrap)[1] for data in (b"one ", b"two")]
    assert sealing.unseal(parts[0][:-end] + parts[1], unwrap) == b"one two"
    with pytest.raises(sealing.SealError):
        sealing.unseal(parts[0].replace(b"S" * 16, b"T" * 16), unwrap)


class ScriptedProcess:
    """A process whose output the test decides."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self._changed = threading.Condition()
        self._chunks: deque[Chunk] = deque()
        self._code: int | None = None

    def write(self, *chunks: Chunk) -> None:
        with self._changed:
            self._chunks.extend(chunks)
            self._changed.notify_all()

    def end(self, code: int) -> None:
        with self._changed:
            self._code = code
            self._changed.notify_all()

    def read(self, timeout_s: float) -> list[Chunk]:
        with self._changed:
            self._changed.wait_for(lambda: self._chunks or self._code is not None, timeout_s)
            chunks = list(self._chunks)
            self._chunks.clear()
            self.exit_code = self._code
            return chunks

    def write_stdin(self, data: bytes, end: bool) -> None:
        raise BrokenPipeError

    def signal(self, ctrl_c: bool) -> None:
        self.end(0xC000013A)

    def terminate(self) -> None:
        self.end(1)


def whole(chunk: Chunk) -> list[Chunk]:
    return [chunk]


def present() -> bool:
    return False


def test_command_hands_out_output_in_order_and_the_code_last() -> None:
    process = ScriptedProcess()
    command = Command("C", process, whole)
    process.write(("stdout", b"a" * 1000), ("stderr", b"b"), ("stdout", b"c"))
    output = command.receive(10, 600, present)
    assert output.chunks == [("stdout", b"a" * 600)]
    process.end(3221225477)
    rest: list[Chunk] = []
    while output.exit_code is None:
        output = command.receive(10, 600, present)
        rest += output.chunks
    assert rest == [("stdout", b"a" * 400), ("stderr", b"b"), ("stdout", b"c")]
    assert output.exit_code == 3221225477
    assert command.receive(10, 600, present).exit_code == 3221225477
    command.terminate()


def test_command_keeps_output_for_a_client_that_has_gone() -> None:
    process = ScriptedProcess()
    command = Command("C", process, whole)
    process.write(("stdout", b"kept"))
    with pytest.raises(ClientGone):
        command.receive(10, 600, lambda: True)
    assert command.receive(10, 600, present).chunks == [("stdout", b"kept")]
    with pytest.raises(Refusal) as caught:
        command.receive(0, 600, present)
    assert caught.value.code == OPERATION_TIMED_OUT
    command.terminate()


def test_ctrl_c_shows_as_the_code_of_windows() -> None:
    command = Command("C", ScriptedProcess(), whole)
    command.signal(ctrl_c=True)
    assert command.receive(10, 600, present).exit_code == 0xC000013A
    command.terminate()


def test_fragments_cut_characters() -> None:
    plan = FaultPlan()
    plan.add(Fault("fragment", size=2, times=None))
    pieces = plan.shape(("stdout", "\u4e2d\u6587".encode("gbk") + b"!"))
    assert pieces == [("stdout", b"\xd6\xd0"), ("stdout", b"\xce\xc4"), ("stdout", b"!")]


def test_a_fault_waits_for_its_action() -> None:
    plan = FaultPlan()
    plan.add(Fault("close_after", on="Send"))
    assert plan.take("reply", "Receive") == []
    assert plan.take("request", "Send") == []
    assert [fault.kind for fault in plan.take("reply", "Send")] == ["close_after"]
    assert plan.take("reply", "Send") == []


def read_all(process: HostProcess) -> tuple[bytes, bytes, int | None]:
    found = {"stdout": b"", "stderr": b""}
    while True:
        chunks = process.read(10)
        for name, data in chunks:
            found[name] += data
        if not chunks:
            return found["stdout"], found["stderr"], process.exit_code


def test_host_process() -> None:
    process = HostProcess(["/bin/sh", "-c", "cat; echo err >&2; exit 9"])
    assert process.read(0) == []
    assert process.exit_code is None
    process.write_stdin(b"in", end=False)
    process.write_stdin(b"put", end=True)
    assert read_all(process) == (b"input", b"err\n", 9)
    with pytest.raises(BrokenPipeError):
        process.write_stdin(b"late", end=False)
    process.terminate()
    process.terminate()


def test_host_process_ends_although_a_fled_child_holds_its_pipes() -> None:
    process = HostProcess(["/bin/sh", "-c", "setsid sh -c 'echo $$; exec sleep 1000' & wait"])
    ((_, line),) = process.read(10)
    reader = threading.Thread(target=read_all, args=(process,), daemon=True)
    reader.start()
    process.terminate()
    reader.join(10)
    assert not reader.is_alive()
    assert process.exit_code == 1
    os.kill(int(line), 9)


def test_host_process_terminated_while_it_does_not_read() -> None:
    process = HostProcess(["/bin/sleep", "1000"])
    errors: list[type[BaseException]] = []

    def write() -> None:
        try:
            process.write_stdin(b"x" * 1_000_000, end=True)
        except OSError as error:
            errors.append(type(error))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    process.terminate()
    writer.join(10)
    assert errors == [BrokenPipeError]


def test_event_log_counts_across_writers(tmp_path: Path) -> None:
    first = EventLog(tmp_path / "new" / "events.jsonl")
    second = EventLog(first.path)
    first.append("http_request", action="Send", bytes_in=10, bytes_out=1)
    assert second.counts("http_request") == 1
    second.append("http_request", bytes_in=5)
    second.append("shell_created", user="\u4e2d")
    assert first.totals() == {"http_request": 2, "shell_created": 1, "bytes_in": 15, "bytes_out": 1}
    assert first.counts("handshake") == 0
    assert [event["user"] for event in first.events("shell_created")] == ["\u4e2d"]
    first.close()
    reopened = EventLog(second.path)
    assert reopened.counts("bytes_in") == 15
    second.close()
    reopened.close()


def test_event_log_ignores_a_half_written_line_until_it_is_whole(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    log.append("connection")
    with log.path.open("ab") as file:
        file.write(b'{"kind": "conn')
        file.flush()
        assert log.counts("connection") == 1
        assert len(log.events()) == 1
        file.write(b'ection"}\n')
    assert log.counts("connection") == 2
    log.close()


def test_event_log_wakes_who_waits(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    threading.Timer(0, log.append, ["connection"]).start()
    assert log.wait_until(lambda totals: totals.get("connection") == 1, 10)
    assert not log.wait_until(lambda totals: totals.get("connection") == 2, 0)
    log.close()


def test_limits_are_changed_by_name() -> None:
    limits = Limits.windows_2008r2()
    assert limits.max_shells_per_user == 5
    limits.update({"schemes": ["Negotiate", "Kerberos"], "basic": True})
    assert limits.as_dict()["schemes"] == ("Negotiate", "Kerberos")
    with pytest.raises(ValueError, match="unknown WinRM settings"):
        limits.update({"basic": False, "max_shell": 1})
    assert limits.basic
