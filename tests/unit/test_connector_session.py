"""The session against a box in memory that speaks the real frames, with the network's faults injected."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winfleet.call import Call
from winfleet.wire.conversation import MAX_RESENDS, Surroundings
from winfleet.wire.errors import (
    ConnectionLost,
    DeadlineExceeded,
    InputDoubtful,
    InputRefused,
    OutcomeUnknown,
    ShellLost,
    StartFailed,
    WireError,
)
from winfleet.wire.frames import Frame, decode_request, encode_frame
from winfleet.wire.session import Session, SessionSettings
from winfleet.wire.shells import Output

PROGRAM = "function Get-BoxSession {}"


@dataclass(frozen=True)
class FakeProgram:
    sha256: str = hashlib.sha256(PROGRAM.encode()).hexdigest()
    packed: bytes = base64.b64encode(gzip.compress(PROGRAM.encode()))


def bootstrap(nonce: str, sha256: str) -> str:
    return f"$WF='{nonce}:{sha256}'; loader"


@dataclass
class Clock:
    """A clock that stands still until somebody waits."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass
class FakeBox:
    """The loop of docs/box-commands.md section 1 in memory, and the shells it runs in.

    `on_write` and `on_read` are the network: each may raise, or change what passes.
    """

    clock: Clock = field(default_factory=Clock)
    executed: list[str] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    starts: int = 0
    live: int = 0
    writes: int = 0
    boot_time: str = "2026-01-01T00:00:00Z"
    answer: Callable[[dict[str, Any], bytes], tuple[Any, bytes]] = lambda call, payload: (
        call["command"],
        b"",
    )
    on_write: Callable[[bytes], bytes] = lambda data: data
    on_read: Callable[[bytes], bytes] = lambda data: data
    frames_before_result: int = 0
    busy: bool = False

    def shell(self) -> FakeShell:
        return FakeShell(self)


class FakeShell:
    endpoint = "box"
    max_write_bytes = 300_000

    def __init__(self, box: FakeBox) -> None:
        self.box = box
        self.line = b""
        self.out = bytearray()
        self.nonce: str | None = None
        self.memory: dict[int, list[bytes]] = {}
        self.ended: int | None = None
        self.resets = 0
        self.open_shell = False
        self.inside = False

    def open(self, command_line: str) -> None:
        assert command_line.endswith("-Command -")
        self.box.starts += 1
        self.box.live += 1
        self.open_shell = True

    def write(self, data: bytes) -> None:
        assert not self.inside, "two calls at once"
        self.inside = True
        try:
            self.box.writes += 1
            failure: WireError | None = None
            try:
                arrived = self.box.on_write(data)
            except Delivered as delivered:
                arrived, failure = delivered.data, delivered.failure
            self.take(arrived)
            if failure is not None:
                raise failure
        finally:
            self.inside = False

    def read(self, wait_s: float) -> Output:
        assert not self.inside, "two calls at once"
        self.inside = True
        try:
            data = bytes(self.out)
            self.out.clear()
            data = self.box.on_read(data)
            if not data and self.ended is None:
                self.box.clock.sleep(min(wait_s, 20.0))
            return Output(data, b"", self.ended)
        finally:
            self.inside = False

    def reset(self) -> None:
        self.resets += 1

    def cancel(self) -> None:
        self.ended = 1

    def close(self) -> None:
        if self.open_shell:
            self.box.live -= 1
        self.open_shell = False

    def take(self, data: bytes) -> None:
        if self.ended is not None:
            return
        *lines, self.line = (self.line + data).split(b"\n")
        for line in lines:
            if line.strip():
                self.understand(line)

    def understand(self, line: bytes) -> None:
        if self.nonce is None:
            self.nonce = line.decode().split("'")[1].split(":")[0]
            self.send(0, 0, "loaded", {})
        elif self.memory.setdefault(0, []) == [] and not line.startswith(b"~"):
            assert hashlib.sha256(gzip.decompress(base64.b64decode(line))).hexdigest() == FakeProgram.sha256
            self.memory[0] = [b"ready"]
            self.send(0, 1, "ready", {"BootTimeUtc": self.box.boot_time, "OemCodePage": 936})
        else:
            self.request(line)

    def request(self, line: bytes) -> None:
        try:
            request = decode_request(line)
        except ValueError:
            return
        if request.nonce != self.nonce or self.box.busy:
            return
        if request.seq in self.memory:
            self.out += b"".join(self.memory[request.seq])
            return
        self.memory[request.seq] = []
        answers, payload = [], b""
        for call in request.calls:
            self.box.executed.append(call["command"])
            self.box.modes.append(request.mode)
            value, payload = self.box.answer(call, request.payload)
            answers.append({"ok": True, "value": value})
        if not request.reply:
            return
        for index in range(self.box.frames_before_result):
            self.send(request.seq, index, "output", {"stream": "stdout", "text": f"line {index}\n"})
        result = {"answers": answers, "duration_ms": 1}
        self.send(request.seq, self.box.frames_before_result, "result", result, payload)

    def send(self, seq: int, index: int, kind: Any, data: dict[str, Any], payload: bytes = b"") -> None:
        assert self.nonce is not None
        frame = encode_frame(Frame(self.nonce, seq, index, kind, data, payload))
        self.memory.setdefault(seq, []).append(frame) if seq else None
        self.out += frame


class Delivered(Exception):
    """Raised by on_write: the data arrives and the caller gets a failure."""

    def __init__(self, data: bytes, failure: WireError) -> None:
        self.data, self.failure = data, failure


def once(*outcomes: Any, then: Callable[[bytes], bytes] = lambda data: data) -> Callable[[bytes], bytes]:
    """Take the outcomes, exceptions or functions, one after the other; then let everything pass."""
    left = list(outcomes)

    def network(data: bytes) -> bytes:
        if left:
            outcome = left.pop(0)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome(data)
        return then(data)

    return network


def lost(delivered: bool) -> ConnectionLost:
    return ConnectionLost("box", "the connection broke", delivered=delivered)


def passes(data: bytes) -> bytes:
    return data


@pytest.fixture
def box() -> FakeBox:
    return FakeBox()


def session_of(box: FakeBox, **options: Any) -> Session:
    surroundings = Surroundings(clock=box.clock, sleep=box.clock.sleep)
    session = Session(box.shell, FakeProgram(), bootstrap, SessionSettings(**options), surroundings)
    session.read_only = False
    return session


READ, CHANGE = Call("Get-BoxSystem"), Call("New-BoxDirectory", Path=["C:\\a"])


def test_a_thousand_commands_use_one_shell_and_one_process(box: FakeBox) -> None:
    session = session_of(box)
    for number in range(1000):
        assert session.run([Call("Get-BoxFile", Path=[str(number)])])[0].value == "Get-BoxFile"
    assert (box.starts, box.live, len(box.executed)) == (1, 1, 1000)
    session.close()
    assert box.live == 0


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(1, 40), min_size=1, max_size=20), noise=st.booleans())
def test_output_cut_anywhere_and_mixed_with_noise_gives_the_same_answer(cuts: list[int], noise: bool) -> None:
    box = FakeBox(frames_before_result=3)
    pieces: list[bytes] = []

    def network(data: bytes) -> bytes:
        if data and noise:
            data = b"profile says hi\r\n" + data + "乱码".encode("gbk")
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(data)
        waiting = pending[0] + data
        pending[0] = waiting[size:]
        return waiting[:size]

    pending = [b""]
    box.on_read = network
    session = session_of(box)
    seen: list[str] = []
    answer = session.run([READ], lambda frame: seen.append(frame.data["text"]))[0]
    assert answer.value == "Get-BoxSystem"
    assert seen == ["line 0\n", "line 1\n", "line 2\n"]
    assert box.executed == ["Get-BoxSystem"]


def swallow(data: bytes) -> bytes:
    """A reply that is lost with its connection."""
    raise lost(delivered=True)


@pytest.mark.parametrize("call", [READ, CHANGE])
def test_a_lost_reply_is_asked_for_again_and_the_command_runs_once(box: FakeBox, call: Call) -> None:
    session = session_of(box)
    session.open()
    box.on_read = once(swallow)
    assert session.run([call])[0].ok
    assert box.executed == [call.command]
    assert box.starts == 1


def test_a_lost_reply_in_the_middle_of_output_shows_each_line_once(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    box.frames_before_result = 4

    def half(data: bytes) -> bytes:
        return data[: data.index(b"~WF1", data.index(b"~WF1") + 1)]

    box.on_read = once(half, swallow)
    seen: list[str] = []
    session.run([CHANGE], lambda frame: seen.append(frame.data["text"]))
    assert seen == [f"line {number}\n" for number in range(4)]
    assert box.executed == [CHANGE.command]


def test_doubled_frames_are_taken_once(box: FakeBox) -> None:
    box.frames_before_result = 2
    box.on_read = lambda data: data + data
    seen: list[str] = []
    session = session_of(box)
    assert session.run([READ], lambda frame: seen.append(frame.data["text"]))[0].ok
    assert seen == ["line 0\n", "line 1\n"]
    assert session.run([READ])[0].ok


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_damaged_frame_is_asked_for_again(box: FakeBox, index: int) -> None:
    session = session_of(box)
    session.open()
    box.frames_before_result = 2

    def damage(data: bytes) -> bytes:
        lines = data.split(b"\n")
        frames = [number for number, line in enumerate(lines) if line.startswith(b"~WF1")]
        body = bytearray(lines[frames[index]])
        body[-3] ^= 1
        lines[frames[index]] = bytes(body)
        return b"\n".join(lines)

    box.on_read = once(damage)
    seen: list[str] = []
    assert session.run([CHANGE], lambda frame: seen.append(frame.data["text"]))[0].value == CHANGE.command
    assert seen == ["line 0\n", "line 1\n"]
    assert box.executed == [CHANGE.command]


def test_a_missing_frame_is_asked_for_again(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    box.frames_before_result = 3

    def drop_second(data: bytes) -> bytes:
        frames = data.split(b"\n\n")
        return b"\n\n".join(frames[:1] + frames[2:])

    box.on_read = once(drop_second)
    seen: list[str] = []
    session.run([CHANGE], lambda frame: seen.append(frame.data["text"]))
    assert seen == ["line 0\n", "line 1\n", "line 2\n"]
    assert box.executed == [CHANGE.command]


@pytest.mark.parametrize("call", [READ, CHANGE])
@pytest.mark.parametrize("arrives", [True, False])
def test_a_send_that_broke_is_sent_again_and_runs_once(box: FakeBox, call: Call, arrives: bool) -> None:
    session = session_of(box)
    session.open()

    def broken(data: bytes) -> bytes:
        if arrives:
            raise Delivered(data, lost(delivered=True))
        raise lost(delivered=False)

    box.on_write = once(broken)
    assert session.run([call])[0].ok
    assert box.executed == [call.command]


@pytest.mark.parametrize("payload_bytes", [0, 3000])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_half_a_line_does_not_swallow_the_next_one(box: FakeBox, part: float, payload_bytes: int) -> None:
    """Cut inside the payload, the line is a whole request with too few bytes: it must not run."""
    session = session_of(box)
    session.open()
    box.answer = lambda call, payload: (len(payload), b"")
    call = Call("Set-BoxFile", payload=bytes(payload_bytes), Path="C:\\a")

    def half(data: bytes) -> bytes:
        raise Delivered(data[: int(len(data) * part) // 4 * 4], lost(delivered=True))

    box.on_write = once(half)
    assert session.run([call])[0].value == payload_bytes
    assert box.executed == ["Set-BoxFile"]


@pytest.mark.parametrize("arrives", [True, False])
def test_a_doubtful_send_waits_and_is_sent_again_only_when_nothing_happens(
    box: FakeBox, arrives: bool
) -> None:
    session = session_of(box)
    session.open()
    before = box.writes

    def doubtful(data: bytes) -> bytes:
        raise Delivered(data if arrives else b"", InputDoubtful("box", "slow"))

    box.on_write = once(doubtful)
    assert session.run([CHANGE])[0].ok
    assert box.executed == [CHANGE.command]
    assert box.writes - before == (1 if arrives else 2)


def test_a_box_that_never_gets_its_input_is_a_defined_failure(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    box.on_write = lambda data: (_ for _ in ()).throw(Delivered(b"", InputDoubtful("box", "slow")))
    with pytest.raises(OutcomeUnknown, match=f"after {MAX_RESENDS} repetitions"):
        session.run([CHANGE])
    assert box.live == 0


def test_a_read_whose_shell_died_is_asked_again_in_a_new_one(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    box.on_read = once(ShellLost("box", "the shell is gone"))
    assert session.run([READ])[0].ok
    assert (box.starts, box.live) == (2, 1)


def test_a_change_whose_shell_died_is_never_run_again(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    box.on_read = once(ShellLost("box", "the shell is gone"))
    with pytest.raises(OutcomeUnknown, match="New-BoxDirectory may or may not have been carried out"):
        session.run([CHANGE])
    assert box.executed == ["New-BoxDirectory"]
    assert box.live == 0
    assert session.run([READ])[0].ok


def test_a_change_that_surely_did_not_arrive_runs_in_a_new_shell(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    box.on_write = once(ShellLost("box", "the shell is gone"))
    assert session.run([CHANGE])[0].ok
    assert box.executed == ["New-BoxDirectory"]
    assert box.starts == 2


def test_a_process_that_ended_between_two_commands_is_replaced(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    box.on_write = once(InputRefused("box", "PowerShell has ended (code 109)"))
    assert session.run([CHANGE])[0].ok
    assert box.executed == ["New-BoxDirectory"]


def test_three_lost_connections_in_a_row_end_the_shell(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    box.on_read = once(*[lost(delivered=True) for _ in range(4)])
    box.on_write = lambda data: (_ for _ in ()).throw(lost(delivered=True))
    with pytest.raises(OutcomeUnknown, match="attempts to go on failed"):
        session.run([CHANGE])
    assert box.live == 0


def test_a_deadline_ends_the_process_and_the_next_command_has_a_new_shell(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    box.busy = True
    with pytest.raises(DeadlineExceeded, match="did not end within 50 s") as raised:
        session.run([CHANGE], timeout_s=50)
    assert isinstance(raised.value, TimeoutError)
    assert box.clock.now_s == 50
    box.busy = False
    assert box.live == 0
    assert session.run([READ])[0].ok
    assert box.starts == 2


def test_an_answer_that_the_box_forgot(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    shell: Any = session._talk.shell  # type: ignore[union-attr]

    def forget(data: bytes) -> bytes:
        for seq in [seq for seq in shell.memory if seq]:
            shell.memory[seq] = []
            error = {"type": "AnswerForgotten", "message": "too old", "command": "x"}
            shell.send(seq, 0, "result", {"answers": [{"ok": False, "error": error}]})
        shell.out.clear()
        raise lost(delivered=True)

    box.on_read = once(forget)
    with pytest.raises(OutcomeUnknown):
        session.run([CHANGE])
    box.on_read = passes
    assert session.run([READ])[0].ok


def test_read_only_refuses_changes_here_and_marks_reads_as_reads(box: FakeBox) -> None:
    session = session_of(box)
    session.read_only = True
    answer = session.run([CHANGE])[0]
    assert (answer.ok, answer.error_type) == (False, "ReadOnlyRefused")
    with pytest.raises(PermissionError):
        session.tell(CHANGE)
    session.run([READ])
    assert (box.executed, box.modes) == (["Get-BoxSystem"], ["read"])
    session.read_only = False
    session.run([CHANGE])
    assert box.modes[-1] == "change"


def test_several_reads_cost_one_request_and_then_nothing(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    calls = [Call("Get-BoxSystem"), Call("Get-BoxFirewall"), Call("Get-BoxFile", Path=["C:\\a"]), READ]
    before = box.writes
    assert session.prefetch(calls) == 3
    for call in calls:
        assert session.ask(call).value == call.command
    assert session.prefetch(calls) == 0
    assert box.writes - before == 1


@pytest.mark.parametrize("event", ["change", "tell", "new shell", "age"])
def test_cached_answers_are_dropped_by(box: FakeBox, event: str) -> None:
    session = session_of(box)
    session.ask(READ)
    if event == "change":
        session.run([CHANGE])
    elif event == "tell":
        session.tell(CHANGE)
    elif event == "new shell":
        session.close()
    else:
        box.clock.sleep(121)
    session.ask(READ)
    assert box.executed.count("Get-BoxSystem") == 2


def test_what_changes_by_itself_is_read_again_each_time(box: FakeBox) -> None:
    session = session_of(box)
    job = Call("Get-BoxJob", volatile=True, Path="C:\\job")
    session.prefetch([job])
    for _ in range(3):
        session.ask(job)
    assert box.executed.count("Get-BoxJob") == 3


def test_a_failed_answer_is_not_cached(box: FakeBox) -> None:
    session = session_of(box)
    box.answer = lambda call, payload: (call["command"], b"")
    session.open()
    shell: Any = session._talk.shell  # type: ignore[union-attr]
    real = shell.send

    def failing(seq: int, index: int, kind: str, data: dict[str, Any], payload: bytes = b"") -> None:
        real(seq, index, kind, {"answers": [{"ok": False, "error": {"type": "X", "message": ""}}]}, payload)

    shell.send = failing
    assert not session.ask(READ).ok
    shell.send = real
    assert session.ask(READ).ok


def test_payloads_travel_both_ways(box: FakeBox) -> None:
    box.answer = lambda call, payload: (len(payload), payload[::-1])
    session = session_of(box)
    content = bytes(range(256)) * 100
    answer = session.run([Call("Set-BoxFile", payload=content, Path="C:\\a")])[0]
    assert (answer.value, answer.payload) == (len(content), content[::-1])


def test_a_large_answer_is_whole(box: FakeBox) -> None:
    blob = random.Random(7).randbytes(3_000_000)
    box.answer = lambda call, payload: (None, blob)
    assert session_of(box).run([READ])[0].payload == blob


def test_calls_from_many_threads_take_turns(box: FakeBox) -> None:
    session = session_of(box)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(10):
                assert session.run([Call("Get-BoxFile", Path=[str(number)])])[0].ok
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures
    assert (box.starts, len(box.executed)) == (1, 200)


def test_an_interrupted_command_leaves_no_half_used_shell(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    box.on_read = once(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        session.run([CHANGE])
    assert session.run([READ])[0].value == "Get-BoxSystem"
    assert (box.starts, box.live) == (2, 1)


def test_an_old_shell_is_replaced_between_commands(box: FakeBox) -> None:
    session = session_of(box, max_age_s=100)
    session.run([READ])
    box.clock.sleep(101)
    session.run([READ])
    assert (box.starts, box.live) == (2, 1)


def test_a_shell_per_command(box: FakeBox) -> None:
    session = session_of(box, per_command=True)
    for _ in range(3):
        assert session.run([READ])[0].ok
        assert box.live == 0
    assert box.starts == 3
    with session.hold():
        session.tell(CHANGE)
        session.tell(CHANGE)
        session.run([READ])
    assert (box.starts, box.live) == (4, 0)


def test_a_restarted_box_is_named(box: FakeBox) -> None:
    warnings: list[str] = []
    surroundings = Surroundings(clock=box.clock, sleep=box.clock.sleep)
    session = Session(box.shell, FakeProgram(), bootstrap, None, surroundings, warnings.append)
    session.open()
    box.boot_time = "2026-01-02T00:00:00Z"
    box.on_read = once(ShellLost("box", "gone"))
    session.run([READ])
    assert warnings == ["box: the box was restarted at 2026-01-02T00:00:00Z"]


def test_powershell_that_ends_at_once_says_why(box: FakeBox) -> None:
    class Ending(FakeShell):
        def read(self, wait_s: float) -> Output:
            return Output(b"", b"Cannot invoke method.\r\nConstrained language mode.", 1)

    session = Session(lambda: Ending(box), FakeProgram(), bootstrap)
    with pytest.raises(
        StartFailed, match=r"exit code 1 before it was loaded; it said: Cannot invoke method\. Const"
    ):
        session.open()
    assert box.live == 0


def test_a_start_that_fails_tells_what_stdout_said(box: FakeBox) -> None:
    class Limited(FakeShell):
        def read(self, wait_s: float) -> Output:
            return Output(b"winfleet: PowerShell here is limited to ConstrainedLanguage\r\n", b"", 1)

    session = Session(lambda: Limited(box), FakeProgram(), bootstrap)
    with pytest.raises(StartFailed, match=r"it said: winfleet: .* limited to ConstrainedLanguage"):
        session.open()


def test_powershell_that_never_answers_ends_at_its_own_deadline(box: FakeBox) -> None:
    box.on_read = lambda data: b""
    session = session_of(box, start_timeout_s=30)
    with pytest.raises(StartFailed, match="not loaded within 30 s"):
        session.open()
    assert (box.clock.now_s, box.live) == (30, 0)


def test_a_connection_lost_during_the_start_is_started_again_once(box: FakeBox) -> None:
    box.on_read = once(lost(delivered=True))
    assert session_of(box).run([READ])[0].ok
    assert (box.starts, box.live) == (2, 1)


def test_the_end_of_the_process_in_mid_command_tells_exit_code(box: FakeBox) -> None:
    session = session_of(box)
    session.open()
    shell: Any = session._talk.shell  # type: ignore[union-attr]

    def die(data: bytes) -> bytes:
        shell.ended = 3
        return b""

    box.on_read = once(die)
    with pytest.raises(OutcomeUnknown, match="PowerShell ended with exit code 3"):
        session.run([CHANGE])
    assert box.live == 0


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_whatever_the_network_does_a_change_never_runs_twice(chance: random.Random) -> None:
    box = FakeBox(frames_before_result=2)
    session = session_of(box)
    session.open()

    def write(data: bytes) -> bytes:
        roll = chance.random()
        if roll < 0.2:
            raise Delivered(data[: chance.randrange(len(data) + 1)], lost(delivered=True))
        if roll < 0.3:
            raise lost(delivered=False)
        if roll < 0.4:
            raise Delivered(data if chance.random() < 0.7 else b"", InputDoubtful("box", "slow"))
        return data

    def read(data: bytes) -> bytes:
        roll = chance.random()
        if roll < 0.2:
            raise lost(delivered=chance.random() < 0.5) if not data else lost(delivered=True)
        if roll < 0.3 and data:
            cut = bytearray(data)
            cut[chance.randrange(len(cut))] ^= 1
            return bytes(cut)
        return data

    box.on_write, box.on_read = write, read
    for number in range(5):
        call = Call("New-BoxDirectory", Path=[str(number)])
        marks = len(box.executed)
        try:
            answer = session.run([call], timeout_s=400)[0]
        except (OutcomeUnknown, DeadlineExceeded):
            assert len(box.executed) - marks <= 1
        except WireError:
            # Not even the new shell could be started.
            assert len(box.executed) == marks
        else:
            assert answer.ok
            assert len(box.executed) - marks == 1
    session.close()
    assert box.live == 0


def test_requests_are_plain_json_with_unmasked_secrets(box: FakeBox) -> None:
    from pyinfra.api.command import HiddenValue

    seen: list[dict[str, Any]] = []
    box.answer = lambda call, payload: (seen.append(call), b"")
    session_of(box).run([Call("Invoke-BoxScript", Text="x", Environment={"K": HiddenValue("example-key")})])
    assert json.loads(json.dumps(seen[0]["parameters"]["Environment"])) == {"K": "example-key"}
