"""What compile_commands.json says of one definition: proof that a macro reaches the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, integer, mapping


@dataclass(frozen=True)
class CompileCommandsState(Model):
    """Answer of Get-BoxCompileCommand.

    Attributes: exists, commands (all), cuda_commands, values (value of the definition -> number of CUDA
    commands), without_definition (CUDA commands that lack it), architectures (text -> number of CUDA
    commands).
    """

    exists: bool
    commands: int
    cuda_commands: int
    values: Mapping[str, int]
    without_definition: int
    architectures: Mapping[str, int]

    @classmethod
    def parse(cls, value: Any) -> CompileCommandsState:
        """From the JSON value. Raises ModelError."""
        data = mapping(value, "Get-BoxCompileCommand")
        if not data.get("Exists"):
            return cls(False, 0, 0, {}, 0, {})
        return cls(
            True,
            integer(data, "CommandCount"),
            integer(data, "CudaCommandCount"),
            _counts(data.get("DefinitionValues"), "DefinitionValues"),
            integer(data, "WithoutDefinition"),
            _counts(data.get("Architectures"), "Architectures"),
        )

    def carries_only(self, value: str) -> bool:
        """True when at least one CUDA command has the definition with that value and none has another or
        none."""
        return self.cuda_commands > 0 and self.without_definition == 0 and set(self.values) == {value}


def _counts(value: Any, what: str) -> dict[str, int]:
    data = mapping(value or {}, what)
    return {str(name): integer(data, name) for name in data}
