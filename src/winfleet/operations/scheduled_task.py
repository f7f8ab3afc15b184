"""Scheduled tasks, compared by meaning and changed in place.

Example::

    scheduled_task.present(tasks=[Task(r"\\NInferServe", actions=(Exec(r"C:\\ninfer\\serve_task.bat"),), ...)])
    scheduled_task.running(path=r"\\NInferServe")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from winfleet.models.task import Task
from winfleet.refusal import box_operation


@box_operation()
def present(tasks: Sequence[Task]) -> Iterator[Any]:
    """Tasks that must be registered, each with at least the declared fields exactly so."""
    raise NotImplementedError
    yield


@box_operation()
def absent(paths: Sequence[str]) -> Iterator[Any]:
    """Tasks that must not be registered."""
    raise NotImplementedError
    yield


@box_operation()
def running(path: str, timeout_s: float = 60.0) -> Iterator[Any]:
    """A task of which an instance must run; started when none does, then waited for."""
    raise NotImplementedError
    yield


@box_operation()
def stopped(path: str, disable: bool = False, timeout_s: float = 60.0) -> Iterator[Any]:
    """A task of which no instance may run; with disable it is disabled first, or its triggers would revive it."""
    raise NotImplementedError
    yield


@box_operation()
def enabled(paths: Sequence[str]) -> Iterator[Any]:
    """Tasks that must be enabled."""
    raise NotImplementedError
    yield


@box_operation()
def disabled(paths: Sequence[str]) -> Iterator[Any]:
    """Tasks that must be disabled; a running instance goes on."""
    raise NotImplementedError
    yield
