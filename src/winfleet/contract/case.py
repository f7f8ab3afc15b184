"""Cases as they are written in the `cases/` of each noun, one YAML file per box command.

    command: Set-BoxFile
    needs: administrator               # optional: the right that every case of the file needs
    cases:
    - name: a file is replaced whole
      given: [{file: '{D}\\a.txt', text: old}]
      parameters: {Path: '{D}\\a.txt', Sha256: '{sha256}'}
      content: new                     # the payload
      answer: {Replaced: true}         # or error: {type: ..., hresult: ...}
      then: [{path: '{D}\\a.txt', kind: file, text: new}]

given   directory: PATH | file: PATH (text, size_bytes, read_only) | held: PATH (a program writes it; others may
        read) | running: NAME (a program: {NAME.ProcessId}, {NAME.CreationTimeUtc}) |
        call: COMMAND (parameters, as: NAME -> {NAME.Property})
then    path: PATH (kind, text, size_bytes, read_only, children) |
        call: COMMAND (parameters, answer, error; eventually: true asks until it is so)
places  {D} the case's own folder, {N} its number, {sha256} of the payload, the names {long}, {chinese} and {nasty},
        {culture} of the box, {url} of a server
output  stdout and stderr of Invoke-BoxScript, without line ends at the end
needs   administrator: rights of one; server: an HTTP server that only tests have; machine: the simulated machine
platforms  {wine: {because: ..., answer: ...}}: what that one does otherwise than Windows;
        {python: {because: ..., skip: true}}: the case does not run there
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from winfleet.contract.expect import CaseLoader

DIRECTORY = Path(__file__).resolve().parents[1]
NEEDS = frozenset({"administrator", "server", "machine"})
PLATFORMS = frozenset({"windows", "wine", "python"})
_CASE_KEYS = frozenset(
    {"name", "given", "parameters", "content", "content_bytes", "content_base64", "gzip", "answer", "error", "output",
     "payload", "then", "needs", "platforms"}
)  # fmt: skip
_GIVEN_KEYS = frozenset(
    {"directory", "file", "text", "size_bytes", "read_only", "held", "running", "call", "parameters", "as"}
)
_THEN_KEYS = frozenset(
    {"path", "kind", "text", "size_bytes", "read_only", "children", "call", "parameters", "answer", "error",
     "eventually"}
)  # fmt: skip
_PATTERN = bytes(at * 7 % 251 for at in range(251))


class CaseError(ValueError):
    """A case file that cannot be understood; the text says which case and what."""


@dataclass(frozen=True)
class Case:
    """One case; the module's docstring tells what each part holds.

    Attributes: content (the payload to send), payload (text that must come back as payload), needs (rights and
    surroundings), platforms (what is otherwise there, by platform).
    """

    command: str
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    given: tuple[Mapping[str, Any], ...] = ()
    content: bytes = b""
    gzipped: bool = False
    answer: Any = None
    error: Mapping[str, Any] | None = None
    output: Mapping[str, Any] = field(default_factory=dict)
    payload: str | None = None
    then: tuple[Mapping[str, Any], ...] = ()
    needs: frozenset[str] = frozenset()
    platforms: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Command and name, as reports print it."""
        return f"{self.command}: {self.name}"

    @property
    def sent(self) -> bytes:
        """The payload as it travels."""
        return gzip.compress(self.content, 6, mtime=0) if self.gzipped else self.content

    @property
    def sha256(self) -> str:
        """Of the content itself, lower case hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()


@lru_cache(maxsize=4)
def pattern(size_bytes: int) -> bytes:
    """That many bytes of no particular meaning, always the same."""
    return (_PATTERN * (size_bytes // len(_PATTERN) + 1))[:size_bytes]


def content_of(item: Mapping[str, Any]) -> bytes:
    """The bytes that `text` or `size_bytes` of a file describe."""
    return pattern(int(item["size_bytes"])) if "size_bytes" in item else str(item.get("text", "")).encode()


def load_cases(directory: Path = DIRECTORY) -> list[Case]:
    """All cases, by command and then as written. Raises CaseError."""
    cases = [
        case
        for path in sorted(directory.glob("*/cases/*.yml"), key=lambda file: file.name)
        for case in _read(path)
    ]
    titles = [case.title for case in cases]
    doubles = {title for title in titles if titles.count(title) > 1}
    if doubles:
        raise CaseError(f"two cases have one name: {', '.join(sorted(doubles))}")
    return cases


def _read(path: Path) -> Iterator[Case]:
    document = yaml.load(path.read_text("utf-8"), CaseLoader)
    if not isinstance(document, dict) or set(document) - {"command", "needs", "cases"}:
        raise CaseError(f"{path.name}: wanted: command, cases and perhaps needs")
    if document["command"] != path.stem:
        raise CaseError(
            f"{path.name}: its command is {document['command']}; one file per command, named as it"
        )
    for item in document["cases"]:
        yield _case(document["command"], _names(document.get("needs")), item)


def _case(command: str, needs: frozenset[str], item: Mapping[str, Any]) -> Case:
    where = f"{command}: {item.get('name')}"
    _known(where, item, _CASE_KEYS)
    needs |= _names(item.get("needs"))
    if needs - NEEDS or set(item.get("platforms", {})) - PLATFORMS:
        raise CaseError(f"{where}: needs one of {sorted(NEEDS)}; platforms names {sorted(PLATFORMS)}")
    for deviation in item.get("platforms", {}).values():
        _known(where, deviation, frozenset({"because", "skip", "answer", "error", "output", "then"}))
        if not deviation.get("because"):
            raise CaseError(f"{where}: a platform that differs has its reason in because")
    for given in item.get("given", []):
        _known(where, given, _GIVEN_KEYS)
    for then in item.get("then", []):
        _known(where, then, _THEN_KEYS)
    if ("answer" in item) == ("error" in item):
        raise CaseError(f"{where}: wanted either an answer or an error")
    content = str(item.get("content", "")).encode()
    if "content_bytes" in item:
        content = pattern(item["content_bytes"])
    return Case(
        command=command,
        name=item["name"],
        parameters=item.get("parameters", {}),
        given=tuple(item.get("given", [])),
        content=content,
        gzipped=bool(item.get("gzip")),
        answer=item.get("answer"),
        error=item.get("error"),
        output=item.get("output", {}),
        payload=item.get("payload"),
        then=tuple(item.get("then", [])),
        needs=needs,
        platforms=item.get("platforms", {}),
    )


def _names(value: Any) -> frozenset[str]:
    return frozenset(value) if isinstance(value, list) else frozenset([value] if value else [])


def _known(where: str, item: Mapping[str, Any], keys: frozenset[str]) -> None:
    unknown = set(item) - keys
    if unknown:
        raise CaseError(
            f"{where}: unknown: {', '.join(sorted(map(str, unknown)))}; known: {', '.join(sorted(keys))}"
        )
