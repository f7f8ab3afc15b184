"""Processes, and as whom they run."""

from __future__ import annotations

from typing import Any

from winfleet.answer import items
from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.process.model import Process
from winfleet.process.process_token import ProcessToken


class Processes(BoxFact[list[Process]]):
    """Processes of the given names ("ninfer-serve.exe") or ids; all when neither is given."""

    @staticmethod
    def call(names: list[str] | None = None, process_ids: list[int] | None = None) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxProcess", volatile=True, Name=names, ProcessId=process_ids)

    @staticmethod
    def parse(value: Any) -> list[Process]:
        """The processes. Raises ModelError."""
        return [Process.parse(item) for item in items(value, "Get-BoxProcess")]


class ProcessTokens(BoxFact[list[ProcessToken]]):
    """As whom and with which rights processes run."""

    @staticmethod
    def call(process_ids: list[int]) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxProcessToken", volatile=True, ProcessId=process_ids)

    parse = staticmethod(ProcessToken.parse_all)
