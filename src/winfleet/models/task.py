"""Scheduled tasks as values: the whole schema of the Task Scheduler, for declared and for observed tasks.

One set of classes serves both. In a declared task None means "not declared": such a field is neither compared
nor touched. An observed task (`task_parse.parse_task`) has every documented default filled in, so its
settings hold no None. Durations are whole seconds; texts in ISO 8601 are accepted and turned into seconds.
Source of names, defaults and limits: MS-TSCH 2.5 and the Task Scheduler schema; research: windows.md 1.1.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from winfleet.models.answer import BoxFault, Model, items, mapping, optional_integer, optional_text, text
from winfleet.models.task_trigger import Duration, Timed, Trigger

LogonType = Literal["S4U", "Password", "InteractiveToken", "InteractiveTokenOrPassword"]
RunLevel = Literal["LeastPrivilege", "HighestAvailable"]
InstancesPolicy = Literal["Parallel", "Queue", "IgnoreNew", "StopExisting"]


@dataclass(frozen=True)
class Exec(Model):
    """Runs a program. Attributes: command (full path), arguments (one text), working_directory, id."""

    command: str
    arguments: str | None = None
    working_directory: str | None = None
    id: str | None = None


@dataclass(frozen=True)
class OtherAction(Model):
    """An action that is not modelled (ComHandler, SendEmail, ShowMessage); xml is its elements, as found."""

    name: str
    xml: str = ""
    id: str | None = None


Action: TypeAlias = Exec | OtherAction


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
    """Settings of a task; Windows' defaults are in `task_schema.SETTINGS`. execution_time_limit 0: no
    limit."""

    allow_start_on_demand: bool | None = None
    allow_hard_terminate: bool | None = None
    enabled: bool | None = None
    hidden: bool | None = None
    wake_to_run: bool | None = None
    start_when_available: bool | None = None
    run_only_if_idle: bool | None = None
    run_only_if_network_available: bool | None = None
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
    date, uri, documentation, security_descriptor (SDDL), data, schema_version (never compared), service
    (declared only: it must come up by itself and stay up, so a definition that cannot do that is refused).
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
    service: bool = False

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


@dataclass(frozen=True)
class Instance(Model):
    """A running instance. Attributes: engine_process_id, guid, state."""

    engine_process_id: int | None
    guid: str | None
    state: str | None


@dataclass(frozen=True)
class TaskState(Model):
    """Answer of Get-BoxTask for one path.

    Attributes: path, exists, xml (as stored; None when absent), state ("Ready", "Running", "Disabled", ...),
    enabled, last_run_time_utc, last_result (code of the last run), next_run_time_utc, instances, fault (why
    it could not be read).
    """

    path: str
    exists: bool
    xml: str | None
    state: str | None
    enabled: bool
    last_run_time_utc: str | None
    last_result: int | None
    next_run_time_utc: str | None
    instances: tuple[Instance, ...]
    fault: BoxFault | None

    @property
    def running(self) -> bool:
        """True when an instance runs."""
        return self.state == "Running" or bool(self.instances)

    @classmethod
    def parse(cls, value: Any) -> TaskState:
        """From one item of Get-BoxTask. Raises ModelError."""
        data = mapping(value, "Get-BoxTask")
        entries = [mapping(entry, "Instances") for entry in items(data.get("Instances"), "Instances")]
        return cls(
            task_path(text(data, "TaskPath")),
            bool(data.get("Exists")),
            optional_text(data, "Xml"),
            optional_text(data, "State"),
            bool(data.get("Enabled")),
            optional_text(data, "LastRunTimeUtc"),
            optional_integer(data, "LastTaskResult"),
            optional_text(data, "NextRunTimeUtc"),
            tuple(
                Instance(
                    optional_integer(one, "EnginePid"),
                    optional_text(one, "InstanceGuid"),
                    optional_text(one, "State"),
                )
                for one in entries
            ),
            None if data.get("Error") is None else BoxFault.parse(data["Error"]),
        )


# Results of a run that name a known situation (HRESULT or NTSTATUS); research: windows.md 1.6.
_RESULTS = {
    0x0: "succeeded",
    0x41300: "ready",
    0x41301: "is running",
    0x41302: "disabled",
    0x41303: "has never run",
    0x41304: "no more runs scheduled",
    0x41306: "was terminated by a user",
    0x80041318: "a value in the task XML is out of range",
    0x8004131F: "an instance is already running",
    0x800710E0: "the operator refused the request: no session, or a condition does not hold",
    0x80070002: "the file was not found",
    0x80070005: "access denied",
    0xC0000005: "crashed: access violation",
    0xC0000135: "a DLL was not found",
    0xC000013A: "its console or session was closed",
    0xC0000142: "a DLL failed to initialise (desktop heap or session)",
    0xC0000409: "crashed: the program aborted itself",
    0xFFFFFFFF: "was killed",
}


def result_words(code: int | None) -> str:
    """A run result in words: 0x41306 -> "0x00041306 (was terminated by a user)"."""
    if code is None:
        return "no result"
    unsigned = code & 0xFFFFFFFF
    return f"0x{unsigned:08X} ({_RESULTS.get(unsigned, 'exit code ' + str(code))})"
