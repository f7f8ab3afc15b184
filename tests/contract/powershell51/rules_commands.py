"""Rules about commands and their parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from powershell51 import commands
from powershell51.check import Subject, rule
from powershell51.tree import Node

Found = Iterator[tuple[Node | int, str]]

_WEB = ("invoke-webrequest", "invoke-restmethod")
# Parameters and commands of PowerShell 7 that a rule of its own names; any other is told by the tables alone.
_NEWER_PARAMETERS: dict[tuple[str, str], str] = {
    **{("foreach-object", name): "PS03" for name in ("parallel", "throttlelimit", "timeoutseconds", "asjob")},
    **{("convertfrom-json", name): "PS05" for name in ("ashashtable", "depth", "noenumerate", "datekind")},
    **{("convertto-json", name): "PS06" for name in ("asarray", "enumsasstrings", "escapehandling")},
    **{(name, "asbytestream"): "PS15" for name in ("get-content", "set-content", "add-content")},
    **{
        (command, name): "PS17"
        for command in _WEB
        for name in (
            "skipcertificatecheck", "skiphttperrorcheck", "form", "maximumretrycount", "retryintervalsec",
            "noproxy", "responseheadersvariable", "skipheadervalidation", "resume", "authentication", "token",
            "allowunencryptedauthentication", "custommethod", "followrellink", "statuscodevariable", "sslprotocol",
        )
    },
    ("join-path", "additionalchildpath"): "PS19",
    **{("split-path", name): "PS19" for name in ("leafbase", "extension")},
    **{
        (command, name): "PS21"
        for command, names in {
            "start-process": ("environment",),
            "sort-object": ("top", "bottom", "stable"),
            "get-date": ("asutc", "unixtimeseconds"),
            "select-string": ("raw", "noemphasis", "culture"),
            "where-object": ("not",),
            "test-connection": ("targetname", "tcpport", "traceroute", "ipv4", "mtusize"),
        }.items()
        for name in names
    },
}  # fmt: skip
_NEWER_COMMANDS = {
    "start-threadjob": "PS03",
    **dict.fromkeys(
        [
            "test-json",
            "get-error",
            "join-string",
            "get-uptime",
            "remove-service",
            "convertfrom-markdown",
            "show-markdown",
            "get-markdownoption",
            "remove-alias",
            "get-verb",
            "switch-process",
        ],
        "PS21",
    ),
}
_ENCODINGS = frozenset(
    [
        "unknown",
        "string",
        "unicode",
        "bigendianunicode",
        "utf8",
        "utf7",
        "utf32",
        "ascii",
        "default",
        "oem",
        "byte",
    ]
)
_WRITERS = {
    "set-content": 1,
    "add-content": 1,
    "out-file": 1,
    "export-csv": 1,
    "export-clixml": 1,
    "tee-object": 0,
}


@rule("command")
def known_commands(subject: Subject) -> Found:
    return _told(subject, "command")


@rule("parameter")
def known_parameters(subject: Subject) -> Found:
    return _told(subject, "parameter")


@rule("alias")
def no_aliases(subject: Subject) -> Found:
    return _told(subject, "alias")


@rule("program")
def full_paths(subject: Subject) -> Found:
    """No program is looked for through PATH: a remote session has the PATH of the time when its service started."""
    yield from _told(subject, "program")
    for call in subject.calls_of("start-process"):
        path = call.argument("filepath", 0)
        if path is not None and path.is_constant and not re.match(r"[A-Za-z]:\\|\\\\", path.value):
            yield path, f"{path.value}: programs are started by their full path"
    for node in subject.root.find("AssignmentStatement"):
        left, right = node.get("Left"), node.get("Right")
        if left is None or right is None or left.member.lower() != "filename":
            continue
        text = next(right.find("StringConstantExpression"), None)
        if text is not None and text.text == right.text and not re.match(r"[A-Za-z]:\\|\\\\", text.value):
            yield node, f"{text.value}: programs are started by their full path"


def _told(subject: Subject, wanted: str) -> Found:
    for call in subject.calls:
        if call.key in _NEWER_COMMANDS and call.key not in subject.own:
            continue
        for kind, text in commands.faults(call, subject.own, subject.tables):
            name = text.partition(" has no parameter -")[2].partition(" ")[0]
            if kind == wanted and (call.key, name) not in _NEWER_PARAMETERS:
                yield call.node, text


def _newer(name: str) -> None:
    @rule(name)
    def newer(subject: Subject) -> Found:
        for call in subject.calls:
            if call.key in subject.own:
                continue
            if _NEWER_COMMANDS.get(call.key) == name:
                yield call.node, f"{call.name} is a command of PowerShell 7"
            for parameter in call.parameters:
                if _NEWER_PARAMETERS.get((call.key, parameter)) == name:
                    yield call.node, f"{call.name} -{parameter} is a parameter of PowerShell 7"


for _name in ("PS03", "PS05", "PS06", "PS15", "PS17", "PS19", "PS21"):
    _newer(_name)


@rule("PS07")
def json_depth(subject: Subject) -> Found:
    for call in subject.calls_of("convertto-json"):
        if "depth" not in call.parameters and call.unknown_splat is None:
            yield call.node, "ConvertTo-Json without -Depth stops at 2 without a word"


@rule("PS08")
def json_from_a_pipeline(subject: Subject) -> Found:
    for call in subject.calls_of("convertto-json"):
        pipeline = call.node.parent
        if pipeline is not None and pipeline.all("PipelineElements")[0] is not call.node:
            yield call.node, "one element of a collection would arrive alone; use -InputObject @(...)"


@rule("PS13")
def encoding_names(subject: Subject) -> Found:
    for call in subject.calls:
        value = call.parameters.get("encoding")
        if call.key in subject.own or value is None or not value.is_constant:
            continue
        if value.value.lower() not in _ENCODINGS:
            yield value, f"-Encoding {value.value} is none of 5.1; use [IO.File]::WriteAllText"


@rule("PS14")
def encodings_of_files(subject: Subject) -> Found:
    """5.1 writes UTF-16, ANSI or a byte order mark; only ASCII and bytes are what they look like."""
    for call in subject.calls_of(*_WRITERS):
        encoding = call.parameters.get("encoding")
        name = encoding.value.lower() if encoding is not None else ""
        if name and name not in _ENCODINGS:
            continue
        if call.key == "tee-object" and not (
            call.positional or {"filepath", "literalpath"} & call.parameters.keys()
        ):
            continue
        if name not in ("ascii", "byte"):
            yield (
                call.node,
                f"{call.name} {'-Encoding ' + name if name else 'without -Encoding'}: use [IO.File]::WriteAllText",
            )
    for node in subject.root.find("FileRedirection"):
        location = node.get("Location")
        if location is None or location.variable != "null":
            yield node, "> writes UTF-16; use [IO.File]::WriteAllText"


@rule("PS16")
def basic_parsing(subject: Subject) -> Found:
    for call in subject.calls_of(*_WEB):
        if "usebasicparsing" not in call.parameters:
            yield call.node, f"{call.name} without -UseBasicParsing asks a question and waits"


@rule("PS19")
def parts_of_paths(subject: Subject) -> Found:
    for call in subject.calls_of("join-path"):
        if len(call.positional) > 2 - ("path" in call.parameters) - ("childpath" in call.parameters):
            yield call.node, "Join-Path takes two parts; use [IO.Path]::Combine"


@rule("compiler")
def no_compiler(subject: Subject) -> Found:
    """5.1 compiles with csc.exe, which writes into %TEMP%: a plan would write on the box, and slowly."""
    for call in subject.calls_of("add-type"):
        if call.positional or call.unknown_splat or not {"assemblyname", "an"} & call.parameters.keys():
            yield call.node, "Add-Type runs a compiler that writes into %TEMP%; use Get-NativeType"


@rule("PS30")
def old_pitfalls(subject: Subject) -> Found:
    for call in subject.calls_of("export-csv", "convertto-csv"):
        if "notypeinformation" not in call.parameters:
            yield call.node, f"{call.name} without -NoTypeInformation writes a #TYPE line first"
    for call in subject.calls_of("compress-archive"):
        yield call.node, "Compress-Archive of 5.1 writes backslashes into the archive"
    for call in subject.calls:
        if re.fullmatch(r"(get|set|invoke|remove|register)-wmi\w+", call.key):
            yield (
                call.node,
                f"{call.name} is gone from PowerShell 7, which the tests run; use the CIM commands",
            )
