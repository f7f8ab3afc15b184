"""The task scheduler of a simulated box: stores tasks in the service's shape and really starts their
processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from simbox.windows import task_schema as schema
from simbox.windows import task_xml
from simbox.windows.errors import WindowsError, com_error, signed
from simbox.windows.process import utc_text
from simbox.windows.task_rights import logs_on, prepare, session_of, triggers
from simbox.windows.task_run import NOT_STARTED, TERMINATED_BY_USER, Instance
from simbox.windows.task_triggers import next_fire, repeated
from simbox.windows.task_xml import Node
from simbox.windows.timers import Timers

if TYPE_CHECKING:
    from simbox.box import Box
    from simbox.windows.starter import ProcessStarter

NEVER_RUN = 0x41303
RUNNING = 0x41301
_LAUNCH_WAIT_S = 60
_SHUT_DOWN_WAIT_S = 10


def _missing() -> WindowsError:
    return WindowsError(
        "System.IO.FileNotFoundException",
        "The system cannot find the file specified. (Exception from HRESULT: 0x80070002)",
        0x80070002,
        "ObjectNotFound",
        "FileNotFoundException",
    )


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
            "create_folder",
        }
    )

    def __init__(self, box: Box) -> None:
        self._box = box
        self._changed = threading.Condition(threading.RLock())
        self._instances: dict[str, list[Instance]] = {}
        self._queued: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._timers = Timers(f"{box.name} scheduler")
        self._starter: ProcessStarter | None = None

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
                "Error",
            )
            return {"TaskPath": path, "Exists": False, **dict.fromkeys(absent), "Instances": []}
        with self._changed:
            instances = list(self._instances.get(name.casefold(), []))
            queued = self._queued.get(name.casefold(), 0)
        next_time = self._timers.next_time(name.casefold()) if record["Enabled"] else None
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
            "Instances": [
                {"EnginePid": instance.pid, "InstanceGuid": instance.guid, "State": "Running"}
                for instance in instances
            ],
            "Error": None,
        }

    def tasks(self, folder: str = "\\") -> list[str]:
        """Full paths of the tasks in one folder."""
        prefix = folder.rstrip("\\") + "\\"
        names = [record["Path"] for record in self._box.store.get("tasks").values()]
        return sorted(
            name for name in names if name.rpartition("\\")[0].casefold() + "\\" == prefix.casefold()
        )

    def folders(self) -> list[str]:
        """All task folders; one that was made for a task stays when the task is deleted."""
        return list(self._box.store.get("task_folders"))

    def folder(self, path: str) -> str:
        """The folder's path in its own case. Raises: WindowsError 0x80070002 when there is none."""
        wanted = "\\" + path.strip("\\")
        for known in ["\\", *self.folders()]:
            if known.casefold() == wanted.casefold():
                return known
        raise _missing()

    # -- changing

    def create_folder(self, path: str) -> str:
        """Make a task folder and those above it. Raises: WindowsError 0x800700B7 when it exists."""
        wanted = "\\" + path.strip("\\")
        if wanted.casefold() in {known.casefold() for known in ["\\", *self.folders()]}:
            raise com_error(
                0x800700B7,
                "Cannot create a file when that file already exists. (Exception from HRESULT: 0x800700B7)",
            )
        with self._box.store.change() as state:
            self._make_folders(state, wanted + "\\x")
        return wanted

    def validate(self, path: str, xml: str) -> dict[str, Any]:
        """TASK_VALIDATE_ONLY, as Test-BoxTask gives it."""
        try:
            prepare(self._box, path, xml)
        except WindowsError as error:
            return {"Valid": False, "Error": {"hresult": error.wire()["hresult"], "message": error.message}}
        return {"Valid": True, "Error": None}

    def register(self, path: str, xml: str) -> dict[str, Any]:
        """Create or update (a running instance goes on). Returns {"Xml": stored shape}.

        Raises: WindowsError with the service's HRESULT for XML it does not take, 0x80070005 without the
        rights.
        """
        task = prepare(self._box, path, xml)
        info = task.child("RegistrationInfo") or Node("RegistrationInfo")
        if not info.value("Date"):
            info.children.insert(0, Node("Date", {}, datetime.now().strftime("%Y-%m-%dT%H:%M:%S")))
        info.drop("URI")
        info.put("URI", path)
        text = task_xml.write(task)
        key = path.casefold()
        with self._box.store.change() as state:
            self._make_folders(state, path)
            old = state["tasks"].get(key, {})
            state["tasks"][key] = {
                "Path": old.get("Path", path),
                "Xml": text,
                "Enabled": task.flag("Settings/Enabled", True),
                "LastRunTimeUtc": old.get("LastRunTimeUtc"),
                "LastTaskResult": old.get("LastTaskResult", NEVER_RUN),
            }
        self._box.events.append("task_registered", path=path, updated=bool(old))
        self._schedule(path)
        for trigger in triggers(task):
            if trigger.name == "RegistrationTrigger" and trigger.flag("Enabled", True):
                self._begin(path, trigger)
        return {"Xml": text}

    def delete(self, path: str) -> dict[str, Any]:
        """Delete the task; its folder and a running process stay. Returns {"Changed": it was there}."""
        self._timers.drop(path.casefold())
        removed = self._box.store.remove("tasks", path.casefold())
        if removed:
            self._box.events.append("task_deleted", path=path)
        return {"Changed": removed}

    def set_enabled(self, path: str, enabled: bool) -> dict[str, Any]:
        """Enable or disable; a running instance goes on. Returns {"State"}."""
        name, record = self._record(path)
        if record is None:
            raise _missing()
        task = task_xml.read(record["Xml"])
        settings = task.child("Settings") or Node("Settings")
        settings.drop("Enabled")
        if not enabled:
            settings.put("Enabled", "false")
        stored = task_xml.stored(task, self._box.windows.account.sid_of)
        with self._box.store.change() as state:
            state["tasks"][name.casefold()] |= {"Enabled": enabled, "Xml": task_xml.write(stored)}
        self._schedule(name)
        return {"State": self.get(name)["State"]}

    def start(self, path: str) -> dict[str, Any]:
        """Run on demand; returns {"State"} once the process is started or has failed to start.

        Raises: WindowsError 0x80070002 no such task, 0x80041326 disabled, 0x800710E0 not allowed on demand.
        """
        name, record = self._record(path)
        if record is None:
            raise _missing()
        if not record["Enabled"]:
            raise com_error(0x80041326, "The task is disabled. (Exception from HRESULT: 0x80041326)")
        if not task_xml.read(record["Xml"]).flag("Settings/AllowStartOnDemand", True):
            raise com_error(
                NOT_STARTED, "The operator or administrator has refused the request. (0x800710E0)"
            )
        self._launch(name, "demand")
        return {"State": self.get(name)["State"]}

    def stop(self, path: str) -> dict[str, Any]:
        """Terminate the root process of every instance, not its children; returns {"State"} when they
        ended.
        """
        name, record = self._record(path)
        if record is None:
            raise _missing()
        with self._changed:
            instances = list(self._instances.get(name.casefold(), []))
            self._queued.pop(name.casefold(), None)
        for instance in instances:
            instance.stop()
        for instance in instances:
            instance.thread.join(_SHUT_DOWN_WAIT_S)
        return {"State": self.get(name)["State"]}

    # -- life of the box

    def boot(self, starter: ProcessStarter | None) -> None:
        """Begin to run tasks: boot triggers, then logon triggers when somebody is logged on, then the
        clock.
        """
        self._starter = starter
        self._timers.begin()
        for record in self._box.store.get("tasks").values():
            if not record["Enabled"]:
                continue
            self._schedule(record["Path"])
            for trigger in triggers(task_xml.read(record["Xml"])):
                at_logon = trigger.name == "LogonTrigger" and logs_on(self._box, trigger)
                if trigger.flag("Enabled", True) and (trigger.name == "BootTrigger" or at_logon):
                    self._begin(record["Path"], trigger)

    def shut_down(self) -> None:
        """Stop the clock and end every instance with its children."""
        self._timers.stop()
        self._starter = None
        with self._changed:
            self._queued.clear()
            instances = [instance for known in self._instances.values() for instance in known]
        for instance in instances:
            instance.stop(tree=True)
        for instance in instances:
            instance.thread.join(_SHUT_DOWN_WAIT_S)

    def fire(self, path: str, trigger: str) -> None:
        """Let a trigger of that kind fire now, as an event, a logon or the clock would."""
        _, record = self._record(path)
        if record is None:
            raise _missing()
        for node in triggers(task_xml.read(record["Xml"])):
            if node.name == trigger and node.flag("Enabled", True):
                self._begin(path, node)

    def wait_until(self, condition: Callable[[], bool], timeout_s: float = 30) -> bool:
        """Block until the condition holds; looked at whenever an instance begins or ends."""
        with self._changed:
            return self._changed.wait_for(condition, timeout_s)

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

    @staticmethod
    def _make_folders(state: dict[str, Any], path: str) -> None:
        parts = path.split("\\")[1:-1]
        for index in range(len(parts)):
            folder = "\\" + "\\".join(parts[: index + 1])
            if folder.casefold() not in {known.casefold() for known in state["task_folders"]}:
                state["task_folders"].append(folder)

    def _begin(self, path: str, trigger: Node) -> None:
        """A trigger fires: launch after its delay, and again by its repetition."""
        now = datetime.now(UTC)
        base = now + timedelta(seconds=schema.seconds(trigger.value("Delay")) or 0)
        key = path.casefold()

        def again(after: datetime) -> None:
            following = repeated(trigger, base, after)
            if following is not None:
                self._timers.at(following, key, lambda: fire(following))

        def fire(when: datetime) -> None:
            again(max(when, datetime.now(UTC)))
            self._launch(path, trigger.name)

        if base > now:
            self._timers.at(base, key, lambda: fire(base))
        else:
            fire(now)

    def _schedule(self, path: str) -> None:
        """Put the next firing of every clock trigger of the task into the timers."""
        key = path.casefold()
        self._timers.drop(key)
        _, record = self._record(path)
        if record is None or not record["Enabled"]:
            return
        for trigger in triggers(task_xml.read(record["Xml"])):
            self._arm(path, trigger, datetime.now(UTC))

    def _arm(self, path: str, trigger: Node, after: datetime) -> None:
        when = next_fire(trigger, after)
        if when is None:
            return

        def due() -> None:
            self._arm(path, trigger, max(when, datetime.now(UTC)))
            self._launch(path, trigger.name)

        self._timers.at(when, path.casefold(), due)

    def _launch(self, path: str, reason: str) -> None:
        key = path.casefold()
        _, record = self._record(path)
        if record is None or self._starter is None:
            return
        task = task_xml.read(record["Xml"])
        session_id = session_of(self._box, task)
        if session_id is None:
            self._box.events.append("task_not_started", path=path, reason="nobody is logged on")
            self._box.store.set("tasks", key, "LastTaskResult", value=NOT_STARTED)
            return
        with self._changed:
            running = self._instances.setdefault(key, [])
            policy = task.value("Settings/MultipleInstancesPolicy", "IgnoreNew")
            if running and policy == "IgnoreNew":
                self._box.events.append("task_ignored", path=path, reason=reason)
                return
            if running and policy == "Queue":
                self._queued[key] = self._queued.get(key, 0) + 1
                return
            if policy == "StopExisting":
                for other in running:
                    other.stop()
            instance = Instance(
                self._box, task, session_id, self._starter, lambda ended: self._ended(path, ended)
            )
            running.append(instance)
        self._box.store.set("tasks", key, "LastRunTimeUtc", value=utc_text(datetime.now(UTC)))
        self._box.events.append("task_started", path=path, reason=reason, instance=instance.guid)
        instance.thread.start()
        instance.launched.wait(_LAUNCH_WAIT_S)
        limit_s = schema.seconds(task.value("Settings/ExecutionTimeLimit", "PT72H"))
        if limit_s:
            end = datetime.now(UTC) + timedelta(seconds=limit_s)
            self._timers.at(end, (key, instance.guid), lambda: self._time_out(path, instance))
        with self._changed:
            self._changed.notify_all()

    def _ended(self, path: str, instance: Instance) -> None:
        key = path.casefold()
        self._timers.drop((key, instance.guid))
        with self._box.store.change() as state:
            if key in state["tasks"]:
                state["tasks"][key]["LastTaskResult"] = instance.result & 0xFFFFFFFF
        with self._changed:
            self._instances[key].remove(instance)
            queued = self._queued.pop(key, 0)
            if queued > 1:
                self._queued[key] = queued - 1
            self._changed.notify_all()
        self._box.events.append("task_ended", path=path, code=instance.result & 0xFFFFFFFF)
        if instance.launch_failed:
            self._retry(path)
        elif instance.result != TERMINATED_BY_USER:
            self._failures.pop(key, None)
        if queued:
            threading.Thread(target=self._launch, args=(path, "queue"), daemon=True).start()

    def _retry(self, path: str) -> None:
        """RestartOnFailure covers an action that could not be started, not the program's own exit code."""
        key = path.casefold()
        _, record = self._record(path)
        restart = task_xml.read(record["Xml"]).find("Settings/RestartOnFailure") if record else None
        if restart is None or self._failures.get(key, 0) >= int(restart.value("Count")):
            self._failures.pop(key, None)
            return
        self._failures[key] = self._failures.get(key, 0) + 1
        when = datetime.now(UTC) + timedelta(seconds=schema.seconds(restart.value("Interval")) or 60)
        self._timers.at(when, key, lambda: self._launch(path, "RestartOnFailure"))

    def _time_out(self, path: str, instance: Instance) -> None:
        self._box.events.append("task_time_limit", path=path)
        instance.stop()
