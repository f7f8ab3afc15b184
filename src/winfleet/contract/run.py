"""Run one case at one place."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

from winfleet.call import Call
from winfleet.contract.case import Case, content_of
from winfleet.contract.expect import differences
from winfleet.contract.fill import NAMES, filler, places
from winfleet.contract.guard import forbidden
from winfleet.contract.lay import LayingFailed, lay, told
from winfleet.contract.place import Place
from winfleet.wire.exchange import Answer
from winfleet.wire.frames import Frame

_LARGE_BYTES = 1 << 20
_CONTENT_BYTES = 1 << 16
_EVENTUALLY_S = 60.0
_PAUSE_S = 0.05


@dataclass(frozen=True)
class Outcome:
    """How a case went. Attributes: differences (of a failed one), reason (of a skipped one), seconds."""

    case: Case
    status: Literal["passed", "failed", "skipped"]
    differences: tuple[str, ...] = ()
    reason: str = ""
    seconds: float = 0.0


def run_case(case: Case, place: Place, folder: str, number: int, scratch: str | None = None) -> Outcome:
    """Lay the case's state in `folder` (which is there and empty), ask its call, compare.

    Args: number tells this case from all others of the run; scratch is the folder outside of which nothing may
    change at a place that is scratch_only (None: `folder`).

    Raises what the place's session raises when the connection fails.
    """
    started = time.monotonic()
    values: dict[str, Any] = {"D": folder, "N": number, "sha256": case.sha256, **NAMES, **place.values}
    fill = filler(values)
    reason = skip_reason(case, place, fill, scratch or folder)
    if reason is not None:
        return Outcome(case, "skipped", reason=reason)
    expected = {
        **_expected(case),
        **{k: v for k, v in case.platforms.get(place.platform, {}).items() if k != "because"},
    }
    if "error" in case.platforms.get(place.platform, {}):
        expected.pop("answer", None)
    elif "answer" in case.platforms.get(place.platform, {}):
        expected.pop("error", None)
    try:
        with ExitStack() as stack:
            lay(place, case.given, values, fill, stack)
            lines = _ask(case, place, fill, expected)
            lines += _states(place, fill(list(expected["then"])))
    except LayingFailed as error:
        lines = [f"its initial state could not be made: {error}"]
    if any(item.get("size_bytes", 0) > _LARGE_BYTES for item in case.given):
        place.run([Call("Remove-BoxItem", Path=[folder], Recurse=True)])
    return Outcome(case, "failed" if lines else "passed", tuple(lines), seconds=time.monotonic() - started)


def skip_reason(case: Case, place: Place, fill: Callable[[Any], Any], scratch: str) -> str | None:
    """Why the case does not run here, or None."""
    deviation = case.platforms.get(place.platform, {})
    if deviation.get("skip"):
        return str(deviation["because"])
    if "administrator" in case.needs and not place.elevated:
        return "needs the rights of an administrator"
    if "machine" in case.needs and not place.simulated:
        return "describes the simulated machine"
    if "server" in case.needs and "url" not in place.values:
        return "needs an HTTP server of the tests"
    whole = [case.parameters, list(case.given), case.answer, list(case.then), case.output]
    missing = ({"culture", "url"} & places(whole)) - set(place.values)
    if missing:
        return f"needs to know {', '.join(sorted(missing))} of the box"
    if place.scratch_only:
        calls = [Call(case.command, **fill(dict(case.parameters)))]
        for item in [*case.given, *case.then]:
            if "call" in item:
                calls.append(Call(item["call"], **fill(dict(item.get("parameters", {})))))
        return next((reason for call in calls if (reason := forbidden(call, scratch))), None)
    return None


def _expected(case: Case) -> dict[str, Any]:
    expected: dict[str, Any] = {"output": case.output, "then": case.then}
    expected.update({"error": case.error} if case.error is not None else {"answer": case.answer})
    return expected


def _ask(case: Case, place: Place, fill: Callable[[Any], Any], expected: Mapping[str, Any]) -> list[str]:
    streams: dict[str, list[bytes]] = {"stdout": [], "stderr": []}

    def listen(frame: Frame) -> None:
        if frame.kind == "output":
            raw = frame.data.get("raw") is True
            streams[frame.data["stream"]].append(frame.payload if raw else str(frame.data["text"]).encode())

    call = Call(case.command, payload=case.sent, **fill(dict(case.parameters)))
    (answer,) = place.run([call], listen)
    lines = _answer(answer, fill(dict(expected)))
    if case.payload is not None and answer.payload != case.payload.encode():
        lines.append(f"payload: wanted {case.payload!r}, found {answer.payload[:60]!r}")
    for name, wanted in fill(dict(expected["output"])).items():
        text = b"".join(streams[name]).decode("utf-8", "replace").replace("\r\n", "\n").rstrip("\n")
        lines += differences(text.rstrip(), wanted, name)
    return lines


def _answer(answer: Answer, expected: Mapping[str, Any]) -> list[str]:
    if "error" in expected:
        if answer.ok:
            return [f"error: wanted {expected['error']}, found the answer {str(answer.value)[:120]}"]
        return differences(answer.error, expected["error"], "error")
    if not answer.ok:
        return [f"answer: found an error instead: {told(answer)}"]
    return differences(answer.value, expected["answer"], "answer")


def _states(place: Place, then: Sequence[Mapping[str, Any]]) -> list[str]:
    """The state after the call, asked in one request, and of files also looked at past the box's commands."""
    calls: list[Call] = []
    for item in then:
        if "call" in item:
            calls.append(Call(item["call"], **item.get("parameters", {})))
        elif "children" in item:
            calls.append(Call("Get-BoxChildItem", Path=item["path"]))
        else:
            calls.append(Call("Get-BoxFile", Path=[item["path"]], Hash=True, MaxContentBytes=_CONTENT_BYTES))
    if not calls:
        return []
    lines: list[str] = []
    # In one request; but what is true only after a while is waited for before the rest is looked at.
    waits = any(item.get("eventually") for item in then)
    answers = [None] * len(calls) if waits else [*place.run(calls)]
    for item, call, known in zip(then, calls, answers, strict=True):
        answer = known or place.run([call])[0]
        if "call" in item:
            lines += [f"then {item['call']}: {line}" for line in _eventually(place, call, answer, item)]
        elif not answer.ok:
            lines.append(f"then {item['path']}: {told(answer)}")
        elif "children" in item:
            names = sorted(one["Name"] for one in answer.value["Items"])
            lines += differences(names, sorted(item["children"]), f"then {item['path']}")
        else:
            lines += _file(place, item, answer.value[0])
    return lines


def _eventually(place: Place, call: Call, answer: Answer, item: Mapping[str, Any]) -> list[str]:
    lines = _answer(answer, item)
    deadline = time.monotonic() + _EVENTUALLY_S
    while lines and item.get("eventually") and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
        lines = _answer(place.run([call])[0], item)
    return lines


def _file(place: Place, item: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    where = f"then {item['path']}"
    lines = differences(found["Kind"], item.get("kind", "file"), f"{where}: kind")
    if "read_only" in item:
        lines += differences("ReadOnly" in found["Attributes"], item["read_only"], f"{where}: read-only")
    wanted = content_of(item) if {"text", "size_bytes"} & set(item) else None
    if wanted is not None:
        lines += differences(found["SizeBytes"], len(wanted), f"{where}: size")
        if len(wanted) <= _CONTENT_BYTES and found["ContentBase64"] is not None:
            lines += differences(base64.b64decode(found["ContentBase64"]), wanted, f"{where}: content")
    host = place.host(item["path"])
    if host is not None:
        there = host.is_symlink() or host.exists()
        lines += differences(there, item.get("kind", "file") != "absent", f"{where}: is on the disk")
        if wanted is not None and there:
            same = host.read_bytes() == wanted
            lines += [] if same else [f"{where}: the disk holds something else"]
    return lines
