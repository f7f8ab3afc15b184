"""Detached jobs: long work that a lost connection does not stop."""

from winfleet.job.fact import Job
from winfleet.job.model import Download, Environment, JobState, Run, Verify
from winfleet.job.operations import run, stopped

__all__ = ["Download", "Environment", "Job", "JobState", "Run", "Verify", "run", "stopped"]
