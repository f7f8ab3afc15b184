"""WS-Man messages as text: parse requests, render replies and faults. Pure functions, no I/O.

Shapes: MS-WSMV and recorded traffic (docs/facts/winrm.md#messages-of-a-shell). Requests are read tolerantly, because
clients differ: `To` is ignored, namespaces of attributes, letter case of selector names, options and
booleans do not matter.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from simbox.engines.engine import Chunk
from simbox.winrm.refusals import Refusal, invalid_xml, schema_violation

SHELL = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell"
CMD_SHELL = f"{SHELL}/cmd"
CONFIG = "http://schemas.microsoft.com/wbem/wsman/1/config"
TRANSFER = "http://schemas.xmlsoap.org/ws/2004/09/transfer"
_SOAP = "http://www.w3.org/2003/05/soap-envelope"
_ADDRESSING = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
_WSMAN = "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd"
_FAULT = "http://schemas.microsoft.com/wbem/wsman/1/wsmanfault"
_ANONYMOUS = f"{_ADDRESSING}/role/anonymous"
_DEFAULT_TIMEOUT_S = 60.0

ACTIONS = {
    f"{TRANSFER}/Create": "Create",
    f"{TRANSFER}/Delete": "Delete",
    f"{TRANSFER}/Get": "Get",
    f"{SHELL}/Command": "Command",
    f"{SHELL}/Send": "Send",
    f"{SHELL}/Receive": "Receive",
    f"{SHELL}/Signal": "Signal",
}
_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


@dataclass(frozen=True)
class Request:
    """One parsed WS-Man request.

    Attributes: action (Create, Command, ...; the whole URI when unknown), selectors and options (names in
    lower case), operation_timeout_s (seconds), max_envelope_bytes, body (the first element of the SOAP
    body, or None).
    """

    action: str
    message_id: str
    resource_uri: str
    selectors: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    operation_timeout_s: float = _DEFAULT_TIMEOUT_S
    max_envelope_bytes: int | None = None
    body: ElementTree.Element | None = None

    @property
    def shell_id(self) -> str | None:
        """The ShellId selector in upper case, as Windows prints it."""
        value = self.selectors.get("shellid")
        return value.upper() if value else None

    def option_is_true(self, name: str) -> bool:
        """Whether a boolean option is set, whatever its letter case."""
        return self.options.get(name.lower(), "").lower() in ("true", "1")


@dataclass(frozen=True)
class ShellRequest:
    """The body of Create. Times in seconds, None when not given."""

    environment: dict[str, str]
    working_directory: str | None
    idle_timeout_s: float | None
    lifetime_s: float | None
    name: str | None
    input_streams: str
    output_streams: str


@dataclass(frozen=True)
class ShellState:
    """What a shell tells about itself, in Create's and Get's answers. Times in seconds."""

    shell_id: str
    owner: str
    client_ip: str
    name: str | None
    idle_timeout_s: float
    input_streams: str
    output_streams: str
    run_time_s: float
    inactivity_s: float


@dataclass(frozen=True)
class StdinPart:
    """One Stream element of Send."""

    command_id: str | None
    data: bytes
    end: bool


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _child(element: ElementTree.Element | None, name: str) -> ElementTree.Element | None:
    if element is None:
        return None
    return next((child for child in element if _local(child.tag) == name), None)


def _text(element: ElementTree.Element | None, name: str) -> str | None:
    child = _child(element, name)
    return None if child is None or child.text is None else child.text


def _attribute(element: ElementTree.Element, name: str) -> str | None:
    return next((value for key, value in element.attrib.items() if _local(key) == name), None)


def parse_duration(text: str) -> float:
    """Seconds of an xs:duration of days and smaller, such as PT900S. Raises ValueError on anything else."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groupdict().values()):
        raise ValueError(f"not an xs:duration: {text!r}")
    days, hours, minutes, seconds = (
        float(match[name] or 0) for name in ("days", "hours", "minutes", "seconds")
    )
    return days * 86400 + hours * 3600 + minutes * 60 + seconds


def _duration_field(text: str | None, name: str) -> float | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError:
        raise schema_violation(name, text) from None


def parse_request(data: bytes) -> Request:
    """Parse the SOAP text of a request.

    Raises Refusal when it is not well-formed XML (control characters, for instance), no SOAP envelope, or
    has a value of the wrong type.
    """
    if b"<!DOCTYPE" in data[:1024]:
        raise invalid_xml("a document type declaration is not allowed")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise invalid_xml(str(error)) from None
    header, body = _child(root, "Header"), _child(root, "Body")
    if _local(root.tag) != "Envelope" or header is None:
        raise invalid_xml("no SOAP envelope with a header")
    action = (_text(header, "Action") or "").strip()
    timeout = _duration_field(_text(header, "OperationTimeout"), "OperationTimeout")
    envelope = (_text(header, "MaxEnvelopeSize") or "").strip()
    return Request(
        action=ACTIONS.get(action, action),
        message_id=(_text(header, "MessageID") or "").strip(),
        resource_uri=(_text(header, "ResourceURI") or "").strip(),
        selectors=_named_values(_child(header, "SelectorSet")),
        options=_named_values(_child(header, "OptionSet")),
        operation_timeout_s=_DEFAULT_TIMEOUT_S if timeout is None else timeout,
        max_envelope_bytes=int(envelope) if envelope.isdecimal() else None,
        body=body[0] if body is not None and len(body) else None,
    )


def _named_values(element: ElementTree.Element | None) -> dict[str, str]:
    children = () if element is None else element
    return {(_attribute(child, "Name") or "").lower(): (child.text or "").strip() for child in children}


def parse_shell(request: Request) -> ShellRequest:
    """The body of Create. Raises Refusal for an IdleTimeOut or Lifetime that is no duration."""
    shell = request.body
    variables = _child(shell, "Environment")
    return ShellRequest(
        environment={
            _attribute(variable, "Name") or "": variable.text or ""
            for variable in (() if variables is None else variables)
        },
        working_directory=_text(shell, "WorkingDirectory"),
        idle_timeout_s=_duration_field(_text(shell, "IdleTimeOut"), "IdleTimeOut"),
        lifetime_s=_duration_field(_text(shell, "Lifetime"), "Lifetime"),
        name=_text(shell, "Name"),
        input_streams=_text(shell, "InputStreams") or "stdin",
        output_streams=_text(shell, "OutputStreams") or "stdout stderr",
    )


def parse_command(request: Request) -> str:
    """The command line of Command: program and arguments joined by spaces, unquoted, as the service does."""
    line = request.body
    command = _text(line, "Command")
    if line is None or not command:
        raise schema_violation("Command", "")
    arguments = [child.text or "" for child in line if _local(child.tag) == "Arguments"]
    return " ".join([command, *arguments])


def parse_stdin(request: Request) -> list[StdinPart]:
    """The Stream elements of Send. Raises Refusal when one is not base64."""
    parts = []
    for stream in () if request.body is None else request.body:
        try:
            data = base64.b64decode(stream.text or "", validate=True)
        except (binascii.Error, ValueError):
            raise schema_violation("Stream", (stream.text or "")[:40]) from None
        end = (_attribute(stream, "End") or "").lower() in ("true", "1")
        parts.append(StdinPart(_attribute(stream, "CommandId"), data, end))
    return parts


def parse_receive(request: Request) -> str | None:
    """The CommandId of Receive's DesiredStream, or None."""
    stream = _child(request.body, "DesiredStream")
    return None if stream is None else _attribute(stream, "CommandId")


def parse_signal(request: Request) -> tuple[str | None, str]:
    """CommandId and code of Signal; the code is its last word in lower case: terminate, ctrl_c,
    ctrl_break."""
    command_id = None if request.body is None else _attribute(request.body, "CommandId")
    code = (_text(request.body, "Code") or "").strip()
    return command_id, code.rpartition("/")[2].lower()


def _envelope(action: str, relates_to: str, body: str) -> bytes:
    head = (
        f'<s:Envelope xml:lang="en-US" xmlns:s="{_SOAP}" xmlns:a="{_ADDRESSING}" xmlns:x="{TRANSFER}" '
        f'xmlns:w="{_WSMAN}" xmlns:rsp="{SHELL}" '
        'xmlns:p="http://schemas.microsoft.com/wbem/wsman/1/wsman.xsd"><s:Header>'
        f"<a:Action>{action}</a:Action><a:MessageID>uuid:{new_id()}</a:MessageID>"
        f'<p:ActivityId s:mustUnderstand="false">{new_id()}</p:ActivityId>'
        f"<a:To>{_ANONYMOUS}</a:To><a:RelatesTo>{escape(relates_to)}</a:RelatesTo></s:Header><s:Body>"
    )
    return (head + body + "</s:Body></s:Envelope>").encode()


def new_id() -> str:
    """A fresh identifier in the spelling of Windows."""
    return str(uuid.uuid4()).upper()


def _shell_element(state: ShellState) -> str:
    name = f"<rsp:Name>{escape(state.name)}</rsp:Name>" if state.name else ""
    return (
        f"<rsp:Shell><rsp:ShellId>{state.shell_id}</rsp:ShellId>{name}<rsp:ResourceUri>{CMD_SHELL}</rsp:ResourceUri>"
        f"<rsp:Owner>{escape(state.owner)}</rsp:Owner><rsp:ClientIP>{state.client_ip}</rsp:ClientIP>"
        f"<rsp:IdleTimeOut>PT{state.idle_timeout_s:.3f}S</rsp:IdleTimeOut>"
        f"<rsp:InputStreams>{escape(state.input_streams)}</rsp:InputStreams>"
        f"<rsp:OutputStreams>{escape(state.output_streams)}</rsp:OutputStreams>"
        f"<rsp:ShellRunTime>{_long_duration(state.run_time_s)}</rsp:ShellRunTime>"
        f"<rsp:ShellInactivity>{_long_duration(state.inactivity_s)}</rsp:ShellInactivity></rsp:Shell>"
    )


def _long_duration(seconds: float) -> str:
    whole = int(seconds)
    return f"P{whole // 86400}DT{whole // 3600 % 24}H{whole // 60 % 60}M{whole % 60}S"


def render_created(request: Request, state: ShellState, address: str) -> bytes:
    """CreateResponse. address: the URL of the service."""
    body = (
        f"<x:ResourceCreated><a:Address>{escape(address)}</a:Address><a:ReferenceParameters>"
        f"<w:ResourceURI>{CMD_SHELL}</w:ResourceURI><w:SelectorSet>"
        f'<w:Selector Name="ShellId">{state.shell_id}</w:Selector></w:SelectorSet></a:ReferenceParameters>'
        f"</x:ResourceCreated>{_shell_element(state)}"
    )
    return _envelope(f"{TRANSFER}/CreateResponse", request.message_id, body)


def render_shell(request: Request, state: ShellState) -> bytes:
    """GetResponse for a shell."""
    return _envelope(f"{TRANSFER}/GetResponse", request.message_id, _shell_element(state))


def render_config(request: Request, values: dict[str, object]) -> bytes:
    """GetResponse for the service's configuration. Values may nest; booleans print as xs:boolean."""
    body = f'<cfg:Config xmlns:cfg="{CONFIG}">{_config_elements(values)}</cfg:Config>'
    return _envelope(f"{TRANSFER}/GetResponse", request.message_id, body)


def _config_elements(values: dict[str, object]) -> str:
    def content(value: object) -> str:
        if isinstance(value, dict):
            return _config_elements(value)
        return str(value).lower() if isinstance(value, bool) else escape(str(value))

    return "".join(f"<cfg:{name}>{content(value)}</cfg:{name}>" for name, value in values.items())


def render_command(request: Request, command_id: str) -> bytes:
    """CommandResponse."""
    body = f"<rsp:CommandResponse><rsp:CommandId>{command_id}</rsp:CommandId></rsp:CommandResponse>"
    return _envelope(f"{SHELL}/CommandResponse", request.message_id, body)


def render_empty(request: Request) -> bytes:
    """The answer without content of Send, Signal and Delete."""
    if request.action == "Delete":
        return _envelope(f"{TRANSFER}/DeleteResponse", request.message_id, "")
    name = f"{request.action}Response"
    return _envelope(f"{SHELL}/{name}", request.message_id, f"<rsp:{name}/>")


def render_output(
    request: Request,
    command_id: str,
    chunks: Iterable[Chunk],
    exit_code: int | None,
    running_too: bool = False,
) -> bytes:
    """ReceiveResponse.

    Args:
        chunks: output; each becomes a Stream element of its own.
        exit_code: unsigned; not None ends the streams and the command.
        running_too: put a Running state before Done, which some services do (docs/facts/winrm.md#r45).
    """
    parts = ["<rsp:ReceiveResponse>"]
    for name, data in chunks:
        encoded = base64.b64encode(data).decode()
        parts.append(f'<rsp:Stream Name="{name}" CommandId="{command_id}">{encoded}</rsp:Stream>')
    running = f'<rsp:CommandState CommandId="{command_id}" State="{SHELL}/CommandState/Running"/>'
    if exit_code is None:
        parts.append(running)
    else:
        parts += [
            f'<rsp:Stream Name="{name}" CommandId="{command_id}" End="true"></rsp:Stream>'
            for name in ("stdout", "stderr")
        ]
        parts.append(running if running_too else "")
        parts.append(
            f'<rsp:CommandState CommandId="{command_id}" State="{SHELL}/CommandState/Done">'
            f"<rsp:ExitCode>{exit_code}</rsp:ExitCode></rsp:CommandState>"
        )
    parts.append("</rsp:ReceiveResponse>")
    return _envelope(f"{SHELL}/ReceiveResponse", request.message_id, "".join(parts))


def render_fault(relates_to: str, refusal: Refusal, machine: str) -> bytes:
    """The SOAP fault of a refusal. machine: the box's name, as in WSManFault."""
    message = escape(refusal.message)
    detail = message
    if refusal.provider:
        detail = (
            f'<f:ProviderFault provider="{refusal.provider}" path="%systemroot%\\system32\\winrscmd.dll">'
            f'<f:WSManFault xmlns:f="{_FAULT}" Code="{refusal.code}" Machine={quoteattr(machine)}>'
            f"<f:Message>{message}</f:Message></f:WSManFault></f:ProviderFault>"
        )
    body = (
        f"<s:Fault><s:Code><s:Value>s:{refusal.side}</s:Value><s:Subcode><s:Value>{refusal.subcode}</s:Value>"
        f'</s:Subcode></s:Code><s:Reason><s:Text xml:lang="en-US">{message}</s:Text></s:Reason><s:Detail>'
        f'<f:WSManFault xmlns:f="{_FAULT}" Code="{refusal.code}" Machine={quoteattr(machine)}>'
        f"<f:Message>{detail}</f:Message></f:WSManFault></s:Detail></s:Fault>"
    )
    action = f"{_ADDRESSING}/fault" if refusal.subcode.startswith("a:") else f"{_FAULT_ACTION}"
    return _envelope(action, relates_to, body)


_FAULT_ACTION = "http://schemas.dmtf.org/wbem/wsman/1/wsman/fault"
