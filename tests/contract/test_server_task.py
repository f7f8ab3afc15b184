"""The task of the server on a python box: each of its fields changed by hand is named and repaired."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from powershell import EngineBox, engine_box
from test_task_operations import Place
from windows_fleet import Fleet

from ninfer_fleet.server import operations as serve
from ninfer_fleet.settings import Settings
from winfleet.account.model import AccountSids
from winfleet.task import operations as scheduled_task
from winfleet.task.difference import DEFAULTS
from winfleet.task.merge import merged_task
from winfleet.task.model import Task
from winfleet.task.parse import parse_task
from winfleet.task.render import render_task

DECLARED = Settings.model_validate(
    {"serve": {"api_key": "env:NINFER_API_KEY"}, "task": {"account": "Administrator"}}
)
TASK = serve.task(DECLARED)
DAY_S = 86400
# Somebody's other value for each setting; what is declared as something else than Windows' default, last.
SETTINGS: dict[str, Any] = {
    "hidden": True,
    "wake_to_run": True,
    "run_only_if_idle": True,
    "run_only_if_network_available": True,
    "network_profile_name": "profile",
    "network_name": "lab",
    "network_id": "{6B29FC40-CA47-1067-B31D-00DD010662DA}",
    "idle_duration": 1200,
    "idle_wait_timeout": 7200,
    "stop_on_idle_end": False,
    "restart_on_idle": True,
    "delete_expired_task_after": DAY_S,
    "use_unified_scheduling_engine": True,
    "disallow_start_on_remote_app_session": True,
    "volatile": True,
    "maintenance_period": 2 * DAY_S,
    "maintenance_deadline": 10 * DAY_S,
    "maintenance_exclusive": True,
    "allow_start_on_demand": False,
    "allow_hard_terminate": False,
    "enabled": False,
    "start_when_available": False,
    "multiple_instances": "StopExisting",
    "disallow_start_if_on_batteries": True,
    "stop_if_going_on_batteries": True,
    "execution_time_limit": 3 * DAY_S,
    "priority": 7,
    "restart_interval": 120,
    "restart_count": 9,
}
# The scheduler takes these only beside another one.
BESIDE: dict[str, dict[str, Any]] = {
    "maintenance_deadline": {"maintenance_period": 2 * DAY_S},
    "maintenance_exclusive": {"maintenance_period": 2 * DAY_S, "maintenance_deadline": 10 * DAY_S},
    "network_name": {"run_only_if_network_available": True},
    "network_id": {"run_only_if_network_available": True},
}
PRINCIPAL: dict[str, Any] = {
    "user": "fleet",
    "logon_type": "InteractiveToken",
    "run_level": "HighestAvailable",
    "display_name": "somebody",
    "process_token_sid_type": "Unrestricted",
    "required_privileges": frozenset({"SeBackupPrivilege"}),
}
WHOLE: dict[str, Any] = {
    "description": "edited",
    "security_descriptor": "D:P(A;;FA;;;SY)",
    "triggers": (),
    "actions": (dataclasses.replace((TASK.actions or ())[0], arguments="-x"),),
}


def _with_setting(name: str, value: Any) -> Task:
    settings = {name: value, **BESIDE.get(name, {})}
    task = TASK.replaced(settings=dataclasses.replace(TASK.settings, absent=frozenset(), **settings))
    if name != "delete_expired_task_after":
        return task
    first, *others = task.triggers or ()
    return task.replaced(triggers=(dataclasses.replace(first, end_boundary="2040-01-01T00:00:00"), *others))


DRIFTS: list[tuple[str, Task]] = [
    *((f"settings.{name}", _with_setting(name, value)) for name, value in SETTINGS.items()),
    *(
        (f"principal.{name}", TASK.replaced(principal=dataclasses.replace(TASK.principal, **{name: value})))
        for name, value in PRINCIPAL.items()
    ),
    *((name, TASK.replaced(**{name: value})) for name, value in WHOLE.items()),
]


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with engine_box("python") as box:
        for folder in DECLARED.layout.folders():
            box.box.filesystem.make_directory(folder)
        box.box.filesystem.write(DECLARED.layout.launcher, b"@rem\r\n")
        yield Place(box)


def _by_hand(box: EngineBox, task: Task) -> None:
    xml = render_task(merged_task(None, task, AccountSids({}, {})))
    box.call("Register-BoxTask", TaskPath=TASK.path, Xml=xml)


def test_no_setting_is_left_to_whoever_changes_it() -> None:
    declared = {name for name in DEFAULTS if getattr(TASK.settings, name) is not None}
    assert declared | TASK.settings.absent == set(DEFAULTS) == set(SETTINGS)
    assert not declared & TASK.settings.absent


@pytest.mark.parametrize(("field", "drifted"), DRIFTS, ids=[name for name, _ in DRIFTS])
def test_each_field_of_the_servers_task_is_named_and_repaired(
    place: Place, caplog: pytest.LogCaptureFixture, field: str, drifted: Task
) -> None:
    caplog.set_level(logging.INFO, logger="pyinfra")
    _by_hand(place.box, drifted)
    fleet = Fleet.of({"gpu01": place})
    place.changes.clear()
    # As deploy.py does it.
    outcome = fleet.apply(scheduled_task.present, diff=True, tasks=[TASK])
    assert (outcome.changed, outcome.failed) == ({"gpu01"}, set()), caplog.text
    lines = caplog.text.splitlines()
    assert any(f" {sign} {field}{end}" in line for line in lines for sign in "-+" for end in ":["), (
        caplog.text
    )
    assert place.changes == ["Register-BoxTask"]
    (state,) = place.box.call("Get-BoxTask", TaskPath=[TASK.path])
    after = parse_task(TASK.path, state["Xml"])
    assert after.settings == parse_task(TASK.path, render_task(TASK)).settings
    assert (after.security_descriptor, after.principal.display_name) == (None, None)
    assert fleet.apply(scheduled_task.present, tasks=[TASK]).changed == set()
