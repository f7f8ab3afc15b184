"""The python engine answers as PowerShell for Windows does under Wine: the same calls to both, answer by
answer."""

from __future__ import annotations

from typing import Any

import pytest
from engine_stories import STORIES, D, Step
from powershell import EngineBox

_VARIES = {"LastWriteTimeUtc", "ElapsedMs", "ErrorMessage"}
"""Times, and texts of the operating system."""


@pytest.fixture
def python_box(request: pytest.FixtureRequest) -> EngineBox:
    found: EngineBox = request.getfixturevalue("_python_box")
    return found


def _told(box: EngineBox, steps: list[Step]) -> list[dict[str, Any]]:
    """What a box answers to a story, told in an empty scratch folder."""
    box.call("Remove-BoxItem", Path=[D], Recurse=True)
    box.call("New-BoxDirectory", Path=[D])
    answers = []
    for step in steps:
        mode = "read" if step.command.startswith(("Get-", "Test-")) else "change"
        call = {"command": step.command, "parameters": step.parameters}
        reply = box.loop.ask([call], mode, step.payload)  # type: ignore[arg-type]
        progress = [frame.data for frame in reply.frames if frame.kind == "progress"]
        output = {name: reply.output(name) for name in ("stdout", "stderr")}  # type: ignore[arg-type]
        answers.append(
            {"answer": reply.answers[0], "payload": reply.payload, "progress": progress, "output": output}
        )
    return answers


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        if {"type", "hresult", "message"} <= value.keys():
            identity = value["id"] if value["id"] != value["message"] else "(its text)"
            return {**{key: value[key] for key in ("type", "category", "hresult")}, "id": identity}
        return {
            key: (item is not None if key in _VARIES else _comparable(item)) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    return value


@pytest.mark.wine
@pytest.mark.parametrize("name", STORIES)
def test_story(name: str, wine_box: EngineBox, python_box: EngineBox) -> None:
    steps = STORIES[name]
    windows, imitation = _told(wine_box, steps), _told(python_box, steps)
    for step, expected, found in zip(steps, windows, imitation, strict=True):
        if not step.wine:
            label = f"{step.command} {step.parameters}"
            assert (label, _comparable(found)) == (label, _comparable(expected))


@pytest.mark.parametrize("name", STORIES)
def test_every_call_is_answered(name: str, python_box: EngineBox) -> None:
    for step, told in zip(STORIES[name], _told(python_box, STORIES[name]), strict=True):
        error = told["answer"].get("error")
        assert error is None or error["type"] != "System.Exception", (step, error)
