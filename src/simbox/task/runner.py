"""Running the tasks of a simulated box: its clock, its instances, and what the scheduler does about them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from simbox.process.state import utc_text
from simbox.task import events as log
from simbox.task import schema
from simbox.task import xml as task_xml
from simbox.task.rights import logs_on, rights, session_of, triggers
from simbox.task.run import NOT_STARTED, TERMINATED_BY_USER, Instance
from simbox.task.timers import Timers
from simbox.task.triggers import next_fire, repeated
from simbox.task.xml import Node

if TYPE_CHECKING:
    from simbox.box import Box
    from simbox.task.starter import ProcessStarter

_LAUNCH_WAIT_S = 60
_SHUT_DOWN_WAIT_S = 10


class TaskRunner:
    """Instances of the tasks in the box's store, started by triggers and on demand.

    Args:
        events: the scheduler's own log.
    """

    def __init__(self, box: Box, events: log.TaskEvents) -> None:
        self._box = box
        self._log = events
        self._changed = threading.Condition(threading.RLock())
        self._instances: dict[str, list[Instance]] = {}
        self._queued: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._timers = Timers(f"{box.name} scheduler")
        self._starter: ProcessStarter | None = None

    def instances(self, path: str) -> list[Instance]:
        """Those that run now."""
        with self._changed:
            return list(self._instances.get(path.casefold(), []))

    def queued(self, path: str) -> int:
        """How many starts wait for the end of an instance."""
        with self._changed:
            return self._queued.get(path.casefold(), 0)

    def next_time(self, path: str) -> datetime | None:
        """When the clock starts the task next."""
        return self._timers.next_time(path.casefold())

    def rights_of(self, process_ids: list[int]) -> tuple[str, bool] | None:
        """SID and elevation of the first of these processes that is the root of an instance."""
        with self._changed:
            roots = {one.pid: one for known in self._instances.values() for one in known}
        for process_id in process_ids:
            if process_id in roots:
                return rights(self._box, roots[process_id].task)
        return None

    def boot(self, starter: ProcessStarter | None) -> None:
        """Begin to run tasks: boot triggers, then logon triggers when somebody is logged on, then the
        clock.
        """
        self._starter = starter
        self._timers.begin()
        for record in self._box.store.get("tasks").values():
            if not record["Enabled"]:
                continue
            self.schedule(record["Path"])
            for trigger in triggers(task_xml.read(record["Xml"])):
                at_logon = trigger.name == "LogonTrigger" and logs_on(self._box, trigger)
                if trigger.flag("Enabled", True) and (trigger.name == "BootTrigger" or at_logon):
                    self.begin(record["Path"], trigger)

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

    def stop(self, path: str) -> None:
        """Terminate the root process of every instance, not its children; returns when they ended."""
        with self._changed:
            instances = self.instances(path)
            self._queued.pop(path.casefold(), None)
        for instance in instances:
            self._log.write(log.STOPPED, path, TaskInstanceId=instance.guid)
            instance.stop()
        for instance in instances:
            instance.thread.join(_SHUT_DOWN_WAIT_S)

    def forget(self, path: str) -> None:
        """Let the clock start this task no more."""
        self._timers.drop(path.casefold())

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Block until the condition holds; looked at whenever an instance begins or ends."""
        with self._changed:
            return self._changed.wait_for(condition, timeout_s)

    def _record(self, path: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._box.store.get("tasks", path.casefold())
        return found

    def begin(self, path: str, trigger: Node) -> None:
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
            self.launch(path, trigger.name)

        if base > now:
            self._timers.at(base, key, lambda: fire(base))
        else:
            fire(now)

    def schedule(self, path: str) -> None:
        """Put the next firing of every clock trigger of the task into the timers."""
        key = path.casefold()
        self._timers.drop(key)
        record = self._record(path)
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
            self.launch(path, trigger.name)

        self._timers.at(when, path.casefold(), due)

    def launch(self, path: str, reason: str) -> None:
        """Start an instance, or do what the task's policy says when one runs; returns once it is launched."""
        key = path.casefold()
        record = self._record(path)
        if record is None or self._starter is None:
            return
        task = task_xml.read(record["Xml"])
        session_id = session_of(self._box, task)
        if session_id is None:
            self._box.events.append("task_not_started", path=path, reason="nobody is logged on")
            self._log.write(log.NOT_LOGGED_ON, record["Path"])
            self._box.store.set("tasks", key, "LastTaskResult", value=NOT_STARTED)
            return
        with self._changed:
            running = self._instances.setdefault(key, [])
            policy = task.value("Settings/MultipleInstancesPolicy", "IgnoreNew")
            if running and policy == "IgnoreNew":
                self._box.events.append("task_ignored", path=path, reason=reason)
                self._log.write(log.IGNORED, record["Path"], TaskInstanceId=running[0].guid)
                return
            if running and policy == "Queue":
                self._queued[key] = self._queued.get(key, 0) + 1
                self._log.write(log.QUEUED, record["Path"], TaskInstanceId=running[0].guid)
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
        self._log.write(log.STARTED, record["Path"], InstanceId=instance.guid)
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
        # Before the state is Ready: who sees that finds its end in the log.
        self._box.events.append("task_ended", path=path, code=instance.result & 0xFFFFFFFF)
        code = instance.result & 0xFFFFFFFF
        if instance.launch_failed:
            self._log.write(log.ACTION_FAILED, path, TaskInstanceId=instance.guid, ResultCode=code)
        elif instance.result == TERMINATED_BY_USER:
            self._log.write(log.TERMINATED, path, TaskInstanceId=instance.guid)
        else:
            self._log.write(log.ACTION_ENDED, path, TaskInstanceId=instance.guid, ResultCode=code)
            self._log.write(log.FINISHED, path, InstanceId=instance.guid)
        with self._changed:
            self._instances[key].remove(instance)
            queued = self._queued.pop(key, 0)
            if queued > 1:
                self._queued[key] = queued - 1
            self._changed.notify_all()
        if instance.launch_failed:
            self._retry(path)
        elif instance.result != TERMINATED_BY_USER:
            self._failures.pop(key, None)
        if queued:
            threading.Thread(target=self.launch, args=(path, "queue"), daemon=True).start()

    def _retry(self, path: str) -> None:
        """RestartOnFailure covers an action that could not be started, not the program's own exit code."""
        key = path.casefold()
        record = self._record(path)
        restart = task_xml.read(record["Xml"]).find("Settings/RestartOnFailure") if record else None
        if restart is None or self._failures.get(key, 0) >= int(restart.value("Count")):
            self._failures.pop(key, None)
            return
        self._failures[key] = self._failures.get(key, 0) + 1
        when = datetime.now(UTC) + timedelta(seconds=schema.seconds(restart.value("Interval")) or 60)
        self._timers.at(when, key, lambda: self.launch(path, "RestartOnFailure"))

    def _time_out(self, path: str, instance: Instance) -> None:
        self._box.events.append("task_time_limit", path=path)
        self._log.write(log.TIME_LIMIT, path, TaskInstanceId=instance.guid)
        instance.stop()
