"""pyinfra's real machinery against boxes that live in this process.

The connector answers box commands from the state of a simulated box (simbox.box: real folders for C:, the
scheduler's and the firewall's own rewriting), without any wire and without PowerShell.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all, disconnect_all
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.api.state import StateStage
from pyinfra.connectors.base import BaseConnector
from pyinfra.connectors.util import CommandOutput, OutputLine
from pyinfra.context import ctx_config, ctx_host, ctx_inventory, ctx_state

from simbox.box import Box
from simbox.errors import WindowsError
from winfleet.call import Call


class WindowsBox:
    """One box and what was asked of it. `faults` maps a command to the error that it answers."""

    def __init__(self, directory: Path, name: str) -> None:
        self.sim = Box.open(directory, name, "127.0.99.1", "rtx4090d")
        self.calls: list[Call] = []
        self.faults: dict[str, dict[str, Any]] = {}
        self.running: set[str] = set()
        self.jobs: dict[str, list[dict[str, Any]]] = {}
        self.started_jobs: list[dict[str, Any]] = []
        self.forget_writes = False
        self.unreachable = False

    def changes(self) -> list[str]:
        """The names of the changing commands so far."""
        return [call.command for call in self.calls if not call.reads]

    def answer(self, call: Call) -> dict[str, Any]:
        """The JSON answer of one box command."""
        self.calls.append(call)
        if call.command in self.faults:
            return {"ok": False, "error": self.faults[call.command]}
        handler: Callable[..., Any] = getattr(self, call.command.replace("-", "_"))
        parameters = dict(call.request()["parameters"])
        if call.payload:
            parameters["Payload"] = call.payload
        try:
            return {"ok": True, "value": handler(**parameters)}
        except WindowsError as error:
            return {"ok": False, "error": error.wire()}

    # -- files

    def Get_BoxFile(
        self, Path: list[str], Hash: bool = False, MaxContentBytes: int | None = None
    ) -> list[dict[str, Any]]:
        return [self._file(path, Hash, MaxContentBytes) for path in Path]

    def _file(self, path: str, with_hash: bool, limit: int | None) -> dict[str, Any]:
        files = self.sim.filesystem
        item: dict[str, Any] = {"Path": path, "Kind": "absent", "Attributes": [], "Error": None}
        host = files.host(path) if files.exists(path) else None
        if host is None:
            return item
        if host.is_symlink():
            return {**item, "Kind": "junction", "Target": self.sim.windows.junction.target(path)}
        if host.is_dir():
            return {**item, "Kind": "directory", "Attributes": ["Directory"]}
        data = host.read_bytes()
        read_only = not host.stat().st_mode & 0o200
        item |= {
            "Kind": "file",
            "SizeBytes": len(data),
            "Attributes": ["ReadOnly"] if read_only else ["Archive"],
        }
        if with_hash:
            item["Sha256"] = hashlib.sha256(data).hexdigest()
        if limit is not None and len(data) <= limit:
            item["ContentBase64"] = base64.b64encode(data).decode()
        return item

    def New_BoxDirectory(self, Path: list[str]) -> dict[str, Any]:
        for path in Path:
            self.sim.filesystem.host(path).mkdir(parents=True, exist_ok=True)
        return {"Created": Path}

    def Set_BoxFile(
        self, Path: str, Sha256: str, Encoding: str = "none", Payload: bytes = b""
    ) -> dict[str, Any]:
        data = gzip.decompress(Payload) if Encoding == "gzip" else Payload
        if hashlib.sha256(data).hexdigest() != Sha256:
            raise WindowsError("HashMismatch", "the hash does not fit")
        host = self.sim.filesystem.host(Path)
        replaced = host.exists()
        if not self.forget_writes:
            if replaced:
                host.chmod(0o644)
            host.write_bytes(data)
        return {"Sha256": Sha256, "SizeBytes": len(data), "Replaced": replaced}

    def Set_BoxFileAttribute(self, Path: str, ReadOnly: bool) -> dict[str, Any]:
        self.sim.filesystem.host(Path).chmod(0o444 if ReadOnly else 0o644)
        return {"Changed": True}

    def Remove_BoxItem(self, Path: list[str], Recurse: bool = False) -> dict[str, Any]:
        for path in Path:
            host = self.sim.filesystem.host(path)
            if host.is_dir() and not host.is_symlink():
                shutil.rmtree(host) if Recurse else host.rmdir()
            else:
                host.unlink()
        return {"Removed": Path}

    def Move_BoxItem(self, Path: str, Destination: str) -> dict[str, Any]:
        host = self.sim.filesystem.host(Destination)
        if host.exists():
            raise WindowsError("System.IO.IOException", f"'{Destination}' is there already", 0x800700B7)
        self.sim.filesystem.host(Path).rename(host)
        return {"Moved": True}

    def Copy_BoxItem(self, Items: list[dict[str, str]]) -> list[dict[str, Any]]:
        for item in Items:
            data = self.sim.filesystem.host(item["Path"]).read_bytes()
            self.sim.filesystem.host(item["Destination"]).write_bytes(data)
        return []

    # -- access, accounts, firewall

    def Get_BoxAcl(self, Path: list[str]) -> Any:
        return self.sim.windows.acl.get(Path)

    def Set_BoxAcl(self, Path: str, Sddl: str) -> Any:
        return self.sim.windows.acl.set(Path, Sddl)

    def Get_BoxAccount(self, Name: list[str]) -> Any:
        return self.sim.windows.account.resolve(Name)

    def Get_BoxFirewall(self) -> Any:
        return self.sim.windows.firewall.snapshot()

    def Set_BoxFirewallRule(self, **parameters: Any) -> Any:
        if self.forget_writes:
            return {"Created": False, "Data": ""}
        snake = {
            "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name).lstrip("_"): value
            for name, value in parameters.items()
        }
        return self.sim.windows.firewall.set(**snake)

    def Remove_BoxFirewallRule(self, Name: list[str]) -> Any:
        return {"Changed": self.sim.windows.firewall.remove(Name)}

    def Disable_BoxFirewallRule(self, Name: list[str]) -> Any:
        return {"Changed": self.sim.windows.firewall.set_enabled(Name, False)}

    # -- tasks

    def Get_BoxTask(self, TaskPath: list[str]) -> list[dict[str, Any]]:
        states = [self.sim.windows.scheduler.get(path) for path in TaskPath]
        for state in states:
            if state["TaskPath"].lower() in self.running:
                state |= {
                    "State": "Running",
                    "Instances": [{"EnginePid": 4711, "InstanceGuid": "{0}", "State": "Running"}],
                }
        return states

    def Get_BoxSession(self) -> dict[str, Any]:
        system = self.sim.store.get("system")
        sid = self.sim.windows.account.sid_of(system["user"])
        return {"UserName": system["user"], "UserSid": sid, "Elevated": system["elevated"]}

    def Test_BoxTask(self, TaskPath: str, Xml: str, Password: str | None = None) -> Any:
        return self.sim.windows.scheduler.validate(TaskPath, Xml, Password)

    def Register_BoxTask(self, TaskPath: str, Xml: str, Password: str | None = None) -> Any:
        if self.forget_writes:
            return {"Xml": Xml}
        return self.sim.windows.scheduler.register(TaskPath, Xml, Password)

    def Remove_BoxTaskFolder(self, Path: list[str]) -> dict[str, Any]:
        for path in Path:
            self.sim.windows.scheduler.delete_folder(path)
        return {"Removed": Path}

    def Get_BoxTaskEvent(self, TaskPath: list[str], Id: list[int], MaxEvents: int) -> dict[str, Any]:
        scheduler = self.sim.windows.scheduler
        tasks = [
            {"TaskPath": path, "Events": scheduler.events(path, Id, MaxEvents), "Error": None}
            for path in TaskPath
        ]
        return {"LogEnabled": scheduler.log_enabled(), "Tasks": tasks}

    def Get_BoxProcess(self, Name: list[str] | None = None, ProcessId: list[int] | None = None) -> Any:
        return self.sim.windows.process.list(Name, ProcessId)

    def Get_BoxProcessToken(self, ProcessId: list[int]) -> Any:
        return self.sim.windows.process.tokens(ProcessId)

    def Stop_BoxProcess(self, ProcessId: int, CreationTimeUtc: str) -> Any:
        return self.sim.windows.process.stop(ProcessId, CreationTimeUtc)

    def Unregister_BoxTask(self, TaskPath: str) -> Any:
        return self.sim.windows.scheduler.delete(TaskPath)

    def Start_BoxTask(self, TaskPath: str) -> dict[str, str]:
        if not self.forget_writes:
            self.running.add(TaskPath.lower())
        return {"State": "Running"}

    def Stop_BoxTask(self, TaskPath: str) -> dict[str, str]:
        self.running.discard(TaskPath.lower())
        return {"State": "Ready"}

    def Enable_BoxTask(self, TaskPath: str) -> Any:
        return self.sim.windows.scheduler.set_enabled(TaskPath, True)

    def Disable_BoxTask(self, TaskPath: str) -> Any:
        return self.sim.windows.scheduler.set_enabled(TaskPath, False)

    # -- jobs: each look takes the next state of the script

    def Get_BoxJob(self, Path: str, LogOffsetBytes: int = 0, LogMaxBytes: int = 0) -> dict[str, Any]:
        script = self.jobs.get(Path) or [{"State": "absent"}]
        state = script.pop(0) if len(script) > 1 else script[0]
        log = state.get("Log", "").encode()
        return {
            "Hash": None,
            "ExitCode": None,
            "StartedUtc": None,
            "ProcessId": None,
            "Step": None,
            **state,
            "Log": log[LogOffsetBytes : LogOffsetBytes + LogMaxBytes].decode(),
            "LogSizeBytes": len(log),
        }

    def Start_BoxJob(self, **parameters: Any) -> dict[str, str]:
        self.started_jobs.append(parameters)
        return {"State": "running"}

    def Stop_BoxJob(self, Path: str) -> dict[str, str]:
        self.jobs[Path] = [{"State": "lost"}]
        return {"State": "lost"}


class InProcessConnector(BaseConnector):
    """Hands box commands to the WindowsBox in the host's data."""

    handles_execution = True

    @staticmethod
    def make_names_data(name: str | None = None) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        yield f"@inprocess/{name}", {}, []

    def run_shell_command(
        self, command: Any, print_output: bool = False, print_input: bool = False, **arguments: Any
    ) -> tuple[bool, CommandOutput]:
        assert isinstance(command, Call), f"only box commands are sent: {command}"
        box: WindowsBox = self.host.data.windows
        if not command.reads:
            assert self.state.current_stage == StateStage.Execute, f"{command.command} while planning"
        if box.unreachable:
            answer: dict[str, Any] = {
                "ok": False,
                "error": {"type": "Transport", "message": "connection refused"},
            }
        else:
            answer = json.loads(json.dumps(box.answer(command)))
        lines = [OutputLine("stdout", json.dumps(answer))]
        if not command.reads and not answer["ok"]:
            return False, CommandOutput([*lines, OutputLine("stderr", answer["error"]["message"])])
        return True, CommandOutput(lines)

    def put_file(self, *args: Any, **kwargs: Any) -> bool:
        raise AssertionError("operations send box commands only")

    def get_file(self, *args: Any, **kwargs: Any) -> bool:
        raise AssertionError("operations send box commands only")


@dataclass
class Outcome:
    """What one run did. Attributes: failed and changed (box names), aborted (pyinfra ended the run: its
    words)."""

    failed: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    aborted: str | None = None


class Fleet:
    """Some boxes, and runs of one operation on all of them."""

    def __init__(self, directory: Path, *names: str) -> None:
        self.boxes = {name: WindowsBox(directory / name, name) for name in names}

    @classmethod
    def of(cls, boxes: dict[str, Any]) -> Fleet:
        """A fleet of boxes that are there already; each has `answer` and `unreachable`."""
        fleet = cls(Path())
        fleet.boxes = boxes
        return fleet

    def plan(self, op: Any, diff: bool = True, **arguments: Any) -> Outcome:
        """As ``pyinfra --dry --diff``: changed are the boxes that would change."""
        return self._run(op, arguments, check=True, execute=False, diff=diff)

    def apply(self, op: Any, check: bool = False, diff: bool = False, **arguments: Any) -> Outcome:
        """As ``pyinfra -y``; with check as an interactive run: planned first, then executed."""
        return self._run(op, arguments, check=check, execute=True, diff=diff)

    def _run(self, op: Any, arguments: dict[str, Any], check: bool, execute: bool, diff: bool) -> Outcome:
        inventory = Inventory((list(self.boxes), {}))
        for host, name in zip(list(inventory), self.boxes, strict=True):
            host.connector_cls = InProcessConnector
            host.data.windows = self.boxes[name]
        config = Config()
        config.DIFF = diff
        state = State(inventory, config, check_for_changes=check)
        outcome = Outcome()
        with ctx_state.use(state), ctx_inventory.use(inventory), ctx_config.use(config):
            state.set_stage(StateStage.Connect)
            connect_all(state)
            state.set_stage(StateStage.Prepare)
            metas = add_op(state, op, **arguments)
            if not execute:
                outcome.changed = {host.name for host, meta in metas.items() if meta.will_change}
            else:
                state.set_stage(StateStage.Execute)
                try:
                    run_ops(state)
                except PyinfraError as error:
                    outcome.aborted = str(error)
                outcome.changed = {
                    host.name for host, meta in metas.items() if meta.is_complete() and meta.did_change()
                }
            outcome.failed = {host.name for host in state.failed_hosts}
            disconnect_all(state)
        ctx_host.reset()
        return outcome
