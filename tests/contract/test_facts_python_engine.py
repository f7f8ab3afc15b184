"""Each fact reads what the python engine answers, for every box profile: no model refuses one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simbox.box import Box
from simbox.engines.python import answers
from simbox.engines.python.commands import COMMANDS
from winfleet.account.fact import Accounts
from winfleet.acl.fact import Acls
from winfleet.call import Call
from winfleet.disk.fact import Disks
from winfleet.fact import BoxFact, Unreadable
from winfleet.files.fact import ChildItems, Files
from winfleet.firewall.fact import Firewall
from winfleet.gpu.fact import Gpu
from winfleet.job.fact import Job
from winfleet.network.fact import Listeners
from winfleet.process.fact import Processes
from winfleet.registry.fact import Registry
from winfleet.system.fact import System
from winfleet.task.fact import Tasks, Validation
from winfleet.task.model import Exec, Principal, Task
from winfleet.task.render import render_task
from winfleet.toolchain.compile_commands_fact import CompileCommands
from winfleet.toolchain.fact import Toolchain
from winfleet.web.fact import HttpGet

PROFILES = sorted(
    path.stem for path in (Path(__file__).parents[2] / "src" / "simbox" / "profiles").glob("*.yml")
)
ROOT = "C:\\"
FACTS: list[tuple[type[BoxFact[Any]], dict[str, Any]]] = [
    (System, {}),
    (Accounts, {"names": ["Administrator", "SYSTEM", "nobody-here"]}),
    (Gpu, {}),
    (Toolchain, {}),
    (Toolchain, {"vcpkg_root": "C:\\vcpkg"}),
    (Disks, {"paths": [ROOT, "C:\\ninfer-cache\\deep", "Q:\\none"]}),
    (Files, {"paths": [ROOT, "C:\\none.txt"], "hash": True, "max_content_bytes": 1024}),
    (ChildItems, {"path": ROOT}),
    (ChildItems, {"path": "C:\\none"}),
    (Acls, {"paths": [ROOT, "C:\\none.txt"]}),
    (Firewall, {}),
    (Tasks, {"paths": ["\\NInferServe"]}),
    (Processes, {"names": ["ninfer-serve.exe"]}),
    (Processes, {}),
    (Listeners, {"ports": [8080]}),
    (Listeners, {}),
    (HttpGet, {"url": "http://127.0.99.1:1/health", "timeout_s": 1}),
    (Job, {"path": "C:\\ninfer\\jobs\\build"}),
    (Registry, {"key": "HKLM:\\SOFTWARE\\None"}),
    (CompileCommands, {"path": "C:\\none.json", "definition": "NINFER_TARGET_SM_COUNT"}),
]


@pytest.fixture(params=PROFILES)
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Box]:
    made = Box.open(tmp_path, "gpu01", "127.0.99.1", request.param)
    yield made
    made.shut_down()


def answer(box: Box, call: Call) -> Any:
    request = call.request()
    values = {name.lower(): value for name, value in request["parameters"].items()}
    found = COMMANDS[call.command.lower()](answers.Call(box, values))
    return json.loads(json.dumps(found.value if isinstance(found, answers.Answer) else found))


def test_every_fact_reads_the_answer(box: Box) -> None:
    for fact, arguments in FACTS:
        value = answer(box, fact.call(**arguments))
        found = fact().process([json.dumps({"ok": True, "value": value})])
        assert not isinstance(found, Unreadable), f"{fact.__name__}({arguments}): {found.fault}"


def test_the_scheduler_takes_what_is_rendered(box: Box) -> None:
    task = Task("\\NInferServe", actions=(Exec("C:\\x.exe"),), principal=Principal(user="S-1-5-18"))
    value = answer(box, Validation.call(task.path, render_task(task)))
    assert Validation().process([json.dumps({"ok": True, "value": value})]) is None
    value = answer(box, Validation.call(task.path, "<Task/>"))
    assert Validation().process([json.dumps({"ok": True, "value": value})])
