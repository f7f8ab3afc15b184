"""The configuration of a box's WinRM service: quotas, time limits, what it allows.

Names and defaults are those of `winrm get winrm/config` (docs/facts/winrm.md#quotas-and-limits).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Self


@dataclass
class Limits:
    """Quotas and switches; may be changed while the service runs.

    Attributes (units in the names; per user where Windows says so):
        schemes: authentication schemes offered in WWW-Authenticate besides Basic.
        basic: Service\\Auth\\Basic. Over plain HTTP it needs allow_unencrypted too.
        allow_unencrypted: accept bodies that are not sealed over plain HTTP.
        cbt_strict: CbtHardeningLevel Strict: over TLS the client must prove it sees our certificate.
        connection_idle_s: http.sys closes a connection that has been silent this long.
        replay_receive: answer a Receive that comes again with the same MessageID from memory. Whether
        Windows does
            is not verified; False is the harder case for a client.
    """

    max_envelope_size_kb: int = 500
    max_shells_per_user: int = 30
    max_concurrent_users: int = 10
    max_concurrent_operations_per_user: int = 1500
    max_processes_per_shell: int = 25
    max_memory_per_shell_mb: int = 1024
    max_connections: int = 300
    max_timeout_ms: int = 60000
    idle_timeout_ms: int = 7200000
    max_shell_run_time_ms: int = 2147483647
    max_packet_retrieval_time_s: float = 120.0
    connection_idle_s: float = 120.0
    schemes: tuple[str, ...] = ("Negotiate",)
    basic: bool = False
    allow_unencrypted: bool = False
    cbt_strict: bool = False
    replay_receive: bool = False

    @classmethod
    def windows_2008r2(cls) -> Self:
        """The smaller quotas of WinRM 2."""
        return cls(
            max_envelope_size_kb=150,
            max_shells_per_user=5,
            max_concurrent_users=5,
            max_concurrent_operations_per_user=15,
            max_processes_per_shell=15,
            max_memory_per_shell_mb=150,
            max_connections=25,
            idle_timeout_ms=180000,
            max_shell_run_time_ms=28800000,
        )

    def update(self, values: dict[str, Any]) -> None:
        """Set attributes by name. Raises ValueError for an unknown name, changing nothing."""
        known = {item.name for item in fields(self)}
        if unknown := sorted(set(values) - known):
            raise ValueError(f"unknown WinRM settings {unknown}; known: {sorted(known)}")
        for name, value in values.items():
            setattr(self, name, tuple(value) if name == "schemes" else value)

    def as_dict(self) -> dict[str, Any]:
        """All attributes by name, fit for JSON."""
        return asdict(self)

    def config(self) -> dict[str, object]:
        """The tree that Get on the configuration answers."""
        return {
            "MaxEnvelopeSizekb": self.max_envelope_size_kb,
            "MaxTimeoutms": self.max_timeout_ms,
            "MaxBatchItems": 32000,
            "MaxProviderRequests": 4294967295,
            "Service": {
                "MaxConcurrentOperationsPerUser": self.max_concurrent_operations_per_user,
                "MaxConnections": self.max_connections,
                "MaxPacketRetrievalTimeSeconds": int(self.max_packet_retrieval_time_s),
                "AllowUnencrypted": self.allow_unencrypted,
                "Auth": {
                    "Basic": self.basic,
                    "Kerberos": "Kerberos" in self.schemes,
                    "Negotiate": "Negotiate" in self.schemes,
                    "Certificate": False,
                    "CredSSP": False,
                    "CbtHardeningLevel": "Strict" if self.cbt_strict else "Relaxed",
                },
            },
            "Winrs": {
                "AllowRemoteShellAccess": True,
                "IdleTimeout": self.idle_timeout_ms,
                "MaxConcurrentUsers": self.max_concurrent_users,
                "MaxShellRunTime": self.max_shell_run_time_ms,
                "MaxProcessesPerShell": self.max_processes_per_shell,
                "MaxMemoryPerShellMB": self.max_memory_per_shell_mb,
                "MaxShellsPerUser": self.max_shells_per_user,
            },
        }
