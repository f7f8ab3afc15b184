"""Compile commands of a build."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.toolchain.compile_commands import CompileCommandsState


class CompileCommands(BoxFact[CompileCommandsState]):
    """What the compile_commands.json at path says of a definition."""

    @staticmethod
    def call(path: str, definition: str) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxCompileCommand", Path=path, Definition=definition)

    parse = staticmethod(CompileCommandsState.parse)
