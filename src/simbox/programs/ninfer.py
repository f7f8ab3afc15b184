"""ninfer.exe and ninfer_bench.exe: present after a build, and able to say who they are."""

from __future__ import annotations

from simbox.programs.invocation import Invocation


def run(invocation: Invocation) -> int:
    """`--help` prints usage, exit 0; anything else needs the artifact of a real engine and fails with 1."""
    if invocation.arguments[:1] in (["--help"], ["-h"]):
        invocation.out(f"usage: {invocation.name.removesuffix('.exe')} <artifact> [options]")
        return 0
    invocation.err("error: this program needs a GPU; the simulated box has only ninfer-serve")
    return 1
