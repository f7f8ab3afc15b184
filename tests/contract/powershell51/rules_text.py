"""Rules about syntax, characters, names and size."""

from __future__ import annotations

import re
from collections.abc import Iterator

from powershell51.check import MAX_LINE_CHARACTERS, MAX_LINES, Subject, rule
from powershell51.tree import Node, parameters

Found = Iterator[tuple[Node | int, str]]

_NULL_TOKENS = frozenset({"QuestionQuestion", "QuestionQuestionEquals", "QuestionDot", "QuestionLBracket"})
_AUTOMATIC = frozenset({"args", "input", "host", "pid", "matches", "error"})
_SEVEN_VARIABLES = frozenset(
    {"psstyle", "psnativecommanduseerroractionpreference", "psnativecommandargumentpassing"}
)
_SMART = re.compile("[\u2018-\u201f\u2013-\u2015]")


@rule("syntax")
def syntax(subject: Subject) -> Found:
    """What PowerShell 7 cannot read, 5.1 cannot either."""
    newer = {"QuestionQuestion", "QuestionQuestionEquals", "AndAnd", "OrOr"}
    if not any(kind in newer for kind, _, _ in subject.script.tokens):
        yield from (
            (line, text)
            for line, text, kind in subject.script.errors
            if not kind.startswith("ModuleNotFound")
        )


@rule("PS01")
def null_operators(subject: Subject) -> Found:
    for kind, line, text in subject.script.tokens:
        if kind in _NULL_TOKENS:
            yield line, f"{text} is syntax of PowerShell 7; use if"


@rule("PS02")
def newer_statements(subject: Subject) -> Found:
    for node in subject.root.walk():
        if node.kind == "TernaryExpression":
            yield node, "a ? b : c is syntax of PowerShell 7; use if"
        elif node.kind == "PipelineChain":
            yield node, "&& and || are syntax of PowerShell 7; test $LASTEXITCODE or $?"
        elif node.attributes.get("Background") is True:
            yield node, "a background job by & is syntax of PowerShell 7"


@rule("PS04")
def newer_literals(subject: Subject) -> Found:
    for node in subject.root.find("NamedBlock"):
        if node.attributes.get("BlockKind") == "Clean":
            yield node, "a clean block is syntax of PowerShell 7; use try and finally"
    for kind, line, text in subject.script.tokens:
        if kind == "Number" and re.search(r"^[-+]?0b|\d(u|ul|uy|us|y|s|n)([kmgtp]b)?$", _suffix(text)):
            yield line, f"the number {text} is syntax of PowerShell 7; cast it"
        if kind in ("StringExpandable", "HereStringExpandable", "Generic") and re.search(
            r"(?<!`)(``)*`(e|u\{)", text
        ):
            yield line, "`e and `u{} are characters of PowerShell 7; use [char]"


def _suffix(number: str) -> str:
    """A number in lower case, the digits of a hexadecimal one as 0 so that only its suffix has letters."""
    text = number.lower()
    hexadecimal = re.match(r"([-+]?0x)([0-9a-f]+)", text)
    return "0" + text[hexadecimal.end() :] if hexadecimal else text


@rule("PS20")
def platform_variables(subject: Subject) -> Found:
    for node in subject.root.find("VariableExpression"):
        if node.variable in ("iswindows", "islinux", "ismacos", "iscoreclr"):
            yield node, f"{node.text} is not defined in 5.1; ask $env:OS or $PSVersionTable.PSVersion"


@rule("PS27")
def automatic_variables(subject: Subject) -> Found:
    for function in subject.root.find("FunctionDefinition", "ScriptBlock"):
        for name, node in parameters(function).items():
            if name in _AUTOMATIC and node.parent is not None:
                yield (
                    node,
                    f"a parameter ${name} is overwritten by the automatic variable of that name; rename it",
                )
    for node in subject.root.find("AssignmentStatement", "ForEachStatement"):
        left = node.get("Left", "Variable")
        if left is not None and left.variable in _AUTOMATIC:
            yield node, f"{left.text} is an automatic variable; rename it"


@rule("PS31")
def characters(subject: Subject) -> Found:
    for number, line in enumerate(subject.script.text.splitlines(), 1):
        if not line.isascii():
            what = "a typographic quote or dash" if _SMART.search(line) else "a character beyond ASCII"
            yield number, f"{what}: 5.1 reads a file without a byte order mark in the box's code page"
    for node in subject.root.find("InvokeMemberExpression"):
        arguments = node.all("Arguments")
        path = next((one for one in arguments if re.search(r"\.(bat|cmd)['\")]*$", one.text)), None)
        if path is None or node.member.lower() not in ("writealltext", "appendalltext"):
            continue
        for content in arguments:
            for text in content.find("StringConstantExpression", "ExpandableStringExpression"):
                if re.search(r"(?<!\r)\n", text.value):
                    yield content, "a batch file needs CR LF at the end of its lines"


@rule("PS32")
def needs_seven(subject: Subject) -> Found:
    attributes = subject.root.attributes
    version = str(attributes.get("RequiredVersion", ""))
    if version and tuple(int(part) for part in version.split(".")[:2]) > (5, 1):
        yield subject.root, f"#requires -Version {version}: 5.1 would refuse the script"
    if "Core" in str(attributes.get("RequiredEditions", "")):
        yield subject.root, "#requires -PSEdition Core: 5.1 is Desktop"
    for node in subject.root.find("UsingStatement"):
        name = node.get("Name")
        kind = str(node.attributes.get("UsingStatementKind"))
        if kind == "Module" and (name is None or name.value.lower() not in subject.tables.modules):
            yield node, f"{node.text}: Windows PowerShell 5.1 has no such module"
    for node in subject.root.find("VariableExpression"):
        if node.variable in _SEVEN_VARIABLES:
            yield node, f"{node.text} means nothing in 5.1"


@rule("size")
def size(subject: Subject) -> Found:
    lines = subject.script.text.splitlines()
    if len(lines) > MAX_LINES:
        yield len(lines), f"the file has {len(lines)} lines, more than {MAX_LINES}"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE_CHARACTERS:
            yield number, f"the line has {len(line)} characters, more than {MAX_LINE_CHARACTERS}"
