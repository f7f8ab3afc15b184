"""Rules about what a machine brings: programs, the web, encodings, cultures, 32 bits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from powershell51.check import Subject, rule
from powershell51.rules_values import owner_of
from powershell51.tree import Node

Found = Iterator[tuple[Node | int, str]]

_CULTURED = frozenset({"system.datetime", "system.double", "system.single", "system.decimal"})
_FIXED_FORMATS = frozenset({"o", "r", "s", "u", "O", "R"})


# The web


@rule("PS18")
def secure_channel(subject: Subject) -> Found:
    """5.1 offers TLS 1.0 unless it is told otherwise; its progress bar makes downloads slow."""
    text = subject.script.text.lower()
    web = list(subject.calls_of("invoke-webrequest", "invoke-restmethod"))
    clients = re.compile(
        r"(system\.)?net\.(webrequest|httpwebrequest|webclient|http\.httpclient)", re.IGNORECASE
    )
    uses: list[Node] = [call.node for call in web]
    uses += [
        node
        for node in subject.root.find("TypeExpression")
        if clients.fullmatch(str(node.attributes["TypeName"]))
        and node.parent is not None
        and node.parent.kind == "InvokeMemberExpression"
    ]
    uses += [
        call.node
        for call in subject.calls_of("new-object")
        if any(
            clients.fullmatch(one.value)
            for one in [*call.positional, *filter(None, call.parameters.values())]
        )
    ]
    if uses and not re.search(r"servicepointmanager\]::securityprotocol\s*=", text):
        yield uses[0], "switch TLS 1.2 on first: [Net.ServicePointManager]::SecurityProtocol"
    if web and not re.search(r"\$progresspreference\s*=\s*'silentlycontinue'", text):
        yield web[0].node, "set $ProgressPreference = 'SilentlyContinue': drawing progress slows downloads"


# Programs


def _is_program(subject: Subject, command: Node) -> bool:
    first = command.all("CommandElements")[0]
    if command.attributes.get("InvocationOperator") != "Ampersand":
        return bool(re.search(r"\.(exe|cmd|bat)$", first.value, re.IGNORECASE))
    if first.is_constant:
        return first.value.lower() not in subject.own and first.value.lower() not in subject.tables.commands
    value = subject.values.of(first)
    return value is not None and value.type == "System.String"


@rule("PS22")
def stderr_of_programs(subject: Subject) -> Found:
    for command in subject.root.find("Command"):
        if not _is_program(subject, command):
            continue
        for redirection in command.all("Redirections"):
            if redirection.attributes.get("FromStream") not in ("Error", "All"):
                continue
            if not re.search(
                r"(?i)\$ErrorActionPreference\s*=\s*'(Silently)?Continue'", command.function.text
            ):
                yield (
                    command,
                    "under 'Stop' a redirected line on stderr ends the script; set 'Continue' round the call",
                )


@rule("PS23")
def arguments_of_programs(subject: Subject) -> Found:
    for command in subject.root.find("Command"):
        if not _is_program(subject, command):
            continue
        for element in command.all("CommandElements")[1:]:
            plain = element.kind in ("CommandParameter", "ConstantExpression") or (
                element.kind == "StringConstantExpression" and element.value and '"' not in element.value
            )
            if not plain:
                yield (
                    element,
                    "quotes and empty texts are lost on the way to a program; build ProcessStartInfo.Arguments",
                )


@rule("PS26")
def powershell_as_a_program(subject: Subject) -> Found:
    """What starts another PowerShell: by a call, or in a text that becomes a command line."""
    for node in subject.root.find("Command", "StringConstantExpression", "ExpandableStringExpression"):
        if node.kind != "Command" and (node.parent is not None and node.parent.kind == "Command"):
            continue
        text = node.text if node.kind == "Command" else node.value
        if node.kind == "Command" and not re.match(r"(?i)&?\s*['\"]?\S*(powershell|pwsh)(\.exe)?\b", text):
            continue
        if re.search(r"(?i)\s-(e|ec|enc|encodedcommand)\s", text) and not re.search(
            r"(?i)-OutputFormat\s+Text", text
        ):
            yield node, "-EncodedCommand answers in CLIXML; add -OutputFormat Text"
        command = re.search(r"(?is)\s-(?:c|command)\s+(.*)", text)
        # Dot-sourced text ends the process itself; - reads stdin, which no exit code belongs to.
        if command and not re.search(r"(?i)\bexit\b|^[\"']?\. |^-", command[1]):
            yield node, "-Command ends with 0 or 1 only; end it with exit $LASTEXITCODE"
        if re.search(r"(?i)\s-(f|file)\s+\S+\s+-", text):
            yield node, "-File hands every argument over as a text"


@rule("PS25")
def default_encodings(subject: Subject) -> Found:
    for node in subject.root.find("MemberExpression"):
        owner, _ = owner_of(subject, node)
        name = f"{owner.name}.{node.member}".lower() if owner else ""
        if name == "system.text.encoding.default" and node.attributes["Static"]:
            yield node, "[Text.Encoding]::Default is the box's code page in 5.1 and UTF-8 in 7"
        if name == "system.console.outputencoding" and node.role != "Left":
            yield (
                node,
                "[Console]::OutputEncoding is the OEM code page in 5.1; ask the registry for it, or set it",
            )


# Cultures, 32 bit


@rule("PS28")
def cultures(subject: Subject) -> Found:
    for node in subject.root.find("InvokeMemberExpression"):
        arguments = node.all("Arguments")
        owner, _ = owner_of(subject, node)
        kind = owner.name.lower() if owner else ""
        member = node.member.lower()
        if member in ("tolower", "toupper") and not arguments and kind in ("", "system.string"):
            yield node, f"{node.member}() follows the culture; use {node.member}Invariant()"
        elif member in ("parse", "tryparse") and kind in _CULTURED and node.attributes["Static"]:
            if not any("culture" in one.text.lower() for one in arguments):
                yield node, f"{node.member} follows the culture; give InvariantCulture"
        elif member == "tostring" and kind in _CULTURED and not _fixed(arguments):
            yield node, "ToString follows the culture; give InvariantCulture"
        elif (
            member in ("startswith", "endswith", "indexof", "lastindexof")
            and kind == "system.string"
            and arguments
            and not _is_char(subject, arguments[0])
            and "comparison" not in node.text.lower()
        ):
            yield (
                node,
                f"{node.member} of a text follows the culture; give [StringComparison]::Ordinal or a char",
            )
    cultured = re.compile(r"\{\d+(,-?\d+)?:[CcEeFfGgNnPpdMyHh]")
    for node in subject.root.find("BinaryExpression"):
        left = node.get("Left")
        if node.attributes["Operator"] == "Format" and left is not None and cultured.search(left.value):
            yield node, "-f follows the culture; use ToString with InvariantCulture"
    for call in subject.calls_of("get-date"):
        form = call.parameters.get("format")
        if form is not None and form.value not in _FIXED_FORMATS:
            yield call.node, "Get-Date -Format follows the culture; use .ToString('o')"


def _fixed(arguments: list[Node]) -> bool:
    first = arguments[0] if arguments else None
    fixed = first is not None and first.is_constant and first.value in _FIXED_FORMATS
    return fixed or any("culture" in one.text.lower() for one in arguments)


def _is_char(subject: Subject, node: Node) -> bool:
    value = subject.values.of(node)
    return value is not None and value.type in ("System.Char", "System.Char[]")


@rule("PS29")
def thirty_two_bits(subject: Subject) -> Found:
    """A 32-bit PowerShell gets other folders and keys under these names without a word."""
    pattern = re.compile(r"(?i)\\(system32|syswow64)\\|^(HKLM:|HKEY_LOCAL_MACHINE)\\SOFTWARE\\")
    for node in subject.root.find("StringConstantExpression", "ExpandableStringExpression"):
        if not pattern.search(node.value):
            continue
        if not re.search(r"(?i)::Is64BitProcess|RegistryView\]::Registry64", _around(node)):
            yield (
                node,
                f"{node.text}: a 32-bit PowerShell is led elsewhere; look at [Environment]::Is64BitProcess",
            )


def _around(node: Node) -> str:
    return node.function.text
