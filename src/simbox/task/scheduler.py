"""The task scheduler of a simulated box: stores tasks in the service's shape and really starts their
processes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from simbox.errors import WindowsError, com_error, signed
from simbox.process.state import utc_text
from simbox.task import events as log
from simbox.task import folders as task_folders
from simbox.task import xml as task_xml
from simbox.task.folders import TaskFolders, missing
from simbox.task.rights import prepare, triggers
from simbox.task.run import NOT_STARTED, Instance
from simbox.task.runner import TaskRunner
from simbox.task.stored import stored
from simbox.task.xml import Node

if TYPE_CHECKING:
    from simbox.box import Box
    from simbox.task.starter import ProcessStarter

NEVER_RUN = 0x41303
RUNNING = 0x41301


class Scheduler:
    """Tasks by full path such as `\\NInferServe`; found whatever their case."""

    REMOTE = frozenset(
        {
            "get",
            "validate",
            "register",
            "delete",
            "start",
            "stop",
            "set_enabled",
            "tasks",
            "folders",
            "folder",
            "inside",
            "create_folder",
            "delete_folder",
            "events",
            "log_enabled",
        }
    )

    def __init__(self, box: Box) -> None:
        self._box = box
        self._folders = TaskFolders(box)
        self.log = log.TaskEvents(box)
        self._runner = TaskRunner(box, self.log)

    # -- reading

    def get(self, path: str) -> dict[str, Any]:
        """As Get-BoxTask gives it for one path; never raises for a task that is not there."""
        name, record = self._record(path)
        if record is None:
            absent = (
                "Xml",
                "State",
                "Enabled",
                "LastRunTimeUtc",
                "LastTaskResult",
                "NextRunTimeUtc",
                "MissedRuns",
                "Error",
            )
            nothing = dict.fromkeys(absent)
            folders = self._folders.on_the_way(path)
            return {"TaskPath": path, "Exists": False, **nothing, "Instances": [], "Folders": folders}
        instances, queued = self._runner.instances(name), self._runner.queued(name)
        next_time = self._runner.next_time(name) if record["Enabled"] else None
        result = RUNNING if instances else record["LastTaskResult"]
        return {
            "TaskPath": name,
            "Exists": True,
            "Xml": record["Xml"],
            "State": self._state(record, instances, queued),
            "Enabled": record["Enabled"],
            "LastRunTimeUtc": record["LastRunTimeUtc"],
            "LastTaskResult": signed(result),
            "NextRunTimeUtc": utc_text(next_time) if next_time else None,
            "MissedRuns": 0,
            "Folders": self._folders.on_the_way(name),
            "Instances": [
                {"EnginePid": instance.pid, "InstanceGuid": instance.guid, "State": "Running"}
                for instance in instances
            ],
            "Error": None,
        }

    def tasks(self, folder: str = "\\") -> list[str]:
        """Full paths of the tasks in one folder."""
        return self._folders.tasks(folder)

    def folders(self) -> list[str]:
        """All task folders; one that was made for a task stays when the task is deleted."""
        return self._folders.all()

    def inside(self, folder: str) -> list[str]:
        """Full paths of the folders in one folder."""
        return self._folders.inside(folder)

    def folder(self, path: str) -> str:
        """The folder's path in its own case. Raises: WindowsError 0x80070002 when there is none."""
        return self._folders.find(path)

    def events(self, path: str, numbers: list[int] | None = None, most: int = 50) -> list[dict[str, Any]]:
        """Events of one task, the newest first; numbers None or empty: of every kind."""
        return self.log.read(path, numbers or (), most)

    def log_enabled(self) -> bool:
        """Whether the scheduler writes its log."""
        return self.log.enabled

    def rights_of(self, process_ids: list[int]) -> tuple[str, bool] | None:
        """SID and elevation of the first of these processes that is the root of an instance."""
        return self._runner.rights_of(process_ids)

    # -- changing

    def create_folder(self, path: str) -> str:
        """Make a task folder and those above it. Raises: WindowsError 0x800700B7 when it exists."""
        return self._folders.create(path)

    def delete_folder(self, path: str) -> None:
        """Remove an empty task folder. Raises: WindowsError 0x80070002, 0x80070091."""
        self._folders.delete(path)

    def validate(self, path: str, xml: str, password: str | None = None) -> dict[str, Any]:
        """TASK_VALIDATE_ONLY, as Test-BoxTask gives it."""
        try:
            prepare(self._box, path, xml, password)
        except WindowsError as error:
            return {"Valid": False, "Error": {"hresult": error.wire()["hresult"], "message": error.message}}
        return {"Valid": True, "Error": None}

    def register(self, path: str, xml: str, password: str | None = None) -> dict[str, Any]:
        """Create or update (a running instance goes on). Returns {"Xml": stored shape}.

        Raises: WindowsError with the service's HRESULT for XML it does not take, 0x80070005 without the
        rights.
        """
        task = prepare(self._box, path, xml, password)
        info = task.child("RegistrationInfo") or Node("RegistrationInfo")
        if not info.value("Date"):
            info.children.insert(0, Node("Date", {}, datetime.now().strftime("%Y-%m-%dT%H:%M:%S")))
        info.drop("URI")
        info.put("URI", path)
        text = task_xml.write(task)
        key = path.casefold()
        with self._box.store.change() as state:
            task_folders.make(state, path)
            old = state["tasks"].get(key, {})
            state["tasks"][key] = {
                "Path": old.get("Path", path),
                "Xml": text,
                "Enabled": task.flag("Settings/Enabled", True),
                "LastRunTimeUtc": old.get("LastRunTimeUtc"),
                "LastTaskResult": old.get("LastTaskResult", NEVER_RUN),
            }
        self._box.events.append("task_registered", path=path, updated=bool(old))
        self.log.write(log.UPDATED if old else log.REGISTERED, path)
        self._runner.schedule(path)
        for trigger in triggers(task):
            if trigger.name == "RegistrationTrigger" and trigger.flag("Enabled", True):
                self._runner.begin(path, trigger)
        return {"Xml": text}

    def delete(self, path: str) -> dict[str, Any]:
        """Delete the task; its folder and a running process stay. Returns {"Changed": it was there}."""
        self._runner.forget(path)
        removed = self._box.store.remove("tasks", path.casefold())
        if removed:
            self._box.events.append("task_deleted", path=path)
            self.log.write(log.DELETED, path)
        return {"Changed": removed}

    def set_enabled(self, path: str, enabled: bool) -> dict[str, Any]:
        """Enable or disable; a running instance goes on. Returns {"State"}."""
        name, record = self._record(path)
        if record is None:
            raise missing()
        task = task_xml.read(record["Xml"])
        settings = task.child("Settings") or Node("Settings")
        settings.drop("Enabled")
        if not enabled:
            settings.put("Enabled", "false")
        kept = stored(task, self._box.windows.account.sid_of)
        with self._box.store.change() as state:
            state["tasks"][name.casefold()] |= {"Enabled": enabled, "Xml": task_xml.write(kept)}
        self._runner.schedule(name)
        return {"State": self.get(name)["State"]}

    def start(self, path: str) -> dict[str, Any]:
        """Run on demand; returns {"State"} once the process is started or has failed to start.

        Raises: WindowsError 0x80070002 no such task, 0x80041326 disabled, 0x800710E0 not allowed on demand.
        """
        name, record = self._record(path)
        if record is None:
            raise missing()
        if not record["Enabled"]:
            raise com_error(0x80041326, "The task is disabled. (Exception from HRESULT: 0x80041326)")
        if not task_xml.read(record["Xml"]).flag("Settings/AllowStartOnDemand", True):
            raise com_error(
                NOT_STARTED, "The operator or administrator has refused the request. (0x800710E0)"
            )
        self.log.write(log.ON_DEMAND, name)
        self._runner.launch(name, "demand")
        return {"State": self.get(name)["State"]}

    def stop(self, path: str) -> dict[str, Any]:
        """Terminate the root process of every instance, not its children; returns {"State"} when they
        ended.
        """
        name, record = self._record(path)
        if record is None:
            raise missing()
        self._runner.stop(name)
        return {"State": self.get(name)["State"]}

    # -- life of the box

    def boot(self, starter: ProcessStarter | None) -> None:
        """Begin to run tasks."""
        self._runner.boot(starter)

    def shut_down(self) -> None:
        """Stop the clock and end every instance with its children."""
        self._runner.shut_down()

    def fire(self, path: str, trigger: str) -> None:
        """Let a trigger of that kind fire now, as an event, a logon or the clock would."""
        _, record = self._record(path)
        if record is None:
            raise missing()
        for node in triggers(task_xml.read(record["Xml"])):
            if node.name == trigger and node.flag("Enabled", True):
                self._runner.begin(path, node)

    def wait_until(self, condition: Callable[[], bool], timeout_s: float = 30) -> bool:
        """Block until the condition holds; looked at whenever an instance begins or ends."""
        return self._runner.wait_until(condition, timeout_s)

    # -- inside

    def _record(self, path: str) -> tuple[str, dict[str, Any] | None]:
        record = self._box.store.get("tasks", path.casefold())
        return (record["Path"], record) if record else (path, None)

    @staticmethod
    def _state(record: dict[str, Any], instances: list[Instance], queued: int) -> str:
        if instances:
            return "Running"
        if queued:
            return "Queued"
        return "Ready" if record["Enabled"] else "Disabled"
