"""Every fault that a simulated box can be made to show, as an ordinary client sees it."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import requests
from spnego.exceptions import BadMICError
from winrm.exceptions import (
    WinRMOperationTimeoutError,
    WinRMTransportError,
    WSManFaultError,
)
from winrm.protocol import Protocol
from winrm_box import arm, events_of, protocol, running_box

from simbox.winrm import Fault, Limits, WinRMEndpoint
from simbox.winrm.refusals import BROKEN_PIPE, INVALID_SELECTORS, PROFILE_BUSY

BROKEN = (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError)


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
def box(tmp_path: Path, limits: Limits) -> Iterator[WinRMEndpoint]:
    with running_box(tmp_path, limits) as endpoint:
        yield endpoint


class Cat:
    """A shell that runs cat, through a client."""

    def __init__(self, box: WinRMEndpoint, scheme: str = "http") -> None:
        self.client: Protocol = protocol(box, scheme)
        self.shell = self.client.open_shell()
        self.command = self.client.run_command(self.shell, "cat", console_mode_stdin=False)

    def send(self, data: bytes, end: bool = False) -> None:
        self.client.send_command_input(self.shell, self.command, data, end)

    def receive(self) -> bytes:
        return self.client.get_command_output_raw(self.shell, self.command)[0]

    def output(self) -> bytes:
        return self.client.get_command_output(self.shell, self.command)[0]


def code_of(caught: pytest.ExceptionInfo[WSManFaultError]) -> int:
    return caught.value.wsman_fault_code


def test_first_create_while_the_profile_is_busy(box: WinRMEndpoint) -> None:
    arm(box, "fault", on="Create", code=PROFILE_BUSY)
    client = protocol(box)
    with pytest.raises(WSManFaultError) as caught:
        client.open_shell()
    assert code_of(caught) == PROFILE_BUSY
    client.close_shell(client.open_shell())
    assert [event["fault"] for event in events_of(box).events("fault_injected")] == ["fault"]


@pytest.mark.parametrize("code", [170, 1460])
def test_send_refused_although_delivered(box: WinRMEndpoint, code: int) -> None:
    cat = Cat(box)
    arm(box, "replace_reply", on="Send", code=code)
    with pytest.raises(WSManFaultError) as caught:
        cat.send(b"once", end=True)
    assert code_of(caught) == code
    assert cat.output() == b"once"


def test_send_timed_out_although_delivered(box: WinRMEndpoint) -> None:
    cat = Cat(box)
    arm(box, "replace_reply", on="Send", code=2150858793)
    with pytest.raises(WinRMOperationTimeoutError):
        cat.send(b"once", end=True)
    assert cat.output() == b"once"


def test_connection_lost_after_the_request_was_done(box: WinRMEndpoint) -> None:
    cat = Cat(box, "https")
    arm(box, "close_after", on="Send")
    with pytest.raises(BROKEN):
        cat.send(b"once", end=True)
    assert cat.output() == b"once"


def test_connection_lost_before_the_request_was_done(box: WinRMEndpoint) -> None:
    cat = Cat(box, "https")
    arm(box, "close_before", on="Send")
    with pytest.raises(BROKEN):
        cat.send(b"never", end=True)
    cat.send(b"now", end=True)
    assert cat.output() == b"now"


def test_body_sealed_with_the_key_of_a_lost_connection_is_400_until_the_session_is_reset(
    box: WinRMEndpoint,
) -> None:
    cat = Cat(box)
    arm(box, "close_after", on="Send")
    with pytest.raises(BROKEN):
        cat.send(b"once", end=True)
    for _ in range(2):
        with pytest.raises(WinRMTransportError) as caught:
            cat.receive()
        assert caught.value.code == 400
    cat.client.transport.close_session()
    assert cat.output() == b"once"


def test_idle_connection_is_closed(box: WinRMEndpoint, limits: Limits) -> None:
    limits.connection_idle_s = 0.05
    cat = Cat(box)
    wait_for_no_connection(box)
    with pytest.raises(WinRMTransportError) as caught:
        cat.send(b"x")
    assert caught.value.code == 400
    over_tls = Cat(box, "https")
    wait_for_no_connection(box)
    over_tls.send(b"fine", end=True)
    assert over_tls.output() == b"fine"


def wait_for_no_connection(box: WinRMEndpoint) -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("winrm-127.0.0.1-"):
            thread.join(10)
    assert box.connections() == 0


def test_reply_later_than_the_client_waits(box: WinRMEndpoint) -> None:
    cat = Cat(box, "https")
    arm(box, "delay_reply", on="Send", seconds=1.0)
    cat.client.transport.read_timeout_sec = 0.2
    with pytest.raises(requests.exceptions.ReadTimeout):
        cat.send(b"once", end=True)
    cat.client.transport.read_timeout_sec = 20
    assert cat.output() == b"once"


def test_silence_after_the_request_was_done(box: WinRMEndpoint) -> None:
    cat = Cat(box, "https")
    arm(box, "silence", on="Send")
    cat.client.transport.read_timeout_sec = 0.2
    with pytest.raises(requests.exceptions.ReadTimeout):
        cat.send(b"once", end=True)
    cat.client.transport.read_timeout_sec = 20
    assert cat.output() == b"once"


def test_accepts_but_never_answers(box: WinRMEndpoint) -> None:
    arm(box, "mute")
    client = protocol(box)
    client.transport.read_timeout_sec = 0.2
    with pytest.raises(requests.exceptions.ReadTimeout):
        client.open_shell()


def test_drops_connections_at_once(box: WinRMEndpoint) -> None:
    arm(box, "drop", times=2)
    for _ in range(2):
        with pytest.raises(requests.exceptions.ConnectionError):
            protocol(box).open_shell()
    client = protocol(box)
    client.close_shell(client.open_shell())


@pytest.mark.parametrize(
    ("scheme", "error"), [("http", BadMICError), ("https", ElementTree.ParseError)], ids=["sealed", "plain"]
)
def test_half_a_body(box: WinRMEndpoint, scheme: str, error: type[Exception]) -> None:
    cat = Cat(box, scheme)
    cat.send(b"x" * 1000)
    arm(box, "truncate", on="Receive")
    with pytest.raises(error):
        cat.receive()


def test_connection_breaks_within_a_body(box: WinRMEndpoint) -> None:
    cat = Cat(box, "https")
    cat.send(b"x" * 1000)
    arm(box, "cut", on="Receive")
    with pytest.raises(BROKEN):
        cat.receive()


def test_401_in_mid_session(box: WinRMEndpoint) -> None:
    cat = Cat(box, "https")
    arm(box, "unauthorized", on="Send")
    # Over TLS the client simply authenticates again.
    cat.send(b"once", end=True)
    assert cat.output() == b"once"
    assert events_of(box).counts("handshake") == 2
    sealed = Cat(box)
    arm(box, "unauthorized", on="Send")
    with pytest.raises(WinRMTransportError) as caught:
        sealed.send(b"never", end=True)
    assert caught.value.code == 400


@pytest.mark.parametrize("status", [400, 404, 503])
def test_http_errors_without_soap(box: WinRMEndpoint, status: int) -> None:
    arm(box, "http_status", on="Create", code=status)
    with pytest.raises(WinRMTransportError) as caught:
        protocol(box, "https").open_shell()
    assert (caught.value.code, caught.value.response_text) == (status, "")


def test_service_restart_forgets_every_shell(box: WinRMEndpoint) -> None:
    cat = Cat(box)
    arm(box, "service_restart", on="Receive")
    with pytest.raises(WSManFaultError) as caught:
        cat.receive()
    assert code_of(caught) == INVALID_SELECTORS
    assert box.shells() == []
    other = Cat(box, "https")
    box.restart_service()
    with pytest.raises(WSManFaultError) as caught:
        other.receive()
    assert code_of(caught) == INVALID_SELECTORS


def test_process_that_ends_before_its_input(box: WinRMEndpoint) -> None:
    cat = Cat(box)
    arm(box, "kill_process", on="Send")
    with pytest.raises(WSManFaultError) as caught:
        cat.send(b"late")
    assert code_of(caught) == BROKEN_PIPE
    assert cat.client.get_command_output(cat.shell, cat.command)[2] == 1


def test_noise_and_fragments(box: WinRMEndpoint) -> None:
    cat = Cat(box)
    bom = base64.b64encode(b"\xef\xbb\xbfWelcome!\r\n").decode()
    arm(box, "noise", data_base64=bom)
    arm(box, "noise", data_base64=base64.b64encode(b"\xff\xfe").decode(), stream="stderr", after=1)
    arm(box, "fragment", size=1, times=None)
    text = "\u4e2d\u6587".encode()
    cat.send(text)
    assert cat.receive() == b"\xef\xbb\xbfWelcome!\r\n" + text
    cat.send(text, end=True)
    assert cat.client.get_command_output(cat.shell, cat.command) == (text, b"\xff\xfe", 0)


def test_done_with_two_states(box: WinRMEndpoint) -> None:
    cat = Cat(box, "https")
    arm(box, "two_states")
    cat.send(b"x", end=True)
    texts: list[bytes] = []
    send_message = cat.client.send_message
    cat.client.send_message = lambda text: texts.append(send_message(text)) or texts[-1]  # type: ignore[method-assign]
    assert cat.output() == b"x"
    assert texts[-1].count(b"<rsp:CommandState ") == 2


def test_stale_proxy_closes_after_each_answer(box: WinRMEndpoint) -> None:
    arm(box, "connection_close", times=None)
    cat = Cat(box, "https")
    cat.send(b"x", end=True)
    assert cat.output() == b"x"
    assert events_of(box).counts("connection") > 3


def test_faults_let_requests_pass_count_down_and_can_be_cleared(box: WinRMEndpoint) -> None:
    cat = Cat(box)
    arm(box, "fault", on="Send", code=1115, after=1, times=2)
    cat.send(b"1")
    for _ in range(2):
        with pytest.raises(WSManFaultError):
            cat.send(b"x")
    assert box.faults.as_list() == []
    cat.send(b"2")
    arm(box, "fault", on="Send", code=1115, times=None)
    box.faults.clear()
    cat.send(b"3", end=True)
    assert cat.output() == b"123"


def test_faults_as_json(box: WinRMEndpoint) -> None:
    arm(box, "delay_reply", on="Receive", seconds=0.1, times=None)
    (values,) = box.faults.as_list()
    assert Fault.from_dict(values) == Fault("delay_reply", on="Receive", seconds=0.1, times=None)
    with pytest.raises(ValueError, match="unknown fault 'explode'"):
        Fault.from_dict({"kind": "explode"})
    with pytest.raises(ValueError, match="unknown fields"):
        Fault.from_dict({"kind": "mute", "colour": "red"})
