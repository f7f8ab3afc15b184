"""nvcc.exe and cl.exe: only their versions; building is ninja's."""

from __future__ import annotations

from simbox.programs.invocation import Invocation


def run(invocation: Invocation) -> int:
    """nvcc --version prints the release text; anything else is an error."""
    if invocation.name == "cl.exe":
        toolset = invocation.box.profile.get("toolchain", "visual_studio", "toolset", default="14.44.0")
        version = "19." + toolset.split(".", 1)[1]
        invocation.err(f"Microsoft (R) C/C++ Optimizing Compiler Version {version} for x64")
        invocation.err("Copyright (C) Microsoft Corporation.  All rights reserved.")
        invocation.out()
        invocation.out("usage: cl [ option... ] filename... [ /link linkoption... ]")
        return 0
    cuda = invocation.box.profile.get("toolchain", "cuda")
    if invocation.arguments[:1] in (["--version"], ["-V"]):
        release = ".".join(cuda["version"].split(".")[:2])
        invocation.out("nvcc: NVIDIA (R) Cuda compiler driver")
        invocation.out("Copyright (c) 2005-2026 NVIDIA Corporation")
        invocation.out("Built on Tue_Jun_09_02:11:30_Pacific_Daylight_Time_2026")
        invocation.out(f"Cuda compilation tools, release {release}, V{cuda['nvcc']}")
        invocation.out(f"Build cuda_{release}.r{release}/compiler.37000000_0")
        return 0
    invocation.err("nvcc fatal   : No input files specified; use option --help for more information")
    return 1
