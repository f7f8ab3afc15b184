"""Scheduled tasks as values: the whole schema of the Task Scheduler, for declared and for observed tasks.

One set of classes serves both. In a declared task None means "not declared": such a field is neither compared
nor touched; an empty text, or no privileges, means that there must be none. An observed task
(`task_parse.parse_task`) has every documented default filled in, so its settings hold no None. Durations are
whole seconds; texts in ISO 8601 are accepted and turned into seconds. Source of names, defaults and limits:
MS-TSCH 2.5 and the Task Scheduler schema; docs/facts/windows.md#task-schema.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from winfleet.answer import Model
from winfleet.task.action import Action, ComHandler, Exec, OtherAction, SendEmail, ShowMessage
from winfleet.task.trigger import Duration, Timed, Trigger

__all__ = [
    "Action",
    "ComHandler",
    "Exec",
    "OtherAction",
    "Principal",
    "SendEmail",
    "Settings",
    "ShowMessage",
    "Task",
    "task_path",
]

LogonType = Literal["S4U", "Password", "InteractiveToken", "InteractiveTokenOrPassword"]
RunLevel = Literal["LeastPrivilege", "HighestAvailable"]
InstancesPolicy = Literal["Parallel", "Queue", "IgnoreNew", "StopExisting"]


@dataclass(frozen=True)
class Principal(Model):
    """As whom a task runs.

    Attributes: user or group (name or SID), logon_type (None for built-in accounts), run_level, id (Actions
    name it), display_name, process_token_sid_type, required_privileges.
    """

    user: str | None = None
    group: str | None = None
    logon_type: LogonType | None = None
    run_level: RunLevel | None = None
    id: str | None = None
    display_name: str | None = None
    process_token_sid_type: str | None = None
    required_privileges: frozenset[str] | None = None


@dataclass(frozen=True)
class Settings(Timed):
    """Settings of a task; Windows' defaults are in `task_schema.SETTINGS`. execution_time_limit 0: no limit.

    absent (declared only): names of fields that must be as if nobody had ever set them; None cannot say that.
    """

    allow_start_on_demand: bool | None = None
    allow_hard_terminate: bool | None = None
    enabled: bool | None = None
    hidden: bool | None = None
    wake_to_run: bool | None = None
    start_when_available: bool | None = None
    run_only_if_idle: bool | None = None
    run_only_if_network_available: bool | None = None
    network_profile_name: str | None = None
    network_name: str | None = None
    network_id: str | None = None
    multiple_instances: InstancesPolicy | None = None
    disallow_start_if_on_batteries: bool | None = None
    stop_if_going_on_batteries: bool | None = None
    execution_time_limit: Duration | None = None
    priority: int | None = None
    restart_interval: Duration | None = None
    restart_count: int | None = None
    idle_duration: Duration | None = None
    idle_wait_timeout: Duration | None = None
    stop_on_idle_end: bool | None = None
    restart_on_idle: bool | None = None
    delete_expired_task_after: Duration | None = None
    use_unified_scheduling_engine: bool | None = None
    disallow_start_on_remote_app_session: bool | None = None
    volatile: bool | None = None
    maintenance_period: Duration | None = None
    maintenance_deadline: Duration | None = None
    maintenance_exclusive: bool | None = None
    absent: frozenset[str] = frozenset()
    _durations: ClassVar[tuple[str, ...]] = (
        "execution_time_limit",
        "restart_interval",
        "idle_duration",
        "idle_wait_timeout",
        "delete_expired_task_after",
        "maintenance_period",
        "maintenance_deadline",
    )


@dataclass(frozen=True)
class Task(Model):
    """One task, declared or observed.

    Attributes: path (``\\Name`` or ``\\Folder\\Name``; other spellings are normalised), actions, triggers
    (None: not declared; empty: on demand only), principal, settings, description, author, source, version,
    date, uri, documentation, security_descriptor (SDDL), data, schema_version ("1.2"; declared: at least
    that, for Windows raises it by itself), foreign (place and elements of an observed task that no published
    schema has; kept, never compared).

    Declared only, and nothing of the task: service (it must come up by itself and stay up, so a definition
    that cannot do that is refused), ready_within_s (how long somebody waits for it after a start) and load_s
    (how long its program takes to become ready).
    """

    path: str
    actions: tuple[Action, ...] | None = None
    triggers: tuple[Trigger, ...] | None = None
    principal: Principal = field(default_factory=Principal)
    settings: Settings = field(default_factory=Settings)
    description: str | None = None
    author: str | None = None
    source: str | None = None
    version: str | None = None
    date: str | None = None
    uri: str | None = None
    documentation: str | None = None
    security_descriptor: str | None = None
    data: str | None = None
    schema_version: str | None = None
    foreign: tuple[tuple[str, str], ...] = ()
    service: bool = False
    ready_within_s: float | None = None
    load_s: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", task_path(self.path))

    def accounts(self) -> list[str]:
        """All account names in this task."""
        names = [self.principal.user, self.principal.group]
        names += [getattr(trigger, "user", None) for trigger in self.triggers or ()]
        return sorted({name for name in names if name})

    def replaced(self, **changes: Any) -> Task:
        """A copy with other values."""
        return dataclasses.replace(self, **changes)


def task_path(path: str) -> str:
    """One spelling of a task's identity: ``Folder/Name`` and ``\\Folder\\Name`` are ``\\Folder\\Name``
    (chef#7291)."""
    return "\\" + "\\".join(part for part in path.replace("/", "\\").split("\\") if part)
