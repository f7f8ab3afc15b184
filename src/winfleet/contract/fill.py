"""Places in the texts of a case, such as {D} or {job.State}, and what stands there in this run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from winfleet.contract.expect import Wanted

NAMES = {
    "long": "a name of many characters " * 4 + "x",
    "chinese": "\u6a21\u578b \u76ee\u5f55 \U0001f600",
    "nasty": "it's $env_X `n [1-3] & (x); %TEMP% {0} #~^!",
}
"""Names that cases use again and again."""
_PLACE = re.compile(r"\{([A-Za-z]\w*(?:\.\w+)*)\}")


class Missing(Exception):
    """A text names something that this place does not have; `name` is it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def filler(values: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function that fills any value of a case. A text that is one place only becomes the value itself, whatever
    its type; braces around other words stay as they are.
    """

    def look_up(path: str) -> Any:
        name, *rest = path.split(".")
        value = values[name]
        for part in rest:
            value = value[int(part)] if isinstance(value, list) else value[part]
        return value

    def known(path: str) -> bool:
        return path.partition(".")[0] in values

    def fill(value: Any) -> Any:
        if isinstance(value, Wanted):
            return value.filled(fill)
        if isinstance(value, Mapping):
            return {fill(key): fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [fill(item) for item in value]
        if not isinstance(value, str):
            return value
        whole = _PLACE.fullmatch(value)
        if whole and known(whole[1]):
            return look_up(whole[1])
        return _PLACE.sub(lambda match: str(look_up(match[1])) if known(match[1]) else match[0], value)

    return fill


def places(value: Any) -> set[str]:
    """The first words of all places in the texts of a value."""
    if isinstance(value, Wanted):
        return places(value.value)
    if isinstance(value, Mapping):
        return {name for pair in value.items() for item in pair for name in places(item)}
    if isinstance(value, list | tuple):
        return {name for item in value for name in places(item)}
    return (
        {match[1].partition(".")[0] for match in _PLACE.finditer(value)} if isinstance(value, str) else set()
    )
