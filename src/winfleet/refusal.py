"""How one box stops without stopping the others.

pyinfra ends the whole run when an operation or deploy code raises (research: pyinfra.md section 3). These
exceptions, `box_operation` and `fails_alone` turn every fault of one box into a failure of that box alone, in
plan and in execution; the exit code of the run becomes 1 because pyinfra counts every box that ever failed.
"""

from __future__ import annotations

import functools
import logging
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec

from pyinfra import logger
from pyinfra.api import operation
from pyinfra.api.command import FunctionCommand
from pyinfra.api.output import format_text

from winfleet.current import box, run

P = ParamSpec("P")


class BoxError(Exception):
    """A fault of one box that its user has to know: what was found, what was wanted, how to mend it."""


class Refused(BoxError):
    """The declared state must not be applied to this box."""


class FactUnreadable(BoxError):
    """A fact could not be read; nothing may be decided from its absence."""


def _print_fault(message: str) -> None:
    prefix = box().print_prefix
    for line in message.splitlines():
        logger.error(f"{prefix}{format_text(line, 'red')}")


def fail_box(message: str) -> None:
    """Print message for the current box and take it out of this run; the exit code becomes 1.

    Not `state.fail_hosts`: that one ends the run when the last box fails, and without -y asks on a terminal
    that may not be there (research: pyinfra.md section 1, strategy flags).
    """
    _print_fault(message)
    state, host = run(), box()
    state.failed_hosts.add(host)
    state.active_hosts.discard(host)


def failed() -> bool:
    """True when the current box has been taken out of this run."""
    return box() in run().failed_hosts


def fault_message(what: str, error: Exception) -> str:
    """One message for the user: a BoxError as it is, anything else with its type and how to see more."""
    if isinstance(error, BoxError):
        return f"{what}: {error}"
    logging.getLogger("pyinfra").debug(traceback.format_exc())
    return f"{what}: unexpected {type(error).__name__}: {error} (run with --debug for the traceback)"


@contextmanager
def fails_alone(what: str) -> Iterator[None]:
    """Deploy code in this block that raises fails the current box and nothing else.

    Example::

        with fails_alone("preflight"):
            check(read(Gpu))
    """
    try:
        yield
    except Exception as error:
        fail_box(fault_message(what, error))


def _report(message: str) -> Any:
    def refuse(state: Any, host: Any) -> bool:
        # pyinfra passes state and host to a function with these parameter names, and takes False for a
        # failure.
        _print_fault(message)
        return False

    return FunctionCommand(refuse, (), {})


def box_operation(**options: Any) -> Callable[[Callable[P, Iterator[Any]]], Any]:
    """pyinfra's `@operation`, with faults of one box kept to that box.

    A BoxError (or any other exception) raised by the generator fails the box with its message: in the plan
    the box leaves the run, in execution the operation fails on it. On a box that has left the run nothing is
    done.

    Example::

        @box_operation()
        def present(path: str) -> Iterator[Call]:
            ...
    """

    def decorate(func: Callable[P, Iterator[Any]]) -> Any:
        @functools.wraps(func)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> Generator[Any, None, None]:
            if failed():
                return
            try:
                yield from func(*args, **kwargs)
            except Exception as error:
                message = fault_message(f"{func.__module__.rpartition('.')[2]}.{func.__name__}", error)
            else:
                return
            if run().is_executing:
                yield _report(message)
            else:
                fail_box(message)

        return operation(**options)(guarded)

    return decorate
