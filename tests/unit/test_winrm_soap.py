"""WS-Man text: tolerant reading, faithful writing."""

from __future__ import annotations

import base64
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbox.winrm import soap
from simbox.winrm.refusals import (
    INVALID_SELECTORS,
    PROGRAM_NOT_FOUND,
    SCHEMA_VIOLATION,
    Refusal,
    refusal,
)

RSP = f"{{{soap.SHELL}}}"
FAULT = "{http://schemas.microsoft.com/wbem/wsman/1/wsmanfault}"
SOAP = "{http://www.w3.org/2003/05/soap-envelope}"


def envelope(action: str, header: str = "", body: str = "", prefix: str = "s") -> bytes:
    return (
        f'<{prefix}:Envelope xmlns:{prefix}="http://www.w3.org/2003/05/soap-envelope" '
        'xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing" '
        'xmlns:w="http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd" '
        f'xmlns:r="{soap.SHELL}"><{prefix}:Header><a:Action>{action}</a:Action>'
        f"<a:To>http://somewhere-else/</a:To><a:MessageID>uuid:42</a:MessageID>{header}</{prefix}:Header>"
        f"<{prefix}:Body>{body}</{prefix}:Body></{prefix}:Envelope>"
    ).encode()


def parse(body: str, action: str = f"{soap.SHELL}/Send") -> soap.Request:
    return soap.parse_request(envelope(action, body=body))


def test_header_fields_in_the_spellings_of_all_clients() -> None:
    header = (
        '<w:SelectorSet><w:Selector Name="ShellID">ab-cd</w:Selector></w:SelectorSet>'
        '<w:OptionSet><w:Option Name="winrs_skip_cmd_shell">True</w:Option></w:OptionSet>'
        "<w:OperationTimeout>PT1M20.500S</w:OperationTimeout><w:MaxEnvelopeSize>153600</w:MaxEnvelopeSize>"
    )
    request = soap.parse_request(envelope(f"{soap.SHELL}/Command", header, prefix="env"))
    assert request.action == "Command"
    assert request.message_id == "uuid:42"
    assert request.shell_id == "AB-CD"
    assert request.option_is_true("WINRS_SKIP_CMD_SHELL")
    assert not request.option_is_true("WINRS_CONSOLEMODE_STDIN")
    assert (request.operation_timeout_s, request.max_envelope_bytes) == (80.5, 153600)


def test_unknown_action_is_kept() -> None:
    assert soap.parse_request(envelope("http://x/Enumerate")).action == "http://x/Enumerate"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain",
        b"<a/>",
        b"<s:Envelope/>",
        envelope("x") + b"\x00",
        envelope("x").replace(b"x<", b"\x1b<"),
        b'<!DOCTYPE a [<!ENTITY b "c">]>' + envelope("x"),
        envelope("x", "<w:OperationTimeout>60000</w:OperationTimeout>"),
    ],
)
def test_what_is_no_request_is_a_schema_fault(data: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        soap.parse_request(data)
    assert caught.value.code == SCHEMA_VIOLATION


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("PT900S", 900.0), ("PT7200.000S", 7200.0), ("P1DT1H1M1S", 90061.0), ("PT0S", 0.0), (" PT5M ", 300.0)],
)
def test_duration(text: str, seconds: float) -> None:
    assert soap.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "P", "PT", "900000", "PT-1S", "1H", "PTS", "P1Y", "PT1.S", "PT1H1"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="xs:duration"):
        soap.parse_duration(text)


def test_create_body() -> None:
    request = parse(
        "<r:Shell><r:InputStreams>stdin</r:InputStreams><r:OutputStreams>stdout stderr</r:OutputStreams>"
        "<r:WorkingDirectory>C:\\ninfer</r:WorkingDirectory><r:IdleTimeOut>PT1800S</r:IdleTimeOut>"
        '<r:Environment><r:Variable Name="A">1</r:Variable><r:Variable Name="B"/></r:Environment></r:Shell>'
    )
    shell = soap.parse_shell(request)
    assert shell.environment == {"A": "1", "B": ""}
    assert (shell.working_directory, shell.idle_timeout_s, shell.lifetime_s) == ("C:\\ninfer", 1800.0, None)


def test_command_line_is_joined_unquoted() -> None:
    line = "<r:CommandLine><r:Command>p.exe</r:Command>{}</r:CommandLine>"
    arguments = "<r:Arguments>-a b</r:Arguments><r:Arguments>&quot;c&quot;</r:Arguments>"
    assert soap.parse_command(parse(line.format(arguments))) == 'p.exe -a b "c"'
    assert soap.parse_command(parse(line.format(""))) == "p.exe"
    with pytest.raises(Refusal):
        soap.parse_command(parse("<r:CommandLine/>"))


@given(st.binary(max_size=300), st.sampled_from(["true", "True", "1"]))
def test_stdin_of_any_bytes(data: bytes, end: str) -> None:
    text = base64.b64encode(data).decode()
    body = f'<r:Send><r:Stream Name="stdin" CommandId="C" End="{end}">{text}</r:Stream></r:Send>'
    assert soap.parse_stdin(parse(body)) == [soap.StdinPart("C", data, True)]


def test_stdin_that_is_no_base64() -> None:
    with pytest.raises(Refusal) as caught:
        soap.parse_stdin(parse('<r:Send><r:Stream CommandId="C">a</r:Stream></r:Send>'))
    assert caught.value.code == SCHEMA_VIOLATION


@pytest.mark.parametrize("word", ["terminate", "Terminate", "ctrl_c", "ctrl_break"])
def test_signal_codes(word: str) -> None:
    body = f'<r:Signal CommandId="C"><r:Code>{soap.SHELL}/signal/{word}</r:Code></r:Signal>'
    assert soap.parse_signal(parse(body)) == ("C", word.lower())


def test_empty_bodies_name_no_command() -> None:
    request = soap.parse_request(envelope("x"))
    assert soap.parse_receive(request) is None
    assert soap.parse_signal(request) == (None, "")
    assert soap.parse_stdin(request) == []


chunks = st.lists(
    st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(min_size=1, max_size=50)), max_size=5
)


@given(chunks, st.sampled_from([None, 0, 2147943401, 4294967295]), st.text("<>&'\" aé", max_size=9))
def test_output_can_be_read_back(pieces, exit_code: int | None, message_id: str) -> None:
    request = soap.Request("Receive", message_id, "")
    root = ElementTree.fromstring(soap.render_output(request, "C1", pieces, exit_code))
    streams = [(item.attrib["Name"], base64.b64decode(item.text or "")) for item in root.iter(f"{RSP}Stream")]
    ends = [] if exit_code is None else [("stdout", b""), ("stderr", b"")]
    assert streams == list(pieces) + ends
    codes = [item.text for item in root.iter(f"{RSP}ExitCode")]
    assert codes == ([] if exit_code is None else [str(exit_code)])
    (related,) = root.iter("{http://schemas.xmlsoap.org/ws/2004/08/addressing}RelatesTo")
    assert (related.text or "") == message_id


def test_fault_of_the_service_and_of_its_plugin() -> None:
    plain = ElementTree.fromstring(soap.render_fault("uuid:1", refusal(INVALID_SELECTORS), 'G"1'))
    (fault,) = plain.iter(f"{FAULT}WSManFault")
    assert fault.attrib == {"Code": str(INVALID_SELECTORS), "Machine": 'G"1'}
    assert [item.text for item in plain.iter(f"{SOAP}Value")] == ["s:Sender", "w:InvalidSelectors"]
    plugin = ElementTree.fromstring(soap.render_fault("uuid:1", refusal(PROGRAM_NOT_FOUND), "GPU01"))
    (provider,) = plugin.iter(f"{FAULT}ProviderFault")
    assert provider.attrib["path"] == "%systemroot%\\system32\\winrscmd.dll"
    assert [item.attrib["Code"] for item in plugin.iter(f"{FAULT}WSManFault")] == ["2147942402"] * 2


def test_unknown_fault_codes_are_internal_errors() -> None:
    assert (refusal(4242).code, refusal(4242).subcode) == (4242, "w:InternalError")


def test_shell_times() -> None:
    state = soap.ShellState("ID", "GPU01\\me", "127.0.0.1", None, 7200, "stdin", "stdout", 90061.7, 59.9)
    root = ElementTree.fromstring(soap.render_shell(soap.Request("Get", "m", ""), state))
    texts = {item.tag.removeprefix(RSP): item.text for item in root.iter() if item.tag.startswith(RSP)}
    assert texts["IdleTimeOut"] == "PT7200.000S"
    assert (texts["ShellRunTime"], texts["ShellInactivity"]) == ("P1DT1H1M1S", "P0DT0H0M59S")
