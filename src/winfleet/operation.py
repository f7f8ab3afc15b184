"""pyinfra's `@operation`, with faults of one box kept to that box."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator
from typing import Any, ParamSpec

from pyinfra.api import operation
from pyinfra.api.command import FunctionCommand

from winfleet.current import run
from winfleet.refusal import fail_box, failed, fault_message, print_fault

P = ParamSpec("P")


def _report(message: str) -> Any:
    def refuse(state: Any, host: Any) -> bool:
        # pyinfra passes state and host to a function with these parameter names, and takes False for a
        # failure.
        print_fault(message)
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
