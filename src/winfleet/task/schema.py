"""Names, places and defaults of the task schema (MS-TSCH 2.5), shared by reading, writing and comparing."""

from __future__ import annotations

from typing import Any

NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"
DEFAULT_PRINCIPAL_ID = "Author"
# Accounts that need no logon: the scheduler stores no LogonType for them.
SERVICE_SIDS = frozenset({"S-1-5-18", "S-1-5-19", "S-1-5-20"})

# Field of Settings, element path, kind, documented default.
SETTINGS: tuple[tuple[str, str, str, Any], ...] = (
    ("multiple_instances", "MultipleInstancesPolicy", "text", "IgnoreNew"),
    ("disallow_start_if_on_batteries", "DisallowStartIfOnBatteries", "bool", True),
    ("stop_if_going_on_batteries", "StopIfGoingOnBatteries", "bool", True),
    ("allow_hard_terminate", "AllowHardTerminate", "bool", True),
    ("start_when_available", "StartWhenAvailable", "bool", False),
    ("run_only_if_network_available", "RunOnlyIfNetworkAvailable", "bool", False),
    ("network_profile_name", "NetworkProfileName", "text", None),
    ("network_name", "NetworkSettings/Name", "text", None),
    ("network_id", "NetworkSettings/Id", "text", None),
    ("idle_duration", "IdleSettings/Duration", "duration", 600),
    ("idle_wait_timeout", "IdleSettings/WaitTimeout", "duration", 3600),
    ("stop_on_idle_end", "IdleSettings/StopOnIdleEnd", "bool", True),
    ("restart_on_idle", "IdleSettings/RestartOnIdle", "bool", False),
    ("allow_start_on_demand", "AllowStartOnDemand", "bool", True),
    ("enabled", "Enabled", "bool", True),
    ("hidden", "Hidden", "bool", False),
    ("run_only_if_idle", "RunOnlyIfIdle", "bool", False),
    ("disallow_start_on_remote_app_session", "DisallowStartOnRemoteAppSession", "bool", False),
    ("use_unified_scheduling_engine", "UseUnifiedSchedulingEngine", "bool", False),
    ("maintenance_period", "MaintenanceSettings/Period", "duration", None),
    ("maintenance_deadline", "MaintenanceSettings/Deadline", "duration", None),
    ("maintenance_exclusive", "MaintenanceSettings/Exclusive", "bool", None),
    ("volatile", "Volatile", "bool", False),
    ("wake_to_run", "WakeToRun", "bool", False),
    ("execution_time_limit", "ExecutionTimeLimit", "duration", 72 * 3600),
    ("delete_expired_task_after", "DeleteExpiredTaskAfter", "duration", None),
    ("priority", "Priority", "int", 7),
    ("restart_interval", "RestartOnFailure/Interval", "duration", None),
    ("restart_count", "RestartOnFailure/Count", "int", None),
)
# Elements that an older schema does not know: written only when they say something, and with that version.
NEEDS_VERSION = {
    "disallow_start_on_remote_app_session": "1.3",
    "use_unified_scheduling_engine": "1.3",
    "maintenance_period": "1.4",
    "maintenance_deadline": "1.4",
    "maintenance_exclusive": "1.4",
    "volatile": "1.4",
}
# Triggers and their fields that came with a later schema.
TRIGGERS_NEED_VERSION = {"WnfStateChangeTrigger": "1.4"}
LATER_EVENT_FIELDS = {"period_of_occurrence": None, "number_of_occurrences": 1, "matching_element": None}
LATER_EVENT_VERSION = "1.4"
REGISTRATION = (
    ("uri", "URI"),
    ("security_descriptor", "SecurityDescriptor"),
    ("source", "Source"),
    ("date", "Date"),
    ("author", "Author"),
    ("version", "Version"),
    ("description", "Description"),
    ("documentation", "Documentation"),
)
# Everything below Settings that has fields, and the element of each.
SETTINGS_CONTAINERS = frozenset(place.partition("/")[0] for _, place, _, _ in SETTINGS if "/" in place)
KNOWN_PLACES: dict[str, frozenset[str]] = {
    "": frozenset({"RegistrationInfo", "Triggers", "Principals", "Settings", "Data", "Actions"}),
    "RegistrationInfo": frozenset(tag for _, tag in REGISTRATION),
    "Principals/Principal": frozenset(
        {
            "UserId",
            "LogonType",
            "GroupId",
            "DisplayName",
            "RunLevel",
            "ProcessTokenSidType",
            "RequiredPrivileges",
        }
    ),
    "Settings": frozenset(place.partition("/")[0] for _, place, _, _ in SETTINGS),
    **{
        f"Settings/{container}": frozenset(
            place.partition("/")[2] for _, place, _, _ in SETTINGS if place.startswith(f"{container}/")
        )
        for container in sorted(SETTINGS_CONTAINERS)
    },
}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
SESSION_CHANGES = (
    "ConsoleConnect",
    "ConsoleDisconnect",
    "RemoteConnect",
    "RemoteDisconnect",
    "SessionLock",
    "SessionUnlock",
)
# MS-TSCH 2.5.6, privilegeType.
PRIVILEGES = frozenset(
    {
        "SeCreateTokenPrivilege", "SeAssignPrimaryTokenPrivilege", "SeLockMemoryPrivilege",
        "SeIncreaseQuotaPrivilege", "SeUnsolicitedInputPrivilege", "SeMachineAccountPrivilege",
        "SeTcbPrivilege", "SeSecurityPrivilege", "SeTakeOwnershipPrivilege", "SeLoadDriverPrivilege",
        "SeSystemProfilePrivilege", "SeSystemtimePrivilege", "SeProfileSingleProcessPrivilege",
        "SeIncreaseBasePriorityPrivilege", "SeCreatePagefilePrivilege", "SeCreatePermanentPrivilege",
        "SeBackupPrivilege", "SeRestorePrivilege", "SeShutdownPrivilege", "SeDebugPrivilege",
        "SeAuditPrivilege", "SeSystemEnvironmentPrivilege", "SeChangeNotifyPrivilege",
        "SeRemoteShutdownPrivilege", "SeUndockPrivilege", "SeSyncAgentPrivilege",
        "SeEnableDelegationPrivilege", "SeManageVolumePrivilege", "SeImpersonatePrivilege",
        "SeCreateGlobalPrivilege", "SeTrustedCredManAccessPrivilege", "SeRelabelPrivilege",
        "SeIncreaseWorkingSetPrivilege", "SeTimeZonePrivilege", "SeCreateSymbolicLinkPrivilege",
    }
)  # fmt: skip
# pathType of the schema.
LONGEST_PATH = 260
