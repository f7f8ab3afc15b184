"""Detached jobs: long work that outlives the connection, followed with progress.

Example::

    jobs.run(path=r"C:\\ninfer\\jobs\\build", steps=[Environment(...), Run(...)], title="build of NInfer")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from winfleet.models.job import Step
from winfleet.refusal import box_operation


@box_operation()
def run(
    path: str,
    steps: Sequence[Step],
    title: str = "",
    needed: bool = True,
    timeout_s: float = 6 * 3600.0,
    poll_s: float = 2.0,
    report_s: float = 15.0,
    remedy: str = "",
) -> Iterator[Any]:
    """A job that must have ended with code 0.

    Args:
        path: full path of the job's folder; its last part names the job.
        steps: what it does; their hash is the job's identity.
        title: what the job is for, in a few words.
        needed: False: the result is already there, nothing is started.
        timeout_s: longest time to follow it; the job itself is not stopped.
        poll_s: seconds between two looks.
        report_s: seconds between two progress lines while nothing but time passes.
        remedy: what the user can do when it fails.
    """
    raise NotImplementedError
    yield
