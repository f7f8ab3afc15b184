"""The initial state of a case, made with box commands alone, so that any box can be brought into it."""

from __future__ import annotations

import gzip
import ntpath
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any

from winfleet.call import Call
from winfleet.contract.case import content_of, pattern
from winfleet.contract.place import Place
from winfleet.wire.exchange import Answer
from winfleet.wire.frames import Frame

PART_BYTES = 1 << 24
PLAIN_BYTES = 1 << 15
"""Files above this travel compressed: what cases put into large files shrinks to a thousandth."""
_START_S = 30.0
_HELD = "winfleet-contract-file"
_PING = "ping -n 300 127.0.0.1"
_START_PING = (
    "$start = New-Object Diagnostics.ProcessStartInfo 'C:\\Windows\\System32\\ping.exe', '-n 300 127.0.0.1'; "
    # Nobody reads what it writes: a handle of ours in its hands would keep the session's own output open.
    "$start.UseShellExecute = $false; $start.CreateNoWindow = $true; $start.RedirectStandardOutput = $true; "
    "$start.RedirectStandardError = $true; [Diagnostics.Process]::Start($start).Id"
)


class LayingFailed(Exception):
    """The state that a case begins with could not be made; says nothing about the case itself."""


def ask(place: Place, calls: Sequence[Call]) -> list[Any]:
    """The values of calls that must succeed. Raises LayingFailed."""
    if not calls:
        return []
    answers = place.run(calls)
    for call, answer in zip(calls, answers, strict=True):
        if not answer.ok:
            raise LayingFailed(f"{call}: {told(answer)}")
    return [answer.value for answer in answers]


def told(answer: Answer) -> str:
    """An error in one line."""
    error = answer.error or {}
    return f"{error.get('type')}: {error.get('message')} ({error.get('hresult')})"


def lay(
    place: Place,
    given: Sequence[Mapping[str, Any]],
    values: dict[str, Any],
    fill: Callable[[Any], Any],
    stack: ExitStack,
) -> None:
    """Make the state; what it holds open is released by the stack. Values get what `as` and `running` name.

    Raises LayingFailed.
    """
    folders = [fill(item["directory"]) for item in given if "directory" in item]
    folders += [ntpath.dirname(fill(item["file"])) for item in given if "file" in item]
    missing = [folder for folder in dict.fromkeys(folders) if folder != values["D"]]
    if missing:
        ask(place, [Call("New-BoxDirectory", Path=missing)])
    for item in given:
        if "file" in item:
            _write(place, fill(item["file"]), item)
        elif "held" in item:
            stack.enter_context(_held(place, fill(item["held"])))
        elif "running" in item:
            values[item["running"]] = stack.enter_context(_running(place))
        elif "call" in item:
            (value,) = ask(place, [Call(item["call"], **fill(item.get("parameters", {})))])
            if "as" in item:
                values[item["as"]] = value


def _write(place: Place, path: str, item: Mapping[str, Any]) -> None:
    content = content_of(item)
    if len(content) <= PLAIN_BYTES:
        ask(place, [Call("Write-BoxFilePart", payload=content, TemporaryPath=path, OffsetBytes=0)])
    else:
        for at, packed in _packed_pattern(len(content)):
            call = Call(
                "Write-BoxFilePart", payload=packed, TemporaryPath=path, OffsetBytes=at, Encoding="gzip"
            )
            ask(place, [call])
    if item.get("read_only"):
        ask(place, [Call("Set-BoxFileAttribute", Path=path, ReadOnly=True)])


@lru_cache(maxsize=2)
def _packed_pattern(size_bytes: int) -> list[tuple[int, bytes]]:
    content = pattern(size_bytes)
    cuts = range(0, size_bytes, PART_BYTES)
    return [(at, gzip.compress(content[at : at + PART_BYTES], 1, mtime=0)) for at in cuts]


@contextmanager
def _held(place: Place, path: str) -> Iterator[None]:
    """The file is open for writing and others may read it, as a server has its log.

    PowerShell itself keeps it open where there is PowerShell (the application domain outlives the text); else a
    program of cmd.exe does. Not the other way round: Wine's cmd.exe lets others replace what it redirects into.
    """
    file = f"[IO.File]::Open('{_quoted(path)}', 'Create', 'Write', 'Read')"
    if _powershell(place, f"[AppDomain]::CurrentDomain.SetData('{_HELD}', {file})") is not None:
        try:
            yield
        finally:
            _powershell(place, f"[AppDomain]::CurrentDomain.GetData('{_HELD}').Dispose()")
        return
    program = place.start(f'{_PING} >"{path}"')
    try:
        _until(lambda: _kind(place, path) == "file", f"nothing opened {path}")
        yield
    finally:
        program.end()


@contextmanager
def _running(place: Place) -> Iterator[dict[str, Any]]:
    """A program of the box, as Get-BoxProcess sees it. PowerShell starts it, or where there is none cmd.exe."""
    printed = _powershell(place, _START_PING)
    if printed is not None:
        (row,) = ask(place, [Call("Get-BoxProcess", ProcessId=[int(printed)])])[0]
        place.owns(row["ProcessId"])
        try:
            yield row
        finally:
            identity = {name: row[name] for name in ("ProcessId", "CreationTimeUtc")}
            place.run([Call("Stop-BoxProcess", **identity)])
        return
    known = {row["ProcessId"] for row in _pings(place)}
    program = place.start(_PING)
    found: list[dict[str, Any]] = []

    def appeared() -> bool:
        found[:] = [row for row in _pings(place) if row["ProcessId"] not in known]
        return bool(found)

    try:
        _until(appeared, "ping.exe did not start")
        place.owns(found[0]["ProcessId"])
        yield found[0]
    finally:
        program.end()


def _powershell(place: Place, text: str) -> str | None:
    """What a PowerShell text prints; None where there is no PowerShell. Raises LayingFailed when it fails."""
    printed: list[str] = []

    def listen(frame: Frame) -> None:
        if frame.kind == "output":
            printed.append(str(frame.data.get("text", "")))

    (answer,) = place.run([Call("Invoke-BoxScript", Text=text)], listen)
    if not answer.ok:
        return None
    if answer.value["ExitCode"] != 0:
        raise LayingFailed(f"{text}: {''.join(printed)}")
    return "".join(printed)


def _pings(place: Place) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ask(place, [Call("Get-BoxProcess", Name=["ping.exe"])])[0]
    return rows


def _kind(place: Place, path: str) -> str:
    return str(ask(place, [Call("Get-BoxFile", Path=[path])])[0][0]["Kind"])


def _until(reached: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _START_S
    while not reached():
        if time.monotonic() > deadline:
            raise LayingFailed(otherwise)


def _quoted(text: str) -> str:
    return text.replace("'", "''")
