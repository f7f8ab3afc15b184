"""What other tools can declare of a task, held to the table of docs/scheduled-tasks.md."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import winfleet.task.model
import winfleet.task.trigger
from winfleet.task.schema import SETTINGS

PAGE = (Path(__file__).parents[2] / "docs" / "scheduled-tasks.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([^|`]+) \| `(\w+)\.(\w+)` \|$", PAGE, re.MULTILINE)
# The options of community.windows.win_scheduled_task but for state, password and update_password.
ANSIBLE = """
name path actions.path actions.arguments actions.working_directory triggers.type triggers.enabled
triggers.start_boundary triggers.end_boundary triggers.execution_time_limit triggers.delay triggers.random_delay
triggers.subscription triggers.user_id triggers.days_of_week triggers.days_of_month triggers.weeks_of_month
triggers.months_of_year triggers.run_on_last_day_of_month triggers.run_on_last_week_of_month triggers.weeks_interval
triggers.days_interval triggers.state_change triggers.repetition.duration triggers.repetition.interval
triggers.repetition.stop_at_duration_end display_name group username logon_type run_level author date description
source version allow_demand_start allow_hard_terminate compatibility delete_expired_task_after
disallow_start_if_on_batteries enabled execution_time_limit hidden multiple_instances priority restart_count
restart_interval run_only_if_idle run_only_if_network_available start_when_available stop_if_going_on_batteries
wake_to_run
"""


def test_every_option_of_the_other_tool_is_in_the_table() -> None:
    named = {option.strip() for row in ROWS for option in row[0].split(",")}
    assert set(ANSIBLE.split()) - named == set()


def test_every_field_of_the_table_is_there() -> None:
    assert len(ROWS) > 50
    for _, kind, field in ROWS:
        model = getattr(winfleet.task.model, kind, None) or getattr(winfleet.task.trigger, kind)
        assert field in {one.name for one in dataclasses.fields(model)}, f"{kind}.{field}"


def test_every_setting_that_can_be_declared_is_compared_and_written() -> None:
    fields = {one.name for one in dataclasses.fields(winfleet.task.model.Settings)} - {"absent"}
    assert fields == {name for name, _, _, _ in SETTINGS}
