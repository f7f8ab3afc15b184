"""Detached jobs."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.job.model import JobState


class Job(BoxFact[JobState]):
    """How a job stands, with its log from log_offset_bytes."""

    @staticmethod
    def call(path: str, log_offset_bytes: int | None = None, log_max_bytes: int | None = None) -> Call:
        """The box command of this fact."""
        return Call(
            "Get-BoxJob", volatile=True, Path=path, LogOffsetBytes=log_offset_bytes, LogMaxBytes=log_max_bytes
        )

    parse = staticmethod(JobState.parse)
