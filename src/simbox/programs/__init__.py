"""Stand-ins for the Windows programs that a box runs: one function for each exe name.

A program file on the box only has to exist and to have the right name; `run` here is what it does. The RPC
of a wine
box and the job runner, task runner and mini cmd of the python engine all come through `start`.
"""

from __future__ import annotations

import ntpath
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from simbox.engines.wine import standins as build
from simbox.programs.invocation import Invocation, RunningProgram, Writer, start

if TYPE_CHECKING:
    from simbox.box import Box

__all__ = ["Invocation", "RunningProgram", "Writer", "image", "lookup", "start"]

Program = Callable[[Invocation], int]

_MODULES = {
    "nvidia-smi.exe": "nvidia_smi",
    "vswhere.exe": "vswhere",
    "nvcc.exe": "compilers",
    "cl.exe": "compilers",
    "git.exe": "git",
    "cmake.exe": "cmake",
    "ninja.exe": "ninja",
    "curl.exe": "curl",
    "netsh.exe": "netsh",
    "vcpkg.exe": "vcpkg",
    "ninfer-serve.exe": "serve",
    "ninfer.exe": "ninfer",
    "ninfer_bench.exe": "ninfer",
}


def lookup(path: str) -> Program | None:
    """The program that a file of this name is (any folder, any case, with or without .exe), or None."""
    name = ntpath.basename(path).lower()
    module = _MODULES.get(name if name.endswith(".exe") else name + ".exe")
    if module is None:
        return None
    program: Program = import_module(f"simbox.programs.{module}").run
    return program


def image(box: Box) -> bytes:
    """What a program file holds: the stub exe in a wine box, a mark in a python box."""
    if box.engine == "wine":
        return build.program().read_bytes()
    return b"MZ simulated program: its file name decides what it does\r\n"
