"""The percent phase, delayed expansion and FOR variables: text in, text out.

The rules are those that the cmd.exe documentation (``set /?``, ``call /?``, ``for /?``) gives, in the order
cmd.exe applies them; percent signs are seen before quotes and carets, so quoting does not protect them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from simbox.cmd.variables import MODIFIERS, Lookups, Parameters, modify

Lookup = Callable[[str], str | None]
_SUBSTRING = re.compile(r"~(-?\d*)(?:,(-?\d*))?")


def _edited(value: str, operation: str) -> str | None:
    """A variable's value after ``~n,m`` or ``search=replacement``; None when the operation makes no sense."""
    match = _SUBSTRING.fullmatch(operation)
    if match:
        length = len(value)
        start = int(match[1]) if match[1] not in ("", "-") else 0
        start = max(0, length + start) if start < 0 else min(start, length)
        if match[2] is None:
            return value[start:]
        count = int(match[2]) if match[2] not in ("", "-") else 0
        end = length + count if count < 0 else start + count
        return value[start : max(start, end)]
    search, equals, replacement = operation.partition("=")
    if not equals or not search or search == "*":
        return None
    if search.startswith("*"):
        at = value.lower().find(search[1:].lower())
        return value if at < 0 else replacement + value[at + len(search) - 1 :]
    return re.sub(re.escape(search), lambda _: replacement, value, flags=re.IGNORECASE)


def _parameter(text: str, at: int, parameters: Parameters, lookups: Lookups) -> tuple[str, int] | None:
    """The value of %0..%9, %* or %~...n that begins after the percent sign at `at`, and where it ends."""
    here = text[at : at + 1]
    if here == "*":
        return parameters.tail, at + 1
    if here.isascii() and here.isdigit():
        return parameters.get(int(here)), at + 1
    if here != "~":
        return None
    end = at + 1
    while end < len(text) and text[end].lower() in MODIFIERS:
        end += 1
    modifiers, search = text[at + 1 : end].lower(), None
    if text[end : end + 1] == "$":
        colon = text.find(":", end)
        if colon < 0:
            return None
        search, end = text[end + 1 : colon], colon + 1
    digit = text[end : end + 1]
    if not (digit.isascii() and digit.isdigit()):
        return None
    own = parameters.path if digit == "0" and (parameters.name.startswith(":") or modifiers) else None
    return modify(parameters.get(int(digit)), modifiers, search, lookups, own), end + 1


def expand_percent(text: str, variable: Lookup, parameters: Parameters | None, lookups: Lookups) -> str:
    """Replace percent expressions.

    Args:
        text: one physical line; variable: the value of a name or None;
        parameters: those of the batch file; None on a command line, where unknown names and lone percents
        stay.
    """
    out: list[str] = []
    at = 0
    while at < len(text):
        percent = text.find("%", at)
        if percent < 0:
            break
        out.append(text[at:percent])
        at = percent + 1
        if parameters is not None:
            if text[at : at + 1] == "%":
                out.append("%")
                at += 1
                continue
            found = _parameter(text, at, parameters, lookups)
            if found is not None:
                out.append(found[0])
                at = found[1]
                continue
        replaced, at = _variable(text, at, "%", variable, keep_unknown=parameters is None)
        out.append(replaced)
    out.append(text[at:])
    return "".join(out)


def _variable(text: str, at: int, mark: str, variable: Lookup, keep_unknown: bool) -> tuple[str, int]:
    """The value of the variable whose name begins at `at`, after its mark, and where to go on."""
    end = at
    while end < len(text) and text[end] not in (mark, ":"):
        end += 1
    if text[end : end + 2] == ":" + mark:
        end += 1
    name = text[at:end]
    lone = mark if keep_unknown else ""
    if end >= len(text):
        return lone, at
    value = variable(name) if name else None
    if text[end] == mark:
        if value is not None:
            return value, end + 1
        return (text[at - 1 : end + 1] if keep_unknown else ""), end + 1
    close = text.find(mark, end + 1)
    if value is None:
        if keep_unknown:
            return lone, at
        return "", end + 1
    if close < 0:
        return lone, at
    edited = _edited(value, text[end + 1 : close])
    if edited is None:
        return lone, at
    return edited, close + 1


def expand_delayed(text: str, variable: Lookup) -> str:
    """Replace !name! (SETLOCAL EnableDelayedExpansion); carets escape only in text that holds an exclamation
    mark."""
    if "!" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "^" and at + 1 < len(text):
            out.append(text[at + 1])
            at += 2
        elif text[at] == "!":
            replaced, at = _variable(text, at + 1, "!", variable, keep_unknown=False)
            out.append(replaced)
        else:
            out.append(text[at])
            at += 1
    return "".join(out)


def expand_for(text: str, values: Mapping[str, str], lookups: Lookups) -> str:
    """Replace %x and %~...x by the values of the FOR variables in force; their names are single, case
    matters."""
    if not values or "%" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "%" or at + 1 >= len(text):
            out.append(text[at])
            at += 1
            continue
        name = text[at + 1]
        if name in values:
            out.append(values[name])
            at += 2
            continue
        found = _for_modified(text, at + 1, values, lookups) if name == "~" else None
        if found is None:
            out.append("%")
            at += 1
        else:
            out.append(found[0])
            at = found[1]
    return "".join(out)


def _for_modified(
    text: str, tilde: int, values: Mapping[str, str], lookups: Lookups
) -> tuple[str, int] | None:
    """%~...x: the longest run of modifiers that is followed by the name of a FOR variable in force."""
    end = tilde + 1
    while end < len(text) and text[end].lower() in MODIFIERS:
        end += 1
    search, name_at = None, end
    if text[end : end + 1] == "$" and ":" in text[end:]:
        colon = text.index(":", end)
        search, name_at = text[end + 1 : colon], colon + 1
    while name_at > tilde:
        name = text[name_at : name_at + 1]
        if name in values:
            modifiers = text[tilde + 1 : min(end, name_at)].lower()
            return modify(values[name], modifiers, search, lookups), name_at + 1
        if search is not None:
            return None
        name_at -= 1
    return None
