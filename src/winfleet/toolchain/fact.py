"""Compilers and build tools."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.toolchain.model import ToolchainState


class Toolchain(BoxFact[ToolchainState]):
    """CUDA, Visual Studio, CMake, Ninja, Git, curl, and vcpkg under vcpkg_root (None: where the machine names
    it)."""

    @staticmethod
    def call(vcpkg_root: str | None = None) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxToolchain", VcpkgRoot=vcpkg_root)

    parse = staticmethod(ToolchainState.parse)
