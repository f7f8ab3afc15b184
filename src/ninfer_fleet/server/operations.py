"""The server: its key, draft depth and launcher, its task, and that it really answers.

What runs was started from files (launcher, key, release, model). It is started again when one of them is
younger than the process, or when it does not answer as declared; never otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyinfra.api.hiddenvalue import HiddenValue
from pyinfra.api.operation import OperationMeta

from ninfer_fleet import reads
from ninfer_fleet.owner import OWNER
from ninfer_fleet.server import launcher as launchers
from ninfer_fleet.server.observation import look
from ninfer_fleet.server.readiness import await_ready, exits
from ninfer_fleet.server.stopping import await_memory, held_down, stop
from ninfer_fleet.settings import Settings
from winfleet import diff
from winfleet.acl import operations as acl
from winfleet.acl.model import Access, Rights
from winfleet.call import Call
from winfleet.current import box as current_box
from winfleet.current import run as current_run
from winfleet.fact import read
from winfleet.files import operations as files
from winfleet.files.fact import Files
from winfleet.files.operations import FileContent
from winfleet.firewall.rule import Rule
from winfleet.operation import box_operation
from winfleet.refusal import Refused
from winfleet.task import model as tasks
from winfleet.task import trigger as task_trigger
from winfleet.task.fact import Tasks
from winfleet.task.finding import priority_findings
from winfleet.waiting import say, step

# What a start takes at most on a box that was not idle (measured 6.5 to 7.8 s).
LOAD_S = 8.0
# One of these changed by hand, such as run_only_if_idle or volatile, and the server silently stays down one day.
_AS_WINDOWS_SETS_IT = frozenset(
    {
        "hidden",
        "wake_to_run",
        "run_only_if_idle",
        "run_only_if_network_available",
        "network_profile_name",
        "network_name",
        "network_id",
        "idle_duration",
        "idle_wait_timeout",
        "stop_on_idle_end",
        "restart_on_idle",
        "delete_expired_task_after",
        "use_unified_scheduling_engine",
        "disallow_start_on_remote_app_session",
        "volatile",
        "maintenance_period",
        "maintenance_deadline",
        "maintenance_exclusive",
    }
)


def account(box: Settings) -> str:
    """Whose rights the server has. Raises Refused when nobody is declared."""
    name = box.task.account or current_box().data.get("winrm_user")
    if not name:
        raise Refused("no account for the task. Remedy: declare task.account")
    return str(name)


def _access(box: Settings, rights: Rights) -> list[Access]:
    return [Access("SYSTEM"), Access("Administrators"), Access(account(box), rights)]


@box_operation()
def guarded(box: Settings) -> Iterator[Any]:
    """Folders that only SYSTEM, Administrators and, as far as it needs them, the server's account may use, and
    what is below them and runs: no more access there than the root's."""
    changes = [
        list(acl.protected._inner(path=path, access=_access(box, rights)))
        for path, rights in reads.guarded(box)
    ]
    below, programs = reads.inheriting(box)
    given = {"access": _access(box, "read"), "settled": not changes[0]}  # the root comes first
    changes.append(list(acl.inherited._inner(folders=below, files=programs, **given)))
    for calls in changes:
        yield from calls


def key_file(box: Settings) -> list[FileContent]:
    """The API key as a file that only the server's account and administrators can read; none without a
    key."""
    key = box.key()
    if key is None:
        return []
    secret = HiddenValue(f"{key.unmask()}\r\n".encode("ascii"))  # type: ignore[no-untyped-call]
    return [FileContent(box.layout.key_file, secret, access=tuple(_access(box, "read")))]


def firewall_rule(box: Settings) -> Rule:
    """Allows the server's port from the declared networks, whatever category Windows gives to the
    connection."""
    return Rule(
        name=box.network.rule_name,
        display_name=f"NInfer (TCP {box.serve.port}, declared networks only)",
        local_ports=(box.serve.port,),
        remote=box.network.allowed,
        description=OWNER.description,
        group="ninfer-fleet",
    )


def exposure(box: Settings) -> dict[str, Any]:
    """Arguments of firewall.exposed_only_to: the server, under the junction and where that leads to."""
    return {
        "port": box.serve.port,
        "networks": box.network.allowed,
        "program": [
            f"{box.layout.current}\\{reads.PROGRAM}",
            f"{reads.release_folder(box)}\\{reads.PROGRAM}",
        ],
        "disable_query_user": box.network.disable_query_user,
        "rules": [firewall_rule(box)],
        "owner": OWNER,
    }


def task(box: Settings) -> tasks.Task:
    """The task that starts the supervisor: at boot or logon, and each minute in case it died."""
    declared = box.task
    triggers: list[task_trigger.Trigger] = []
    if "boot" in declared.start_at:
        triggers.append(task_trigger.BootTrigger(id="boot", delay=declared.boot_delay_s))
    if "logon" in declared.start_at:
        triggers.append(task_trigger.LogonTrigger(id="logon", user=account(box)))
    triggers.append(
        task_trigger.TimeTrigger(
            id="watchdog",
            start_boundary=task_trigger.WATCHDOG_START,
            # No duration: one of a day would silently end the watch.
            repetition=task_trigger.Repetition(declared.watchdog_minutes * 60),
        )
    )
    logon_type = None if declared.logon_type == "ServiceAccount" else declared.logon_type
    run_level: tasks.RunLevel = "HighestAvailable" if declared.run_level == "highest" else "LeastPrivilege"
    return tasks.Task(
        path=declared.path,
        # The .bat itself, not `cmd /c start`: the action must live as long as the server.
        actions=(tasks.Exec(box.layout.launcher, working_directory=box.layout.root),),
        triggers=tuple(triggers),
        principal=tasks.Principal(
            user=account(box),
            logon_type=logon_type,
            # Windows ignores it for its own accounts.
            run_level=run_level if logon_type is not None else None,
            display_name="",
            process_token_sid_type="",
            required_privileges=frozenset(),
        ),
        settings=tasks.Settings(
            enabled=True,
            allow_start_on_demand=True,
            allow_hard_terminate=True,
            multiple_instances="IgnoreNew",
            disallow_start_if_on_batteries=False,
            stop_if_going_on_batteries=False,
            execution_time_limit=0,
            priority=declared.priority,
            # For launch failures only: Windows does not restart what crashed.
            restart_interval=60,
            restart_count=3,
            start_when_available=True,
            absent=_AS_WINDOWS_SETS_IT,
        ),
        description=f"Keeps ninfer-serve running. {OWNER.description}.",
        # The folder's own access list: another one can shut out whoever has to start the task.
        security_descriptor="",
        service=True,
        ready_within_s=float(declared.ready_timeout_s),
        load_s=LOAD_S,
    )


@box_operation()
def draft_depth(box: Settings) -> Iterator[Any]:
    """The file with the draft depth: the declared one, or one that a controller may have set meanwhile."""
    if box.serve.spec is None:
        current_box().noop("no speculation is declared")
        return
    path = box.layout.draft_file
    found = read(Files, **reads.draft_files(box))[path]
    allowed = {str(depth) for depth in (box.serve.draft_tokens, *box.serve.controller_draft_tokens)}
    text = (found.content or b"").decode("ascii", "replace").strip()
    if found.kind == "file" and text in allowed:
        current_box().noop(f"draft depth is {text}")
        return
    yield from files.put._inner(files=[FileContent(path, f"{box.serve.draft_tokens}\r\n".encode("ascii"))])


@box_operation()
def launcher(box: Settings, template: str) -> Iterator[Any]:
    """serve_task.bat from its template.

    Args:
        box: what is declared. template: path of the template, relative to the deploy's directory.

    A supervisor that is running it is stopped first: cmd.exe goes on reading a batch file at its old offset,
    so a file replaced under it would be executed from somewhere in the middle.
    """
    path = Path(current_run().cwd or ".") / template
    if not path.is_file():
        raise Refused(f"no template {path}")
    wanted = FileContent(box.layout.launcher, launchers.render(box, path))
    # All of it before the first yield: the plan runs no further, and shows no diff that comes later.
    changes = list(files.put._inner(files=[wanted]))
    if not changes:
        return
    state = read(Tasks, paths=[box.task.path])[tasks.task_path(box.task.path)]
    if not state.running:
        yield from changes
        return
    why = "cmd.exe would go on in the middle of a launcher replaced under it"
    diff.show(f"Will stop {diff.bold('ninfer-serve')}", [f"because {why}"], why)
    with held_down(box, until_ready=True):
        yield from stop(box)
        yield from changes


def _changing(operation: OperationMeta) -> bool:
    """Whether that earlier operation changes the box: in a plan it will, in a run it has."""
    if current_run().is_executing:
        return operation.is_complete() and operation.did_change()
    return bool(operation.will_change)


@box_operation()
def ready(box: Settings, started_from: Mapping[str, OperationMeta] | None = None) -> Iterator[Any]:
    """The server runs under its task, was started from what is declared now, and answers.

    That is: /health 200, /v1/models 401 without the key and 200 with it, the declared model and context.
    Otherwise it is started, or stopped and started; afterwards it must be another process and generate one
    token, or the box fails with what is odd about its task and the end of its log.

    Args:
        box: what is declared.
        started_from: the operations on what the server is started from, by a word for it: a plan then names the
            restart that their changes will bring (what is on the box now cannot tell it).
    """
    before = look(box)
    faults = before.faults()
    changing = [what for what, operation in (started_from or {}).items() if _changing(operation)]
    if changing and (before.processes or current_run().is_executing):
        verb = "has changed" if current_run().is_executing else "will change"
        faults = [
            f"what it is started from {verb}: {', '.join(changing)}",
            *(faults if before.processes else []),
        ]
    if not faults:
        for process in before.processes:
            # Told only: a task's priority that was repaired counts from the next start on.
            for finding in priority_findings(task(box), process, child=True):
                say(f"task {box.task.path}: {finding}")
        current_box().noop(f"ninfer-serve answers as declared (process {before.processes[0].process_id})")
        return
    verb = "restart" if before.processes else "start"
    diff.show(f"Will {verb} {diff.bold('ninfer-serve')}", [f"because {fault}" for fault in faults], faults[0])
    with held_down(box):
        if before.processes or before.task_running:
            yield from stop(box)
        # While the flag stands: the watchdog would not wait for memory.
        yield step("memory to be free", lambda: await_memory(box))
        if before.files[box.layout.stop_flag].exists or before.processes or before.task_running:
            yield Call("Remove-BoxItem", Path=[box.layout.stop_flag])
    ended = exits(box) if current_run().is_executing else 0
    yield Call("Start-BoxTask", TaskPath=box.task.path)
    yield step("server to answer", lambda: await_ready(box, task(box), before.processes, ended))


@box_operation()
def stopped(box: Settings) -> Iterator[Any]:
    """The server does not run, and neither supervisor nor watchdog starts it: the stop flag stands until
    `ready`. When it cannot be stopped, no flag is left."""
    now = look(box)
    flag = now.files[box.layout.stop_flag].exists
    if not now.processes and not now.task_running and (flag or not now.files[box.layout.launcher].exists):
        current_box().noop("ninfer-serve is stopped")
        return
    diff.show(
        f"Will stop {diff.bold('ninfer-serve')}", [f"process {one.process_id}" for one in now.processes]
    )
    with held_down(box):
        yield Call("New-BoxDirectory", Path=[box.layout.state])
        yield from stop(box)
