"""Scheduled tasks."""

from winfleet.task.action import ComHandler, Exec, SendEmail, ShowMessage
from winfleet.task.fact import TaskEvents, Tasks, Validation
from winfleet.task.model import Principal, Settings, Task
from winfleet.task.operations import absent, disabled, enabled, examined, present, restarted, running, stopped
from winfleet.task.state import TaskState
from winfleet.task.trigger import (
    BootTrigger,
    ByDay,
    ByMonth,
    ByMonthDayOfWeek,
    ByWeek,
    CalendarTrigger,
    EventTrigger,
    IdleTrigger,
    LogonTrigger,
    RegistrationTrigger,
    Repetition,
    SessionStateChangeTrigger,
    TimeTrigger,
    WnfStateChangeTrigger,
)

__all__ = [
    "BootTrigger",
    "ByDay",
    "ByMonth",
    "ByMonthDayOfWeek",
    "ByWeek",
    "CalendarTrigger",
    "ComHandler",
    "EventTrigger",
    "Exec",
    "IdleTrigger",
    "LogonTrigger",
    "Principal",
    "RegistrationTrigger",
    "Repetition",
    "SendEmail",
    "SessionStateChangeTrigger",
    "Settings",
    "ShowMessage",
    "Task",
    "TaskEvents",
    "TaskState",
    "Tasks",
    "TimeTrigger",
    "Validation",
    "WnfStateChangeTrigger",
    "absent",
    "disabled",
    "enabled",
    "examined",
    "present",
    "restarted",
    "running",
    "stopped",
]
