"""Stopping the server of a box so that nothing starts it again before it may, and never for longer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyinfra.api import Host
from pyinfra.api.state import BaseStateCallback

from ninfer_fleet import preflight, reads
from ninfer_fleet.server import vram
from ninfer_fleet.server.observation import ours
from ninfer_fleet.settings import Settings
from winfleet.call import Call
from winfleet.current import box as current_box
from winfleet.current import run as current_run
from winfleet.fact import read
from winfleet.files.fact import Files
from winfleet.files.model import FileState
from winfleet.gpu.fact import Gpu
from winfleet.process.fact import Processes
from winfleet.refusal import BoxError
from winfleet.task import model as tasks
from winfleet.task.fact import Tasks
from winfleet.waiting import say, step, until

STOP_TIMEOUT_S = 30.0
DRAIN_TIMEOUT_S = 60.0
POLL_S = 0.5
STOP_TEXT = b"ninfer-fleet: being restarted\r\n"
_STOP_SHA256 = hashlib.sha256(STOP_TEXT).hexdigest()
# The box may be out of reach, which is why something failed in the first place.
_RELEASE_TIMEOUT_S = 60.0


def send(call: Call) -> Any:
    """Run a changing box command at once; its value. Raises BoxError."""
    done, output = current_box().run_shell_command(call, print_output=False, print_input=False)
    if not done:
        raise BoxError(f"{call.command}: {output.stderr or output.stdout}")
    return json.loads(output.stdout)["value"]


def stop(box: Settings) -> Iterator[Any]:
    """Flag first, so that neither the supervisor nor the watchdog starts it again; then the supervisor, then
    the server. A flag that is there already stays as it is: somebody may have written down why."""
    if not _flag(box).exists:
        yield Call(
            "Set-BoxFile",
            payload=STOP_TEXT,
            Path=box.layout.stop_flag,
            Sha256=_STOP_SHA256,
            Encoding="none",
        )
    yield Call("Stop-BoxTask", TaskPath=box.task.path)
    # Windows ends the task's first process only, and a server that was being started meanwhile has another
    # id.
    yield step("server to end", lambda: _await_gone(box))


@contextmanager
def held_down(box: Settings, until_ready: bool = False) -> Iterator[None]:
    """Around everything between the stop of the server and its next start, in the generator of an operation.

    When a command in it fails, a stop flag of ours is taken away again, so that the watchdog brings the server
    back; one that somebody else had set stays.

    Args:
        box: what is declared.
        until_ready: the next start is that of a later operation, so that one which fails before it counts, too.
    """
    state = current_run()
    if not state.is_executing:
        yield
        return
    failure = _Failure(box, current_box())
    state.add_callback_handler(failure)  # type: ignore[no-untyped-call]
    yield
    # Not reached when a command fails: pyinfra then closes the operation's generator and calls the handler.
    if not until_ready:
        state.callback_handlers.remove(failure)


class _Failure(BaseStateCallback):
    """Lets the server of one box start again when an operation has failed on it."""

    def __init__(self, box: Settings, host: Host) -> None:
        self._box = box
        self._host = host

    def operation_host_error(self, state: Any, host: Any, *_: Any, **__: Any) -> None:  # type: ignore[override]
        """pyinfra's hook, called in the greenlet of that host."""
        if host is self._host:
            _let_start(self._box)


def _flag(box: Settings) -> FileState:
    path = box.layout.stop_flag
    return read(Files, paths=[path], max_content_bytes=len(STOP_TEXT))[path]


def _let_start(box: Settings) -> None:
    flag = box.layout.stop_flag
    try:
        if _flag(box).content != STOP_TEXT:
            return
        send(Call("Remove-BoxItem", timeout_s=_RELEASE_TIMEOUT_S, Path=[flag]))
    except Exception as error:
        say(
            f"{flag} may be left: while it is there ninfer-serve stays down. Delete it, or run again ({error})"
        )
        return
    say(f"{flag} is gone again: the task starts ninfer-serve within {box.task.watchdog_minutes} min")


def _await_gone(box: Settings) -> None:
    def gone() -> bool | None:
        left = ours(box, read(Processes, names=[reads.PROGRAM]))
        for process in left:
            send(
                Call(
                    "Stop-BoxProcess",
                    ProcessId=process.process_id,
                    CreationTimeUtc=process.creation_time_utc,
                )
            )
        if left:
            # The look is about what is there now, not about what was there before this stopped it.
            left = ours(box, read(Processes, names=[reads.PROGRAM]))
        running = read(Tasks, paths=[box.task.path])[tasks.task_path(box.task.path)].running
        return True if not left and not running else None

    if until(gone, STOP_TIMEOUT_S, POLL_S) is None:
        raise BoxError(
            f"ninfer-serve or its supervisor still runs {STOP_TIMEOUT_S:.0f} s after it was stopped. Remedy: "
            "end it on the box, then run again"
        )


def await_memory(box: Settings) -> None:
    """Starting before the driver has taken back the old server's memory hangs the new one or gives it a tiny
    pool. Raises BoxError."""
    needed = vram.plan(preflight.memory_load(box), 0, box.gpu.memory_mib * vram.MIB).needed_to_start_bytes

    def enough() -> bool | None:
        free = preflight.card_of(box, read(Gpu))
        if free is None or free.memory_free_mib is None:
            return True
        return True if free.memory_free_mib * vram.MIB >= needed else None

    if until(enough, DRAIN_TIMEOUT_S, POLL_S) is None:
        raise BoxError(
            f"less than {needed / vram.GIB:.1f} GiB of video memory are free {DRAIN_TIMEOUT_S:.0f} "
            "s after the server ended; this run did not start it. Remedy: see what holds it (nvidia-smi), then "
            "run again"
        )
