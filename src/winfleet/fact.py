"""Facts of a box: one box command each, answered as a model, or not answered at all.

Example::

    from winfleet.fact import read
    from winfleet.files.fact import Files

    state = read(Files, paths=[r"C:\\ninfer"])[r"C:\\ninfer"]

`read` raises FactUnreadable instead of returning an empty default: pyinfra goes on with a default after a
failed fact (docs/facts/pyinfra.md#failed-facts), and an operation would then act on something that nobody
observed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pyinfra.api.exceptions import ConnectError
from pyinfra.api.facts import FactBase

from winfleet.answer import BoxFault, Model, ModelError
from winfleet.call import Call
from winfleet.current import box
from winfleet.refusal import FactUnreadable

T = TypeVar("T")


@dataclass(frozen=True)
class Unreadable(Model):
    """What a fact gives instead of a model when the box could not answer. Attribute: fault."""

    fault: BoxFault

    def __bool__(self) -> bool:
        return False


class BoxFact(FactBase[T]):
    """Base of all facts. A subclass has `call` (a static method that builds the Call) and `parse` (value ->
    model)."""

    abstract = True
    call: Callable[..., Call]

    def __init_subclass__(cls, **keywords: Any) -> None:
        # pyinfra reads the name `command`, of the class and of an instance alike (its api/facts.py).
        super().__init_subclass__(**keywords)
        if "call" in vars(cls):
            cls.command = vars(cls)["call"]

    @staticmethod
    def parse(value: Any) -> Any:
        """The model of the JSON value. Raises ModelError."""
        raise NotImplementedError

    def process(self, output: list[str]) -> Any:
        """The model, or Unreadable; never raises, since pyinfra would end the whole run."""
        try:
            answer = json.loads("\n".join(output))
            if not answer["ok"]:
                return Unreadable(BoxFault.parse(answer.get("error")))
            return self.parse(answer["value"])
        except (ModelError, ValueError, KeyError, TypeError, AttributeError) as error:
            return Unreadable(BoxFault("BadAnswer", f"{type(error).__name__}: {error}"))

    @staticmethod
    def default() -> Any:
        """Given when there was no answer at all."""
        return Unreadable(BoxFault("Transport", "the box gave no answer"))


def read(fact: type[BoxFact[T]], **arguments: Any) -> T:
    """A fact of the current box. Raises FactUnreadable, with what the box said."""
    try:
        result = box().get_fact(fact, **arguments)
    except ConnectError as error:
        raise FactUnreadable(f"cannot read {fact.__name__}: {error}") from error
    if isinstance(result, Unreadable):
        raise FactUnreadable(f"cannot read {fact.__name__} ({_shown(arguments)}): {result.fault}")
    return result


def prefetch(calls: Iterable[Call]) -> None:
    """Ask the box for several facts in one request, so that the reads that follow send nothing.

    Nothing is raised and nothing happens on a connector that cannot do it: each read then asks by itself and
    reports its own trouble. Example: ``prefetch([Gpu.call(), Firewall.call()])``.
    """
    connector = box().connector
    send = getattr(connector, "prefetch", None)
    if send is None:
        return
    try:
        send(list(calls))
    except OSError as error:
        logging.getLogger("pyinfra").debug("prefetch failed: %s", error)


def forget() -> None:
    """Let the next reads ask the box again, also what an answer of the last two minutes tells: for a wait on a
    file that something else on the box writes."""
    drop = getattr(box().connector, "forget", None)
    if drop is not None:
        drop()


def _shown(arguments: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return text if len(text) <= 200 else text[:197] + "..."
