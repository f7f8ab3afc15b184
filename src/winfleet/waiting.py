"""Waiting for a box within an operation: looks at intervals, other boxes go on meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import gevent
from pyinfra import logger
from pyinfra.api.command import FunctionCommand
from pyinfra.api.output import format_text

from winfleet.current import box
from winfleet.refusal import BoxError, fault_message

T = TypeVar("T")


def until(look: Callable[[], T | None], timeout_s: float, poll_s: float) -> T | None:
    """The first answer of look that is not None; None when timeout_s seconds passed without one.

    The last look begins after that time: one that began before it may have taken minutes (a lost reply), and
    tells nothing of what has come about meanwhile.
    """
    end = time.monotonic() + timeout_s
    while True:
        last = time.monotonic() >= end
        found = look()
        if found is not None:
            return found
        if last:
            return None
        gevent.sleep(min(poll_s, max(end - time.monotonic(), 0.0)))


def step(what: str, work: Callable[[], None]) -> FunctionCommand:
    """work as a command of an operation: a BoxError or any other exception in it fails this operation on this
    box only, with its message.
    """

    def execute(state: Any, host: Any) -> bool:
        # pyinfra passes state and host to a function with these parameter names, and takes False for a
        # failure.
        try:
            work()
        except Exception as error:
            message = str(error) if isinstance(error, BoxError) else fault_message(what, error)
            for line in message.splitlines():
                logger.error(f"{host.print_prefix}{format_text(line, 'red')}")
            return False
        return True

    execute.__name__ = what.replace(" ", "_")
    return FunctionCommand(execute, (), {})


def say(text: str) -> None:
    """One line of progress of the current box."""
    logger.info(f"{box().print_prefix}{text}")
