"""One running instance of a task: its actions in sequence, each a real process."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from simbox.errors import WindowsError
from simbox.task.starter import ProcessStarter, StartedProcess
from simbox.task.xml import Node

if TYPE_CHECKING:
    from simbox.box import Box

TERMINATED_BY_USER = 0x41306
NOT_STARTED = 0x800710E0


def priority_class(priority: int) -> str:
    """Process priority class of a task's Priority (0..10)."""
    return ("Realtime", "High", "AboveNormal", "AboveNormal", "Normal", "Normal", "Normal", "BelowNormal",
            "BelowNormal", "Idle", "Idle")[priority]  # fmt: skip


class Instance:
    """A run of a task.

    Args:
        finished: called once with the instance, when its last action has ended; read `result` then.
    """

    def __init__(
        self,
        box: Box,
        task: Node,
        session_id: int,
        starter: ProcessStarter,
        finished: Callable[[Instance], None],
    ) -> None:
        self.guid = "{" + str(uuid.uuid4()).upper() + "}"
        self.result = 0
        self.launch_failed = False
        self.process: StartedProcess | None = None
        self.launched = threading.Event()
        self._box = box
        self.task = task
        self._session_id = session_id
        self._starter = starter
        self._finished = finished
        self._stopped = False
        self._lock = threading.Lock()
        self.thread = threading.Thread(target=self._run, name=f"task {self.guid}", daemon=True)

    @property
    def pid(self) -> int | None:
        """The root process that runs now."""
        return self.process.pid if self.process else None

    def stop(self, tree: bool = False) -> None:
        """End the root process of the running action (or its whole tree) and start no further action."""
        with self._lock:
            self._stopped = True
            process = self.process
        if process:
            if tree:
                process.kill_tree()
            else:
                process.kill_root()

    def _run(self) -> None:
        actions = self.task.child("Actions") or Node("Actions")
        try:
            for action in actions.children:
                with self._lock:
                    if self._stopped:
                        break
                    self.process = self._start(action)
                self.launched.set()
                code = self.process.wait() if self.process else 0
                self.result = code or 0
        except WindowsError as error:
            self.launch_failed = True
            self.result = error.hresult or 1
            self._box.events.append("task_launch_failed", code=self.result, message=error.message)
        if self._stopped:
            self.result = TERMINATED_BY_USER
        self.process = None
        self._finished(self)
        self.launched.set()

    def _start(self, action: Node) -> StartedProcess:
        if action.name != "Exec":
            raise WindowsError("System.Exception", f"{action.name} does not run here", 0x80070032)
        folder = self._expand(action.value("WorkingDirectory")).strip('"') or None
        return self._starter(
            self._box,
            self._expand(action.value("Command")).strip('"'),
            self._expand(action.value("Arguments")),
            folder,
            priority_class=priority_class(int(self.task.value("Settings/Priority", "7"))),
            session_id=self._session_id,
        )

    def _expand(self, text: str) -> str:
        """The scheduler expands %VAR% itself; an unknown name stays as it is."""
        variables = {name.upper(): value for name, value in self._box.windows.system.environment().items()}
        return re.sub(r"%([^%]+)%", lambda match: variables.get(match[1].upper(), match[0]), text)
