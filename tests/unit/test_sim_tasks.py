"""The task scheduler of a simulated box, with processes that only the test ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from simbox.box import Box
from simbox.errors import WindowsError
from simbox.task import xml as task_xml
from simbox.task.triggers import next_fire

NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"


class FakeProcess:
    """Ends when told to."""

    def __init__(self, pid: int, command_line: str, priority_class: str, session_id: int) -> None:
        self.pid = pid
        self.command_line = command_line
        self.priority_class = priority_class
        self.session_id = session_id
        self.killed = ""
        self._code: int | None = None
        self._ended = threading.Event()

    def end(self, code: int) -> None:
        self._code = code
        self._ended.set()

    def wait(self, timeout_s: float | None = None) -> int | None:
        self._ended.wait(timeout_s)
        return self._code

    def kill_root(self) -> None:
        self.killed = "root"
        self.end(1)

    def kill_tree(self) -> None:
        self.killed = "tree"
        self.end(1)


class Starter:
    def __init__(self) -> None:
        self.started: list[FakeProcess] = []

    def __call__(
        self,
        box: Box,
        command: str,
        arguments: str,
        working_directory: str | None,
        *,
        priority_class: str = "Normal",
        session_id: int = 0,
    ) -> FakeProcess:
        if "missing" in command:
            raise WindowsError("System.ComponentModel.Win32Exception", "not found", 0x80070002)
        process = FakeProcess(
            100 + len(self.started), f"{command} {arguments}".strip(), priority_class, session_id
        )
        self.started.append(process)
        return process


@pytest.fixture
def starter() -> Starter:
    return Starter()


@pytest.fixture
def box(tmp_path: Path, starter: Starter) -> Iterator[Box]:
    box = Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "rtx4090d")
    box.boot(starter)
    yield box
    box.shut_down()


def xml(
    *,
    triggers: str = "",
    principal: str = "<UserId>S-1-5-18</UserId>",
    settings: str = "",
    actions: str = "",
    info: str = "",
    head: str = "",
) -> str:
    action = actions or "<Exec><Command>C:\\ninfer\\serve.bat</Command></Exec>"
    return (
        f'{head}<Task version="1.2" xmlns="{NAMESPACE}"><RegistrationInfo>{info}</RegistrationInfo>'
        f'<Triggers>{triggers}</Triggers><Principals><Principal id="A">{principal}</Principal></Principals>'
        f'<Settings>{settings}</Settings><Actions Context="A">{action}</Actions></Task>'
    )


def stored(box: Box, text: str) -> task_xml.Node:
    return task_xml.read(box.windows.scheduler.register("\\T", text)["Xml"])


# -- shape


def test_sections_and_settings_come_in_the_services_order_and_defaults_go(box: Box) -> None:
    task = stored(
        box,
        xml(
            triggers="<LogonTrigger><Enabled>true</Enabled></LogonTrigger>",
            settings="<Priority>7</Priority><StartWhenAvailable>1</StartWhenAvailable><Enabled>True</Enabled>"
            "<RestartOnFailure><Interval>PT60M</Interval><Count>3</Count></RestartOnFailure>"
            "<ExecutionTimeLimit>P3D</ExecutionTimeLimit><StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>",
            principal="<UserId>Administrator</UserId><LogonType>InteractiveToken</LogonType>"
            "<RunLevel>LeastPrivilege</RunLevel>",
            info="<Description>  two words </Description>",
        ),
    )
    assert [node.name for node in task.children] == [
        "RegistrationInfo", "Principals", "Settings", "Triggers", "Actions",
    ]  # fmt: skip
    settings = task.child("Settings")
    assert settings is not None
    assert [node.name for node in settings.children] == [
        "StopIfGoingOnBatteries",
        "MultipleInstancesPolicy",
        "RestartOnFailure",
        "StartWhenAvailable",
        "IdleSettings",
    ]  # fmt: skip
    restart = settings.child("RestartOnFailure")
    assert restart is not None
    assert [(node.name, node.text) for node in restart.children] == [("Count", "3"), ("Interval", "PT1H")]
    assert task.value("Settings/StartWhenAvailable") == "true"
    assert task.value("RegistrationInfo/Description") == "two words"
    assert task.value("RegistrationInfo/URI") == "\\T"
    assert task.value("Principals/Principal/UserId").endswith("-500")
    assert task.find("Principals/Principal/RunLevel") is None
    assert "<LogonTrigger />" in box.windows.scheduler.get("\\T")["Xml"]


def test_a_service_account_loses_its_logon_type_and_the_version_rises(box: Box) -> None:
    task = stored(
        box,
        xml(
            principal="<UserId>SYSTEM</UserId><LogonType>Password</LogonType>",
            settings="<UseUnifiedSchedulingEngine>true</UseUnifiedSchedulingEngine>",
        ),
    )
    assert task.value("Principals/Principal/UserId") == "S-1-5-18"
    assert task.find("Principals/Principal/LogonType") is None
    assert task.attributes["version"] == "1.3"


def test_the_stored_shape_is_stable_when_registered_again(box: Box) -> None:
    first = box.windows.scheduler.register(
        "\\T", xml(settings="<ExecutionTimeLimit>PT0S</ExecutionTimeLimit>")
    )
    again = box.windows.scheduler.register("\\t", first["Xml"])
    assert again["Xml"].replace("\\t<", "\\T<") == first["Xml"]
    assert "<ExecutionTimeLimit>PT0S</ExecutionTimeLimit>" in again["Xml"]
    assert box.windows.scheduler.tasks() == ["\\T"]


@pytest.mark.parametrize(
    ("text", "code", "detail"),
    [
        (xml(settings="<Nonsense>1</Nonsense>"), 0x80041316, "Nonsense"),
        (xml(settings="<Priority>11</Priority>"), 0x80041318, "Priority:11"),
        (xml(settings="<Enabled>yes</Enabled>"), 0x80041318, "Enabled:yes"),
        (xml(settings="<RestartOnFailure><Count>3</Count></RestartOnFailure>"), 0x80041319, "Interval"),
        (xml(triggers="<TimeTrigger/>"), 0x80041319, "StartBoundary"),
        (
            xml(triggers="<LogonTrigger><Repetition><Interval>PT5S</Interval></Repetition></LogonTrigger>"),
            0x80041318,
            "Interval:PT5S",
        ),
        (
            xml(
                triggers="<LogonTrigger><Repetition><Interval>PT1M</Interval>"
                "<Duration>P10675199DT2H48M5.4775807S</Duration></Repetition></LogonTrigger>"
            ),
            0x80041318,
            "Duration",
        ),
        (xml().replace('Context="A"', 'Context="B"'), 0x80041318, "Actions:B"),
        (xml(actions="<Exec><Arguments>x</Arguments></Exec>"), 0x80041319, "Command"),
        (xml().replace(NAMESPACE, "urn:x"), 0x80041317, "Task"),
        (xml()[:-3], 0x8004131A, ""),
        (
            xml(head='<?xml version="1.0" encoding="UTF-8"?>'),
            0x8004131A,
            "::ERROR: unable to switch the encoding",
        ),
        (xml(principal="<UserId>nobody</UserId>"), 0x80070534, "translated"),
    ],
)
def test_what_is_wrong_is_refused_with_its_code_and_place(
    box: Box, text: str, code: int, detail: str
) -> None:
    verdict = box.windows.scheduler.validate("\\T", text)
    assert verdict["Valid"] is False
    assert verdict["Error"]["hresult"] == f"0x{code:08X}"
    assert detail in verdict["Error"]["message"]
    with pytest.raises(WindowsError) as caught:
        box.windows.scheduler.register("\\T", text)
    assert caught.value.hresult == code
    assert not box.windows.scheduler.get("\\T")["Exists"]


def test_validation_changes_nothing(box: Box) -> None:
    assert box.windows.scheduler.validate("\\T", xml()) == {"Valid": True, "Error": None}
    assert not box.windows.scheduler.get("\\T")["Exists"]


def test_an_ordinary_user_may_not_register_for_everybody(box: Box) -> None:
    box.store.set("system", "elevated", value=False)
    own = "<UserId>Administrator</UserId><LogonType>InteractiveToken</LogonType>"
    for text in (
        xml(triggers="<LogonTrigger/>", principal=own),
        xml(principal=own + "<RunLevel>HighestAvailable</RunLevel>"),
        xml(),
    ):
        assert box.windows.scheduler.validate("\\T", text)["Error"]["hresult"] == "0x80070005"
    assert box.windows.scheduler.validate("\\T", xml(principal=own))["Valid"]


def test_the_folder_of_a_deleted_task_stays(box: Box) -> None:
    scheduler = box.windows.scheduler
    scheduler.register("\\Ours\\Deep\\T", xml())
    assert scheduler.tasks("\\ours\\deep") == ["\\Ours\\Deep\\T"]
    assert scheduler.delete("\\ours\\deep\\t") == {"Changed": True}
    assert scheduler.delete("\\ours\\deep\\t") == {"Changed": False}
    assert {"\\Ours", "\\Ours\\Deep"} <= set(scheduler.folders())
    assert scheduler.folder("\\OURS") == "\\Ours"
    with pytest.raises(WindowsError):
        scheduler.create_folder("\\Ours")
    with pytest.raises(WindowsError):
        scheduler.folder("\\Nonesuch")


# -- running


def test_a_start_runs_the_process_and_its_end_is_seen(box: Box, starter: Starter) -> None:
    scheduler = box.windows.scheduler
    scheduler.register("\\T", xml(settings="<Priority>4</Priority>"))
    assert scheduler.get("\\T")["LastTaskResult"] == 0x41303
    assert scheduler.start("\\T") == {"State": "Running"}
    running = scheduler.get("\\t")
    assert running["LastTaskResult"] == 0x41301
    assert running["Instances"][0]["EnginePid"] == starter.started[0].pid
    assert (starter.started[0].priority_class, starter.started[0].session_id) == ("Normal", 0)
    starter.started[0].end(0xC000013A)
    assert scheduler.wait_until(lambda: scheduler.get("\\T")["State"] == "Ready")
    assert scheduler.get("\\T")["LastTaskResult"] == -1073741510


def test_a_second_start_is_ignored_and_counted(box: Box, starter: Starter) -> None:
    box.windows.scheduler.register("\\T", xml())
    box.windows.scheduler.start("\\T")
    box.windows.scheduler.start("\\T")
    assert len(starter.started) == 1
    assert box.events.counts("task_ignored") == 1


def test_queue_and_stop_existing(box: Box, starter: Starter) -> None:
    scheduler = box.windows.scheduler
    scheduler.register("\\Q", xml(settings="<MultipleInstancesPolicy>Queue</MultipleInstancesPolicy>"))
    scheduler.start("\\Q")
    scheduler.start("\\Q")
    assert len(starter.started) == 1
    starter.started[0].end(0)
    assert scheduler.wait_until(lambda: len(starter.started) == 2)
    scheduler.register("\\S", xml(settings="<MultipleInstancesPolicy>StopExisting</MultipleInstancesPolicy>"))
    scheduler.start("\\S")
    first = starter.started[-1]
    scheduler.start("\\S")
    assert first.killed == "root"
    assert scheduler.wait_until(lambda: len(scheduler.get("\\S")["Instances"]) == 1)


def test_stop_kills_the_root_alone(box: Box, starter: Starter) -> None:
    box.windows.scheduler.register("\\T", xml())
    box.windows.scheduler.start("\\T")
    assert box.windows.scheduler.stop("\\T") == {"State": "Ready"}
    assert starter.started[0].killed == "root"
    assert box.windows.scheduler.get("\\T")["LastTaskResult"] == 0x41306


def test_a_disabled_task_does_not_start(box: Box, starter: Starter) -> None:
    scheduler = box.windows.scheduler
    scheduler.register("\\T", xml())
    assert scheduler.set_enabled("\\T", False) == {"State": "Disabled"}
    assert "<Enabled>false</Enabled>" in scheduler.get("\\T")["Xml"]
    with pytest.raises(WindowsError) as caught:
        scheduler.start("\\T")
    assert caught.value.hresult == 0x80041326
    assert scheduler.set_enabled("\\T", True) == {"State": "Ready"}
    assert "<Enabled>false" not in scheduler.get("\\T")["Xml"]
    assert not starter.started


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_a_missing_task_is_an_error(box: Box, verb: str) -> None:
    with pytest.raises(WindowsError) as caught:
        getattr(box.windows.scheduler, verb)("\\None")
    assert caught.value.hresult == 0x80070002


def test_a_program_that_is_not_there_is_tried_again_as_told(box: Box) -> None:
    scheduler = box.windows.scheduler
    scheduler.register(
        "\\T",
        xml(
            settings="<RestartOnFailure><Interval>PT1M</Interval><Count>1</Count></RestartOnFailure>",
            actions="<Exec><Command>C:\\missing.exe</Command></Exec>",
        ),
    )
    assert scheduler.start("\\T") == {"State": "Ready"}
    state = scheduler.get("\\T")
    assert state["LastTaskResult"] == -2147024894
    assert state["NextRunTimeUtc"] is not None
    assert box.events.counts("task_launch_failed") == 1


def test_actions_run_in_sequence_with_variables_expanded(box: Box, starter: Starter) -> None:
    scheduler = box.windows.scheduler
    scheduler.register(
        "\\T",
        xml(
            actions='<Exec><Command>"%SystemRoot%\\System32\\one.exe"</Command>'
            "<Arguments>a %NOPE%</Arguments></Exec>"
            "<Exec><Command>C:\\two.exe</Command></Exec>"
        ),
    )
    scheduler.start("\\T")
    assert starter.started[0].command_line == "C:\\Windows\\System32\\one.exe a %NOPE%"
    starter.started[0].end(5)
    while len(starter.started) < 2:
        starter.started[0].wait()
    starter.started[1].end(0)
    assert scheduler.wait_until(lambda: scheduler.get("\\T")["State"] == "Ready")
    assert scheduler.get("\\T")["LastTaskResult"] == 0


def test_boot_and_logon_triggers_fire_at_boot(tmp_path: Path) -> None:
    starter = Starter()
    box = Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "rtx4090d")
    own = "<UserId>Administrator</UserId><LogonType>InteractiveToken</LogonType>"
    box.windows.scheduler.register("\\Logon", xml(triggers="<LogonTrigger/>", principal=own))
    box.windows.scheduler.register("\\Boot", xml(triggers="<BootTrigger/>"))
    box.windows.scheduler.register(
        "\\Off", xml(triggers="<BootTrigger><Enabled>false</Enabled></BootTrigger>")
    )
    other = "<LogonTrigger><UserId>fleet</UserId></LogonTrigger>"
    box.windows.scheduler.register("\\Other", xml(triggers=other))
    box.boot(starter)
    assert sorted(process.session_id for process in starter.started) == [0, 1]
    box.shut_down()
    assert {process.killed for process in starter.started} == {"tree"}


def test_without_anybody_logged_on_an_interactive_task_does_not_run(tmp_path: Path) -> None:
    starter = Starter()
    box = Box.open(tmp_path / "box", "gpu01", "127.45.99.1", "headless")
    own = "<UserId>Administrator</UserId><LogonType>{}</LogonType>"
    box.windows.scheduler.register(
        "\\I", xml(triggers="<LogonTrigger/>", principal=own.format("InteractiveToken"))
    )
    box.boot(starter)
    box.windows.scheduler.start("\\I")
    assert not starter.started
    assert box.windows.scheduler.get("\\I")["LastTaskResult"] == -2147020576
    box.windows.scheduler.register("\\S", xml(principal=own.format("S4U")))
    box.windows.scheduler.start("\\S")
    assert len(starter.started) == 1
    box.shut_down()


def test_a_repeating_trigger_starts_a_task_that_died(box: Box, starter: Starter) -> None:
    """The clock really fires: the boundary lies so that the next minute begins almost at once."""
    begin = (datetime.now(UTC) + timedelta(seconds=0.5) - timedelta(minutes=7)).strftime(
        "%Y-%m-%dT%H:%M:%S.%fZ"
    )
    box.windows.scheduler.register(
        "\\T",
        xml(
            triggers=f"<TimeTrigger><StartBoundary>{begin}</StartBoundary>"
            "<Repetition><Interval>PT1M</Interval></Repetition></TimeTrigger>"
        ),
    )
    assert box.windows.scheduler.wait_until(lambda: len(starter.started) == 1, 20)
    following = datetime.fromisoformat(box.windows.scheduler.get("\\T")["NextRunTimeUtc"][:26]).replace(
        tzinfo=UTC
    )
    assert timedelta(seconds=30) < following - datetime.now(UTC) < timedelta(seconds=61)


def test_a_process_that_runs_too_long_is_stopped(box: Box, starter: Starter) -> None:
    box.windows.scheduler.register("\\T", xml(settings="<ExecutionTimeLimit>PT0.2S</ExecutionTimeLimit>"))
    box.windows.scheduler.start("\\T")
    assert box.windows.scheduler.wait_until(lambda: starter.started[0].killed == "root")
    assert box.events.counts("task_time_limit") == 1


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ("<ScheduleByDay><DaysInterval>2</DaysInterval></ScheduleByDay>", "2026-03-03T10:00:00"),
        (
            "<ScheduleByWeek><DaysOfWeek><Friday/><Wednesday/></DaysOfWeek></ScheduleByWeek>",
            "2026-03-04T10:00:00",
        ),
        (
            "<ScheduleByMonth><DaysOfMonth><Day>Last</Day></DaysOfMonth></ScheduleByMonth>",
            "2026-03-31T10:00:00",
        ),
        (
            "<ScheduleByMonthDayOfWeek><Weeks><Week>2</Week></Weeks><DaysOfWeek><Monday/></DaysOfWeek>"
            "</ScheduleByMonthDayOfWeek>",
            "2026-03-09T10:00:00",
        ),
    ],
)
def test_calendar_triggers(trigger: str, expected: str) -> None:
    node = task_xml.read(
        f'<CalendarTrigger xmlns="{NAMESPACE}"><StartBoundary>2026-03-01T10:00:00</StartBoundary>{trigger}'
        "</CalendarTrigger>"
    )
    after = datetime(2026, 3, 1, 12).astimezone()
    assert next_fire(node, after.astimezone(UTC)) == datetime.fromisoformat(expected).astimezone(UTC)


def test_W16_a_program_that_ends_badly_is_started_again_by_its_trigger_alone(
    box: Box, starter: Starter
) -> None:
    """traycerai/traycer#916: RestartOnFailure covers programs that could not be started, not those that crashed."""
    scheduler = box.windows.scheduler
    restart = "<RestartOnFailure><Interval>PT1M</Interval><Count>3</Count></RestartOnFailure>"
    watchdog = (
        "<TimeTrigger><StartBoundary>2020-01-01T00:00:00</StartBoundary>"
        "<Repetition><Interval>PT1M</Interval></Repetition></TimeTrigger>"
    )
    for code in (1, 0xC0000005, 0xFFFFFFFF):
        for name, triggers in (("\\Alone", ""), ("\\Watched", watchdog)):
            scheduler.register(name, xml(triggers=triggers, settings=restart))
            scheduler.start(name)
            starter.started[-1].end(code)
            assert scheduler.wait_until(lambda name=name: scheduler.get(name)["State"] == "Ready")
            assert (scheduler.get(name)["NextRunTimeUtc"] is None) == (name == "\\Alone")


def test_the_log_is_written_only_while_it_is_on(box: Box, starter: Starter) -> None:
    scheduler = box.windows.scheduler
    scheduler.register("\\T", xml())
    assert scheduler.events("\\T") == []
    scheduler.log.enable()
    scheduler.register("\\T", xml())
    scheduler.start("\\T")
    scheduler.start("\\T")
    starter.started[0].end(3)
    assert scheduler.wait_until(lambda: scheduler.get("\\T")["State"] == "Ready")
    numbers = [event["Id"] for event in reversed(scheduler.events("\\t"))]
    assert numbers[:5] == [140, 110, 100, 110, 322]
    assert '<Data Name="ResultCode">3</Data>' in scheduler.events("\\T", [201])[0]["Xml"]


def test_rights_of_a_task_are_those_of_its_principal(box: Box, starter: Starter) -> None:
    scheduler, process = box.windows.scheduler, box.windows.process
    own = "<UserId>fleet</UserId><LogonType>S4U</LogonType><RunLevel>HighestAvailable</RunLevel>"
    scheduler.register("\\Own", xml(principal=own))
    scheduler.start("\\Own")
    pid = starter.started[-1].pid
    sid = box.windows.account.sid_of("fleet")
    assert scheduler.rights_of([9, pid]) == (sid, True)
    assert process.owner([pid]) == sid
    box.store.set("system", "highest_is_elevated", value=False)
    assert scheduler.rights_of([pid]) == (sid, False)
    assert process.owner([1]) == box.windows.account.sid_of("Administrator")
