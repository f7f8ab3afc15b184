"""Durations: seconds for us, ISO 8601 for the Task Scheduler."""

from __future__ import annotations

import re

from winfleet.answer import ModelError

_ISO = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?", re.IGNORECASE
)
# Years and months have no fixed length; the scheduler's own limits are given in days (P31D), so these are
# rare.
_UNITS_S = (365 * 86400, 30 * 86400, 86400, 3600, 60, 1)


def seconds(value: int | str) -> int:
    """Seconds of a whole number of seconds or of an ISO 8601 duration ("PT1H" = "PT60M" = 3600).

    Raises ModelError, also for "24:00:00": one tool read that as 24 days (ComputerManagementDsc#183).
    """
    if isinstance(value, bool):
        raise ModelError(f"no duration: {value!r}")
    if isinstance(value, int):
        if value < 0:
            raise ModelError(f"a duration cannot be negative: {value}")
        return value
    found = _ISO.fullmatch(value.strip())
    if found is None or not any(found.groups()) or value.strip().upper().endswith("T"):
        raise ModelError(f"no duration: {value!r}; write seconds or ISO 8601 such as PT5M")
    return sum(int(part or 0) * unit for part, unit in zip(found.groups(), _UNITS_S, strict=True))


def iso(value: int) -> str:
    """ISO 8601 of whole seconds: 3900 -> "PT1H5M", 0 -> "PT0S"."""
    days, rest = divmod(value, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    time = "".join(
        f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M"), (left, "S")) if number
    )
    if not days and not time:
        return "PT0S"
    return f"P{f'{days}D' if days else ''}{'T' + time if time else ''}"


def spoken(value: int | None) -> str | None:
    """For people: "259200 s (P3D)"."""
    return None if value is None else f"{value} s ({iso(value)})"
