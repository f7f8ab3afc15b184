"""When a scheduled task starts: triggers of every kind (MS-TSCH 2.5.3).

Durations are whole seconds; texts in ISO 8601 are accepted and turned into seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from winfleet.answer import Model, ModelError
from winfleet.task.duration import seconds

Duration: TypeAlias = int | str

# Fixed, long past: a watchdog's start must be a constant, never "now", or every run would differ
# (ComputerManagementDsc#411).
WATCHDOG_START = "2020-01-01T00:00:00"


class Timed(Model):
    """Turns the fields named in `_durations` into whole seconds."""

    _durations: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self._durations:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, seconds(value))


@dataclass(frozen=True)
class Repetition(Timed):
    """How a trigger repeats. Attributes: interval, duration (None: for ever), stop_at_duration_end."""

    interval: Duration
    duration: Duration | None = None
    stop_at_duration_end: bool = False
    _durations: ClassVar[tuple[str, ...]] = ("interval", "duration")


@dataclass(frozen=True, kw_only=True)
class TriggerBase(Timed):
    """What all triggers have.

    Attributes: id (ours: triggers are matched by it), enabled, start_boundary and end_boundary (ISO 8601;
    without a zone: local wall clock), execution_time_limit (of runs that this trigger starts), repetition,
    foreign (elements of an observed trigger that no published schema has; kept, never compared).
    """

    kind: ClassVar[str] = ""
    id: str | None = None
    enabled: bool = True
    start_boundary: str | None = None
    end_boundary: str | None = None
    execution_time_limit: Duration | None = None
    repetition: Repetition | None = None
    foreign: str = ""
    _durations: ClassVar[tuple[str, ...]] = ("execution_time_limit",)


@dataclass(frozen=True, kw_only=True)
class LogonTrigger(TriggerBase):
    """At logon of user (None with any_user: of anybody, which only an administrator may register)."""

    kind: ClassVar[str] = "LogonTrigger"
    user: str | None = None
    any_user: bool = False
    delay: Duration | None = None
    _durations: ClassVar[tuple[str, ...]] = ("execution_time_limit", "delay")


@dataclass(frozen=True, kw_only=True)
class BootTrigger(TriggerBase):
    """At boot. It does not fire when Windows resumes from Fast Startup."""

    kind: ClassVar[str] = "BootTrigger"
    delay: Duration | None = None
    _durations: ClassVar[tuple[str, ...]] = ("execution_time_limit", "delay")


@dataclass(frozen=True, kw_only=True)
class TimeTrigger(TriggerBase):
    """Once at start_boundary; with a repetition without duration: for ever after it (the watchdog)."""

    kind: ClassVar[str] = "TimeTrigger"
    random_delay: Duration | None = None
    _durations: ClassVar[tuple[str, ...]] = ("execution_time_limit", "random_delay")


def _set(names: Iterable[str | int] | str, what: str) -> frozenset[str]:
    """A set of names or numbers. Raises ModelError for a name that is there twice (W04)."""
    found = [str(name) for name in ([names] if isinstance(names, str) else names)]
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise ModelError(f"{what}: {', '.join(twice)} twice")
    return frozenset(found)


class _Sets(Model):
    """Turns the fields named in `_names` into sets: their order means nothing."""

    _names: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in self._names:
            object.__setattr__(self, name, _set(getattr(self, name), name))


@dataclass(frozen=True)
class ByDay(Model):
    """Every so many days."""

    days_interval: int = 1


@dataclass(frozen=True)
class ByWeek(_Sets):
    """On days ("Monday", ...) of every so many weeks."""

    days_of_week: Collection[str]
    weeks_interval: int = 1
    _names: ClassVar[tuple[str, ...]] = ("days_of_week",)


@dataclass(frozen=True)
class ByMonth(_Sets):
    """On days ("1".."31", "Last") of months ("January", ...; all when empty)."""

    days_of_month: Collection[str | int]
    months: Collection[str] = frozenset()
    _names: ClassVar[tuple[str, ...]] = ("days_of_month", "months")


@dataclass(frozen=True)
class ByMonthDayOfWeek(_Sets):
    """On weekdays of the given weeks ("1".."4", "Last"; all when empty) of months (all when empty)."""

    days_of_week: Collection[str]
    weeks: Collection[str | int] = frozenset()
    months: Collection[str] = frozenset()
    _names: ClassVar[tuple[str, ...]] = ("days_of_week", "weeks", "months")


Schedule: TypeAlias = ByDay | ByWeek | ByMonth | ByMonthDayOfWeek


@dataclass(frozen=True, kw_only=True)
class CalendarTrigger(TriggerBase):
    """By calendar, at the time of day of start_boundary."""

    kind: ClassVar[str] = "CalendarTrigger"
    schedule: Schedule = field(default_factory=ByDay)
    random_delay: Duration | None = None
    _durations: ClassVar[tuple[str, ...]] = ("execution_time_limit", "random_delay")


@dataclass(frozen=True, kw_only=True)
class EventTrigger(TriggerBase):
    """When an event matches subscription (query XML); value_queries name values of the event for the
    action."""

    kind: ClassVar[str] = "EventTrigger"
    subscription: str = ""
    value_queries: Mapping[str, str] = field(default_factory=dict)
    delay: Duration | None = None
    period_of_occurrence: Duration | None = None
    number_of_occurrences: int = 1
    matching_element: str | None = None
    _durations: ClassVar[tuple[str, ...]] = ("execution_time_limit", "delay", "period_of_occurrence")


@dataclass(frozen=True, kw_only=True)
class IdleTrigger(TriggerBase):
    """When the machine becomes idle."""

    kind: ClassVar[str] = "IdleTrigger"


@dataclass(frozen=True, kw_only=True)
class RegistrationTrigger(TriggerBase):
    """When the task is registered or changed."""

    kind: ClassVar[str] = "RegistrationTrigger"
    delay: Duration | None = None
    _durations: ClassVar[tuple[str, ...]] = ("execution_time_limit", "delay")


@dataclass(frozen=True, kw_only=True)
class SessionStateChangeTrigger(TriggerBase):
    """When a session changes: ConsoleConnect, ConsoleDisconnect, RemoteConnect, RemoteDisconnect,
    SessionLock, ..."""

    kind: ClassVar[str] = "SessionStateChangeTrigger"
    state_change: str = "SessionUnlock"
    user: str | None = None
    delay: Duration | None = None
    _durations: ClassVar[tuple[str, ...]] = ("execution_time_limit", "delay")


@dataclass(frozen=True, kw_only=True)
class WnfStateChangeTrigger(TriggerBase):
    """When a state of the Windows Notification Facility changes.

    Attributes: state_name (16 hex digits), data (hex, what its content must be) at data_offset, delay.
    """

    kind: ClassVar[str] = "WnfStateChangeTrigger"
    state_name: str = ""
    data: str | None = None
    data_offset: int | None = None
    delay: Duration | None = None
    _durations: ClassVar[tuple[str, ...]] = ("execution_time_limit", "delay")


@dataclass(frozen=True, kw_only=True)
class OtherTrigger(TriggerBase):
    """A trigger that no published schema has; xml is its own elements, written back as found."""

    kind: ClassVar[str] = "OtherTrigger"
    name: str = ""
    xml: str = ""


Trigger: TypeAlias = (
    LogonTrigger
    | BootTrigger
    | TimeTrigger
    | CalendarTrigger
    | EventTrigger
    | IdleTrigger
    | RegistrationTrigger
    | SessionStateChangeTrigger
    | WnfStateChangeTrigger
    | OtherTrigger
)
