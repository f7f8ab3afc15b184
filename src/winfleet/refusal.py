"""How one box stops without stopping the others.

pyinfra ends the whole run when an operation or deploy code raises (research: pyinfra.md section 3). These exceptions
and `box_operation` turn every fault of one box into a failure of that box alone, in plan and in execution.
"""

from __future__ import annotations

import functools
import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec

from pyinfra import host, logger, state
from pyinfra.api import FunctionCommand, operation
from pyinfra.api.output import format_text

P = ParamSpec("P")


class BoxError(Exception):
    """A fault of one box that its user has to know: what was found, what was wanted, how to mend it."""


class Refused(BoxError):
    """The declared state must not be applied to this box."""


class FactUnreadable(BoxError):
    """A fact could not be read; nothing may be decided from its absence."""


def fail_box(message: str) -> None:
    """Print message for the current box and take it out of this run; the exit code becomes 1.

    Not `state.fail_hosts`: that one ends the run when the last box fails, and asks on a terminal that may not be
    there (research: pyinfra.md section 1, strategy flags).
    """
    for line in message.splitlines():
        logger.error(f"{host.print_prefix}{format_text(line, 'red')}")
    state.failed_hosts.add(host._get_module() if hasattr(host, "_get_module") else host)
    state.active_hosts.discard(host._get_module() if hasattr(host, "_get_module") else host)


def failed() -> bool:
    """True when the current box has been taken out of this run."""
    return any(box.name == host.name for box in state.failed_hosts)


def _report(message: str) -> Any:
    def refuse(state: Any, host: Any) -> bool:
        for line in message.splitlines():
            logger.error(f"{host.print_prefix}{format_text(line, 'red')}")
        return False

    return FunctionCommand(refuse, (), {})


def box_operation(**options: Any) -> Callable[[Callable[P, Iterator[Any]]], Any]:
    """pyinfra's `@operation`, with faults of one box kept to that box.

    A BoxError (or any other exception) raised by the generator fails the box with its message: in the plan the box
    leaves the run, in execution the operation fails on it. On a box that has left the run nothing is done.

    Example::

        @box_operation(idempotent_notice=True)
        def present(path: str) -> Iterator[Call]:
            ...
    """

    def decorate(func: Callable[P, Iterator[Any]]) -> Any:
        @functools.wraps(func)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> Iterator[Any]:
            if failed():
                return
            try:
                yield from func(*args, **kwargs)
            except GeneratorExit:
                raise
            except BoxError as error:
                message = f"{func.__module__.rpartition('.')[2]}.{func.__name__}: {error}"
            except Exception as error:
                logging.getLogger("pyinfra").debug(traceback.format_exc())
                message = (
                    f"{func.__module__.rpartition('.')[2]}.{func.__name__}: unexpected {type(error).__name__}: {error}"
                    " (run with --debug for the traceback)"
                )
            else:
                return
            if state.is_executing:
                yield _report(message)
            else:
                fail_box(message)

        return operation(**options)(guarded)

    return decorate
