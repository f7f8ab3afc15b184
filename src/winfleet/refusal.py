"""How one box stops without stopping the others.

pyinfra ends the whole run when an operation or deploy code raises
(docs/facts/pyinfra.md#exceptions-in-operations). These exceptions and `winfleet.operation` turn every fault of
one box into a failure of that box alone, in
plan and in execution; the exit code of the run becomes 1 because pyinfra counts every box that ever failed.
"""

from __future__ import annotations

import logging
import traceback

from pyinfra import logger
from pyinfra.api.output import format_text

from winfleet.current import box, run


class BoxError(Exception):
    """A fault of one box that its user has to know: what was found, what was wanted, the remedy."""


class Refused(BoxError):
    """The declared state must not be applied to this box."""


class FactUnreadable(BoxError):
    """A fact could not be read; nothing may be decided from its absence."""


def print_fault(message: str) -> None:
    """Print message in red, each line with the name of the current box."""
    prefix = box().print_prefix
    for line in message.splitlines():
        logger.error(f"{prefix}{format_text(line, 'red')}")


def fail_box(message: str) -> None:
    """Print message for the current box and take it out of this run; the exit code becomes 1.

    Not `state.fail_hosts`: that one ends the run when the last box fails, and without -y asks on a terminal
    that may not be there (docs/facts/pyinfra.md#exceptions-in-operations).
    """
    print_fault(message)
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
