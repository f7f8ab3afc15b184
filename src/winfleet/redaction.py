"""Keeps known secrets out of every line that this program prints or logs.

pyinfra has no central redaction: output of commands, tracebacks and some headings are printed as they are
(docs/facts/pyinfra.md#secrets-in-output). A secret that passes through `secret_reference.resolve`, a Call or the
connector is made known here; `install` then puts a filter in front of pyinfra's logger and of its echo
function.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import traceback
from collections.abc import Callable
from typing import Any

import click
from pyinfra.api import output
from pyinfra.api.hiddenvalue import HiddenValue

MASK = "*MASKED*"
SHORTEST_SECRET_CHARACTERS = 4
"""Shorter texts are not redacted: replacing every "1" would make the output useless and hide nothing."""

_lock = threading.Lock()
_known: set[str] = set()
_pattern: re.Pattern[str] | None = None


def _spellings(secret: str) -> set[str]:
    """The ways in which a secret can show up: as it is, in JSON, in a PowerShell string, line by line."""
    texts = {secret, secret.strip(), *secret.splitlines()}
    texts |= {json.dumps(text)[1:-1] for text in texts} | {
        json.dumps(text, ensure_ascii=False)[1:-1] for text in texts
    }
    texts |= {text.replace("'", "''") for text in set(texts)}
    return {text for text in texts if len(text) >= SHORTEST_SECRET_CHARACTERS}


def register(secret: str | HiddenValue | None) -> None:
    """Make a secret known; from now on `redact` replaces it. None and short texts are ignored."""
    global _pattern
    text = secret.unmask() if isinstance(secret, HiddenValue) else secret
    if not text or text == MASK:
        return
    with _lock:
        fresh = _spellings(str(text)) - _known
        if fresh:
            _known.update(fresh)
            # Longest first, else a secret that contains another one would be left half visible.
            longest_first = sorted(_known, key=len, reverse=True)
            _pattern = re.compile("|".join(re.escape(known) for known in longest_first))


def register_hidden(value: Any) -> None:
    """Make every HiddenValue inside a JSON-like value known."""
    if isinstance(value, HiddenValue):
        register(value)
    elif isinstance(value, dict):
        for item in value.values():
            register_hidden(item)
    elif isinstance(value, list | tuple):
        for item in value:
            register_hidden(item)


def redact(text: str) -> str:
    """The text with every known secret replaced by ``*MASKED*``."""
    pattern = _pattern
    return pattern.sub(MASK, text) if pattern is not None else text


class RedactingFilter(logging.Filter):
    """Rewrites log records so that no handler, file or formatter sees a known secret."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact message, arguments and traceback of the record; always lets it through."""
        message = record.getMessage()
        clean = redact(message)
        if clean != message:
            record.msg, record.args = clean, ()
        if record.exc_info and record.exc_info[0] is not None:
            # Formatters use exc_text when it is there and do not format the exception again.
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
        return True


_filter = RedactingFilter()


class _Redacting:
    """An echo function behind which nothing secret passes."""

    def __init__(self, echo: Callable[..., None]) -> None:
        self.echo = echo

    def __call__(self, message: Any = None, *args: Any, **kwargs: Any) -> None:
        self.echo(redact(message) if isinstance(message, str) else message, *args, **kwargs)


def install() -> None:
    """Put redaction in front of pyinfra's logger and echo, and of click's. Harmless when repeated.

    The command line sets its echo function when it starts, so this is called when a connector is made, after
    that. It prints ``--json`` and ``debug-inventory`` by click directly, which is why click's is covered too.
    """
    logger = logging.getLogger("pyinfra")
    if _filter not in logger.filters:
        logger.addFilter(_filter)
    if not isinstance(output._echo, _Redacting):
        output.set_echo(_Redacting(output._echo))
    if not isinstance(click.echo, _Redacting):
        click.echo = _Redacting(click.echo)
