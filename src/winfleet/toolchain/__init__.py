"""Compilers and build tools."""

from winfleet.toolchain.compile_commands import CompileCommandsState
from winfleet.toolchain.compile_commands_fact import CompileCommands
from winfleet.toolchain.fact import Toolchain
from winfleet.toolchain.model import ToolchainState

__all__ = ["CompileCommands", "CompileCommandsState", "Toolchain", "ToolchainState"]
