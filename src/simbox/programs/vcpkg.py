"""vcpkg.exe: its version, and `install` in manifest mode."""

from __future__ import annotations

from simbox.programs.invocation import Invocation


def run(invocation: Invocation) -> int:
    """Exit codes: 0, 1 unknown command."""
    command = invocation.arguments[0] if invocation.arguments else ""
    if command in ("version", "--version"):
        invocation.out(
            "vcpkg package management program version 2026-07-21-0000000000000000000000000000000000000000"
        )
        return 0
    if command == "install":
        invocation.out("All requested installations completed successfully in: 12 ms")
        return 0
    invocation.err(f"error: invalid command: {command}")
    return 1
