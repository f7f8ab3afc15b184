"""Detached jobs: long work that outlives the connection, followed with progress.

Example::

    job.run(path="C:\\ninfer\\jobs\\build", steps=[Environment(...), Run(...)], owner=OWNER, title="build of NInfer")
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from winfleet import diff
from winfleet.answer import Difference
from winfleet.call import Call
from winfleet.current import box
from winfleet.fact import read
from winfleet.job.fact import Job
from winfleet.job.model import Download, JobState, Run, Step, Verify, check_steps, job_hash
from winfleet.operation import box_operation
from winfleet.owner import Owner
from winfleet.path import absolute_path
from winfleet.refusal import BoxError, FactUnreadable, Refused
from winfleet.waiting import say, step, until

_LOG_BYTES = 64 * 1024
_TAIL_LINES = 20
_SHOWN_COLUMNS = 160
# Looks that may fail in a row before following ends: the connection may have to be built anew.
_TOLERATED_FAULTS = 5


@box_operation()
def run(
    path: str,
    steps: Sequence[Step],
    owner: Owner,
    title: str = "",
    needed: bool = True,
    timeout_s: float = 6 * 3600.0,
    poll_s: float = 2.0,
    report_s: float = 15.0,
    remedy: str = "",
) -> Iterator[Any]:
    """A job that must have ended with code 0.

    One that already runs with the same steps is attached to, not started again; one that ended well is left
    alone. Another job running in the same folder is refused.

    Args:
        path: full path of the job's folder; its last part names the job.
        steps: what it does; their hash is the job's identity.
        owner: whose job it is; its on-demand task lies in the owner's folder of tasks.
        title: what the job is for, in a few words.
        needed: False: the result is already there, nothing is started.
        timeout_s: longest time to follow it; the job itself is not stopped then.
        poll_s: seconds between two looks.
        report_s: seconds between two progress lines while the step stays the same.
        remedy: what the user can do when it fails.
    """
    faults = check_steps(steps) + ([] if absolute_path(path) else [f"{path!r} is no full path"])
    if faults:
        raise Refused("; ".join(faults))
    name = path.replace("/", "\\").rstrip("\\").rpartition("\\")[2]
    what = title or name
    if not needed:
        box().noop(f"{what}: not needed")
        return
    wanted = job_hash(steps)
    found = read(Job, path=path, log_max_bytes=0)
    if found.succeeded(wanted):
        box().noop(f"{what}: done")
        return
    attach = found.state == "running" and found.hash == wanted
    if found.state == "running" and not attach:
        raise Refused(
            f"{what}: another job runs in {path} (step {found.step}, since {found.started_utc});"
            " wait for it, or stop it with job.stopped"
        )
    diff.show(
        f"Will {'follow the running job' if attach else 'run job'} {diff.bold(what)}",
        diff.field_lines(_described(found, wanted, steps)),
        f"{len(steps)} steps",
    )
    if not attach:
        yield Call(
            "Start-BoxJob",
            Path=path,
            Hash=wanted,
            Steps=[one.step() for one in steps],
            TaskPath=owner.job_task(name),
        )
    follower = _Follower(path, what, wanted, [one.name for one in steps], remedy)
    yield step(f"follow {name}", lambda: follower.follow(timeout_s, poll_s, report_s))


def _described(found: JobState, wanted: str, steps: Sequence[Step]) -> list[Difference]:
    state = None
    if found.state != "absent":
        code = f", exit code {found.exit_code}" if found.exit_code is not None else ""
        state = f"{found.state}{code}{'' if found.hash == wanted else ', other steps'}"
    result = [Difference("state", state, "done, exit code 0")]
    if found.hash != wanted:
        result += [Difference(f"step {one.name}", None, _step_text(one)) for one in steps]
    return result


def _step_text(one: Step) -> str:
    if isinstance(one, Run | Download):
        return " ".join([one.program, *one.arguments])
    if isinstance(one, Verify):
        return f"verify {one.path} (sha256 {one.sha256}) as {one.destination}"
    return f"environment of {' '.join([one.batch, *one.arguments])}"


@dataclass
class _Follower:
    """Looks at one job until it ends."""

    path: str
    what: str
    wanted: str
    step_names: list[str]
    remedy: str
    offset: int = 0
    shown_step: str | None = None
    shown_at: float = 0.0
    last_line: str = ""
    faults: int = 0

    def follow(self, timeout_s: float, poll_s: float, report_s: float) -> None:
        """Return when the job ended with code 0. Raises BoxError with the end of its log otherwise."""
        started = time.monotonic()
        self.shown_at = started
        done = until(lambda: self._look(started, report_s), timeout_s, poll_s)
        if done is None:
            raise BoxError(
                f"{self.what}: still at step {self.shown_step} after {timeout_s:.0f} s; it goes on on"
                " the box, run again to follow it"
            )
        if done.hash != self.wanted:
            raise BoxError(
                f"{self.what}: the job in {self.path} was replaced by another one meanwhile; run again"
            )
        if done.succeeded(self.wanted):
            say(f"{self.what}: done after {elapsed(time.monotonic() - started)}")
            return
        raise BoxError(self._failure(done))

    def _look(self, started: float, report_s: float) -> JobState | None:
        try:
            state = read(Job, path=self.path, log_offset_bytes=self.offset, log_max_bytes=_LOG_BYTES)
        except FactUnreadable:
            self.faults += 1
            if self.faults >= _TOLERATED_FAULTS:
                raise
            return None
        self.faults = 0
        self.offset = state.log_next_offset_bytes
        lines = [line.rstrip() for line in state.log.splitlines() if line.strip()]
        self.last_line = lines[-1] if lines else self.last_line
        now = time.monotonic()
        if state.state == "running" and (state.step != self.shown_step or now - self.shown_at >= report_s):
            self.shown_step, self.shown_at = state.step, now
            say(self._progress(state, now - started))
        return None if state.state == "running" else state

    def _progress(self, state: JobState, passed_s: float) -> str:
        step_name = state.step or "starting"
        number = self.step_names.index(step_name) + 1 if step_name in self.step_names else 0
        place = f"{number}/{len(self.step_names)} {step_name}" if number else step_name
        last = f": {self.last_line[:_SHOWN_COLUMNS]}" if self.last_line else ""
        return f"{self.what} [{place}, {elapsed(passed_s)}]{last}"

    def _failure(self, state: JobState) -> str:
        if state.state == "done":
            headline = f"{self.what}: step {state.step or '?'} ended with code {state.exit_code}"
        elif state.state == "lost":
            headline = (
                f"{self.what}: lost in step {state.step or '?'}: its process is gone and left no exit code"
                " (killed, or the box restarted)"
            )
        else:
            headline = f"{self.what}: the job folder {self.path} is gone"
        tail_from = max(state.log_size_bytes - 8192, 0)
        log = ""
        if state.state != "absent":
            log = read(Job, path=self.path, log_offset_bytes=tail_from, log_max_bytes=8192).log
        tail = [line.rstrip() for line in log.splitlines() if line.strip()][-_TAIL_LINES:]
        lines = [headline, *(f"  | {line[:_SHOWN_COLUMNS]}" for line in tail)]
        lines.append(f"whole log: {self.path}\\stdout.log on the box")
        if self.remedy:
            lines.append(self.remedy)
        return "\n".join(lines)


def elapsed(passed_s: float) -> str:
    """Seconds for people: "42 s", "3 min 5 s", "1 h 2 min"."""
    whole = int(passed_s)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@box_operation()
def stopped(path: str) -> Iterator[Any]:
    """A job that must not run."""
    found = read(Job, path=path, log_max_bytes=0)
    if found.state != "running":
        box().noop(f"no job runs in {path}")
        return
    diff.show(f"Will stop the job in {diff.bold(path)}", [f"at step {found.step}"])
    yield Call("Stop-BoxJob", Path=path)
