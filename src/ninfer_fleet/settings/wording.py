"""Refused values in the words of this tool: what was found, what was wanted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

SECRET = frozenset({"api_key", "password"})
LONGEST_SHOWN = 80
_USER_OF_URL = re.compile(r"//.*@", re.DOTALL)

_WANTED: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda ctx: "a value: it must be declared",
    "bool": lambda ctx: "true or false",
    "int": lambda ctx: "a whole number",
    "float": lambda ctx: "a number",
    "finite_number": lambda ctx: "a number",
    "string_type": lambda ctx: "text (in quotes where it looks like something else)",
    "string_unicode": lambda ctx: "text",
    "literal_error": lambda ctx: str(ctx["expected"]),
    "greater_than": lambda ctx: f"more than {ctx['gt']}",
    "greater_than_equal": lambda ctx: f"at least {ctx['ge']}",
    "less_than": lambda ctx: f"less than {ctx['lt']}",
    "less_than_equal": lambda ctx: f"at most {ctx['le']}",
    "string_pattern_mismatch": lambda ctx: f"text that matches {ctx['pattern']}",
    "string_too_short": lambda ctx: f"at least {ctx['min_length']} characters",
    "string_too_long": lambda ctx: f"at most {ctx['max_length']} characters",
    "too_short": lambda ctx: f"at least {ctx['min_length']} entries",
    "too_long": lambda ctx: f"at most {ctx['max_length']} entries",
    "tuple_type": lambda ctx: "a list",
    "list_type": lambda ctx: "a list",
    "model_type": lambda ctx: "settings of the form `name: value`",
    "model_attributes_type": lambda ctx: "settings of the form `name: value`",
    "dict_type": lambda ctx: "settings of the form `name: value`",
}


def shown(value: object, name: str = "") -> str:
    """A found value as messages show it; that of a secret, and what looks like a login in a URL, is not shown."""
    if name in SECRET:
        return "a value that is not shown"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple | set):
        return "a list"
    text = _USER_OF_URL.sub("//***@", repr(value))
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


def wanted(detail: ErrorDetails) -> str:
    """What should stand there instead."""
    kind = detail["type"]
    words = _WANTED.get(kind) or _WANTED.get(kind.partition("_")[0])
    return words(detail.get("ctx", {})) if words else "another kind of value"
