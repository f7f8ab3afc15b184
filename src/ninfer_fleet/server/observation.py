"""One look at the server of a box: is it the declared one, and does it answer?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ninfer_fleet import preflight, reads
from ninfer_fleet.settings import Settings
from winfleet.fact import prefetch, read
from winfleet.files.fact import Files
from winfleet.files.model import FileState
from winfleet.network.fact import Listeners
from winfleet.network.model import Listener
from winfleet.process.fact import Processes
from winfleet.process.model import Process
from winfleet.system.fact import System
from winfleet.task import model as tasks
from winfleet.task.fact import Tasks
from winfleet.web.fact import HttpGet
from winfleet.web.model import HttpAnswer

HTTP_TIMEOUT_S = 3


@dataclass(frozen=True)
class Look:
    """One look at the server.

    Attribute: now_utc (the box's own clock, read only when a file seems younger than the server).
    """

    processes: list[Process]
    listeners: list[Listener]
    task_running: bool
    files: dict[str, FileState]
    health: HttpAnswer
    without_key: HttpAnswer
    with_key: HttpAnswer
    declared: Settings = field(repr=False)
    now_utc: str | None = None

    def faults(self, *, just_started: bool = False) -> list[str]:
        """Why the server is not as declared; empty: it is.

        just_started: after everything that it is started from had been written, so no time on a file means
        anything: a clock that was set back meanwhile would call the new server old.
        """
        if not self.processes:
            return ["ninfer-serve is not running"]
        younger = [] if just_started else self.younger()
        found = [
            f"{path.rpartition(chr(92))[2]} was changed after the server had started" for path in younger
        ]
        if self.files[self.declared.layout.stop_flag].exists:
            found.append("the stop flag is set")
        if not self.task_running:
            found.append(f"it does not run under the task {self.declared.task.path}")
        port = self.declared.serve.port
        ids = {process.process_id for process in self.processes}
        if not any(one.port == port and one.process_id in ids for one in self.listeners):
            found.append(f"it does not listen on port {port}")
            return found
        return found + self.answers_wrong()

    def younger(self) -> list[str]:
        """The files that were written after the server had started."""
        return [path for path in started_from(self.declared) if self._younger(path)]

    def _younger(self, path: str) -> bool:
        written = self.files[path].last_write_time_utc
        if written is None or (self.now_utc is not None and written > self.now_utc):
            # Written while the clock was fast, nobody knows when: no restart would ever make it older. Once its
            # time has come it counts again, and one restart ends that.
            return False
        return any(
            process.creation_time_utc is not None and process.creation_time_utc < written
            for process in self.processes
        )

    def answers_wrong(self) -> list[str]:
        """What /health and /v1/models say that is not declared."""
        serve = self.declared.serve
        if self.health.status != 200:
            return [f"/health: {self.health} instead of 200"]
        found = []
        if serve.api_key is not None and self.without_key.status != 401:
            found.append(f"/v1/models without the key: {self.without_key} instead of 401")
        if self.with_key.status != 200:
            return [*found, f"/v1/models with the key: {self.with_key} instead of 200"]
        return found + self._model_wrong()

    def _model_wrong(self) -> list[str]:
        try:
            models = {str(one["id"]): one for one in self.with_key.json()["data"]}
        except (ValueError, KeyError, TypeError):
            return ["/v1/models answers no model list"]
        wanted = self.declared.served_model_id
        if wanted not in models:
            return [f"/v1/models: {', '.join(models) or 'nothing'} instead of {wanted}"]
        context = models[wanted].get("context_window")
        if context not in (None, self.declared.serve.max_context):
            return [f"context window: {context} instead of {self.declared.serve.max_context}"]
        return []


def started_from(box: Settings) -> list[str]:
    """Files whose change asks for a restart: what the supervisor reads or runs at a start."""
    key = [box.layout.key_file] if box.serve.api_key is not None else []
    depth = [box.layout.draft_file] if box.serve.spec is not None else []
    release = f"{reads.release_folder(box)}\\release.json"  # written last whenever a release is staged
    return [box.layout.launcher, *key, *depth, box.layout.current, release, reads.stamp_path(box)]


def look(box: Settings) -> Look:
    """Look at the server in one request. Raises FactUnreadable."""
    url = f"http://{probe_address(box)}:{box.serve.port}"
    key = box.layout.key_file if box.serve.api_key is not None else None
    paths = [*started_from(box), box.layout.stop_flag]
    health: dict[str, Any] = {"url": f"{url}/health", "timeout_s": HTTP_TIMEOUT_S}
    without_key: dict[str, Any] = {"url": f"{url}/v1/models", "timeout_s": HTTP_TIMEOUT_S}
    with_key = {**without_key, "bearer_file": key}
    prefetch(
        [
            Processes.call([reads.PROGRAM]),
            Listeners.call([box.serve.port]),
            Tasks.call([box.task.path]),
            Files.call(paths),
            HttpGet.call(**health),
            HttpGet.call(**without_key),
            *([HttpGet.call(**with_key)] if key else []),
        ]
    )
    plain = read(HttpGet, **without_key)
    states = read(Files, paths=paths)
    # Before the first deploy there is no key to ask with.
    keyed = key is not None and states[key].exists
    seen = Look(
        processes=ours(box, read(Processes, names=[reads.PROGRAM])),
        listeners=read(Listeners, ports=[box.serve.port]),
        task_running=read(Tasks, paths=[box.task.path])[tasks.task_path(box.task.path)].running,
        files=states,
        health=read(HttpGet, **health),
        without_key=plain,
        with_key=read(HttpGet, **with_key) if keyed else plain,
        declared=box,
    )
    return replace(seen, now_utc=read(System).time_utc) if seen.younger() else seen


def probe_address(box: Settings) -> str:
    """Where the box itself reaches its server, as it stands in a URL."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(box.serve.host, box.serve.host)
    return f"[{host}]" if ":" in host else host


def ours(box: Settings, processes: list[Process]) -> list[Process]:
    """Those of the processes that are a server of this deployment."""
    return [process for process in processes if preflight.ours(box, process.executable_path)]
