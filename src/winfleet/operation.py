"""pyinfra's `@operation`, with faults of one box kept to that box."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, ParamSpec

from pyinfra.api import operation
from pyinfra.api.command import FunctionCommand

from winfleet.current import run
from winfleet.refusal import fail_box, failed, fault_message, print_fault

P = ParamSpec("P")
SHOWN_CHARACTERS = 60
"""Longest subject in a name that was made up: a heading has to fit an 80-column screen."""


def operation_name(func: Callable[..., Any]) -> str:
    """``task.present`` for the function of that name in winfleet.task.operations; in a module that is not called
    operations, its own name stands before the dot."""
    packages = func.__module__.split(".")
    noun = packages[-2] if packages[-1] == "operations" and len(packages) > 1 else packages[-1]
    return f"{noun}.{func.__name__}"


def _subject(value: Any) -> str | None:
    """What an operation is about, from its first argument: a text, or what has a path or a name, or a list."""
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and not isinstance(value, bytes) and value:
        first = _subject(value[0])
        more = f" and {len(value) - 1} more" if len(value) > 1 else ""
        return first if first is None else first + more
    named = getattr(value, "path", None) or getattr(value, "name", None)
    return named if isinstance(named, str) else None


def _made_up_name(func: Callable[..., Any], arguments: Iterable[Any]) -> str:
    subject = _subject(next(iter(arguments), None))
    if subject is None:
        return operation_name(func)
    shown = subject if len(subject) <= SHOWN_CHARACTERS else subject[: SHOWN_CHARACTERS - 3] + "..."
    return f"{operation_name(func)} {shown}"


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
    done. Without ``name`` the operation is called after itself and its first argument
    (``files.directories C:\\ninfer and 2 more``), where pyinfra would print every argument whole.

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
                message = fault_message(operation_name(func), error)
            else:
                return
            if run().is_executing:
                yield _report(message)
            else:
                fail_box(message)

        decorated: Callable[..., Any] = operation(**options)(guarded)

        @functools.wraps(decorated)
        def named(*args: P.args, **kwargs: P.kwargs) -> Any:
            keywords: dict[str, Any] = dict(kwargs)
            if not keywords.get("name"):
                given = [*args, *(value for key, value in keywords.items() if key in parameters)]
                keywords["name"] = _made_up_name(func, given)
            return decorated(*args, **keywords)

        parameters = inspect.signature(func).parameters
        return named

    return decorate
