"""Waiting until the server that was just started answers as declared and generates, or saying why not."""

from __future__ import annotations

import json

from ninfer_fleet.server.observation import Look, look, probe_address
from ninfer_fleet.server.stopping import POLL_S, send
from ninfer_fleet.settings import Settings
from winfleet.call import Call
from winfleet.fact import forget, read
from winfleet.files.fact import ChildItems, Files
from winfleet.files.operations import SHOWN_BYTES
from winfleet.process.model import Process
from winfleet.refusal import BoxError
from winfleet.task.examination import examine
from winfleet.task.model import Task
from winfleet.waiting import say, until
from winfleet.web.model import HttpAnswer

# A server that ends that often right after its start will not get better by waiting.
HOPELESS_EXITS = 3
# The first request after a start also waits behind those that clients had held back.
GENERATION_TIMEOUT_S = 60
# What passes by itself: no answer yet, too many requests, the queue was full.
_PASSING = frozenset({None, 408, 429, 503})


def await_ready(box: Settings, task: Task, before: list[Process], exits_before: int) -> None:
    """Return when another process than those before answers as declared and, unless switched off, generates.

    Raises BoxError with what was wrong to the end, what is odd about the task, and the end of the logs.
    """
    last: list[str] = []

    def answers() -> Look | None:
        nonlocal last
        now = look(box)
        last = now.faults(just_started=True)
        if any(process.same_as(old) for process in now.processes for old in before):
            last = ["the old process is still there"]
        if not last:
            return now
        ended = 0 if now.processes else exits(box) - exits_before
        if ended >= HOPELESS_EXITS:
            raise BoxError(_not_ready(box, task, f"it ended {ended} times"))
        return None

    found = until(answers, float(box.task.ready_timeout_s), POLL_S)
    if found is None:
        reason = f"{'; '.join(last)} {box.task.ready_timeout_s} s after its start"
        raise BoxError(_not_ready(box, task, reason))
    if box.task.prove_generation:
        _await_generation(box, task, exits(box))
    say(f"ninfer-serve answers as declared (process {found.processes[0].process_id})")


def _await_generation(box: Settings, task: Task, exits_before: int) -> None:
    """The last proof: one token. A server that lists its model may still have an engine that fails each
    request, or that dies of the first one."""
    last = ""

    def generates() -> bool | None:
        nonlocal last
        answer = _one_token(box)
        fault = generation_fault(answer)
        if fault is None:
            return True
        last = fault
        if exits(box) > exits_before:
            raise BoxError(_not_ready(box, task, f"it ended when it was asked for one token ({fault})"))
        if answer.status not in _PASSING:
            raise BoxError(_not_ready(box, task, fault))
        return None

    if until(generates, float(box.task.ready_timeout_s), 2.0) is None:
        raise BoxError(_not_ready(box, task, f"{last} for {box.task.ready_timeout_s} s"))


def _one_token(box: Settings) -> HttpAnswer:
    body = {
        "model": box.served_model_id,
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 1,
        "stream": False,
    }
    call = Call(
        "Invoke-BoxHttp",
        timeout_s=GENERATION_TIMEOUT_S + 60,
        Url=f"http://{probe_address(box)}:{box.serve.port}/v1/chat/completions",
        TimeoutSeconds=GENERATION_TIMEOUT_S,
        BearerFile=box.layout.key_file if box.serve.api_key is not None else None,
        Body=json.dumps(body),
    )
    return HttpAnswer.parse(send(call))


def generation_fault(answer: HttpAnswer) -> str | None:
    """Why this is no answer to a request for one token; None: it is one."""
    if answer.status != 200:
        return f"/v1/chat/completions: {answer} instead of 200"
    try:
        first = answer.json()["choices"][0]
        generated = first["finish_reason"] is not None and "message" in first
    except (ValueError, KeyError, TypeError, IndexError):
        generated = False
    return None if generated else "/v1/chat/completions answers no completion"


def _not_ready(box: Settings, task: Task, reason: str) -> str:
    odd = [f"  the task {task.path}: {finding}" for finding in _findings(task)]
    lines = [f"  | {line}" for line in _log_end(box)]
    remedy = f"Remedy: read the logs in {box.layout.logs} on the box, exits.log first"
    return "\n".join([f"ninfer-serve is not ready: {reason}", *odd, *lines, remedy])


def _findings(task: Task) -> list[str]:
    """What is odd about the live task; nothing when that cannot be found out, for it is only a hint."""
    try:
        return examine([task])[task.path]
    except BoxError as error:
        return [f"could not be examined: {error}"]


def exits(box: Settings) -> int:
    """How often the server ended, as the supervisor wrote it down."""
    path = f"{box.layout.logs}\\exits.log"
    forget()
    content = read(Files, paths=[path], max_content_bytes=SHOWN_BYTES)[path].content or b""
    return sum(line.startswith(b"code=") for line in content.splitlines())


def _log_end(box: Settings) -> list[str]:
    """The last lines of exits.log and of the newest log of a start."""
    listing = read(ChildItems, path=box.layout.logs)
    starts = [item for item in listing.items if item.name.startswith("serve-")]
    newest = max(starts, key=lambda item: item.last_write_time_utc or "", default=None)
    paths = [f"{box.layout.logs}\\exits.log", *([f"{box.layout.logs}\\{newest.name}"] if newest else [])]
    states = read(Files, paths=paths, max_content_bytes=SHOWN_BYTES)
    lines: list[str] = []
    for path in paths:
        # Written in the console's code page, which may be any.
        text = (states[path].content or b"").decode("ascii", "replace")
        lines += [f"{path.rpartition(chr(92))[2]}: {line}" for line in text.splitlines()[-6:]]
    return lines
