"""The runner of the contract's cases: what it takes for equal, for right, and for out of bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from winfleet.call import Call
from winfleet.contract import Case, load_cases, run_case
from winfleet.contract.case import CaseError
from winfleet.contract.expect import CaseLoader, differences
from winfleet.contract.fill import filler
from winfleet.contract.guard import forbidden, inside
from winfleet.contract.place import Listener
from winfleet.contract.report import block, total
from winfleet.wire.exchange import Answer

SCRATCH = "C:\\Windows\\Temp\\scratch"


def wanted(text: str) -> Any:
    return yaml.load(text, CaseLoader)


@pytest.mark.parametrize(
    ("found", "expected", "number"),
    [
        ({"A": 1, "B": 2}, "{A: 1}", 0),
        ({"A": 1, "B": 2}, "!exactly {A: 1}", 1),
        ({"A": 1}, "{A: 1, B: null}", 1),
        ({"A": True}, "{A: 1}", 1),
        ({"A": 1}, "{A: true}", 1),
        ({"A": None}, "{A: null}", 0),
        ([1, 2], "[1]", 1),
        ([1, 2], "!has [2]", 0),
        ([1, 2], "!has [3]", 1),
        ([], "!each '!text'", 0),
        ([], "!some '!text'", 1),
        (["a", ""], "!each '!text'", 1),
        ("a.b", "!match 'a.b'", 0),
        ("xa.b", "!match 'a.b'", 1),
        ("C:\\A", "!folded c:\\a", 0),
        ("2026-01-02T03:04:05.0000000Z", "!time", 0),
        ("2026-01-02 03:04:05", "!time", 1),
        (None, "!any", 1),
        (True, "!int", 1),
        ("x", "{A: 1}", 1),
    ],
)
def test_differences(found: Any, expected: str, number: int) -> None:
    assert len(differences(found, wanted(expected), "answer")) == number


def test_a_difference_says_where_and_what() -> None:
    (line,) = differences([{"Kind": "file"}], [{"Kind": "directory"}], "answer")
    assert line == "answer[0].Kind: wanted 'directory', found 'file'"


def test_places_are_filled_and_other_braces_stay() -> None:
    fill = filler({"D": "C:\\a.b", "job": {"State": "done", "Items": [{"Id": 7}]}})
    assert fill({"P": ["{D}\\x", "{job.Items.0.Id}", "{8D3A1F60}", "{0}"]}) == {
        "P": ["C:\\a.b\\x", 7, "{8D3A1F60}", "{0}"]
    }
    assert differences("C:\\a.b\\7", fill(wanted("!match '{D}\\\\{job.Items.0.Id}'")), "x") == []
    assert differences("C:\\aXb\\7", fill(wanted("!match '{D}\\\\\\d{1}'")), "x") != []


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        (Call("Get-BoxFile", Path=["C:\\Windows"]), True),
        (Call("Test-BoxTask", TaskPath="\\x", Xml=""), True),
        (Call("Set-BoxFile", Path=f"{SCRATCH}\\a", Sha256=""), True),
        (Call("Set-BoxFile", Path="c:/windows/temp/SCRATCH/a", Sha256=""), True),
        (Call("Set-BoxFile", Path=f"{SCRATCH}\\..\\a", Sha256=""), False),
        (Call("Set-BoxFile", Path=f"{SCRATCH}2\\a", Sha256=""), False),
        (Call("Set-BoxFile", Path=f"{SCRATCH}\\a", TemporaryPath="C:\\t", Sha256=""), False),
        (Call("Set-BoxFile", Sha256=""), False),
        (Call("Remove-BoxItem", Path=[f"{SCRATCH}\\a", "C:\\Users"], Recurse=True), False),
        (Call("Remove-BoxItem", Path=[f"\\\\?\\{SCRATCH}\\a"]), True),
        (Call("Move-BoxItem", Path="C:\\a", Destination=f"{SCRATCH}\\a"), False),
        (Call("Copy-BoxItem", Items=[{"Path": "C:\\a", "Destination": f"{SCRATCH}\\a"}]), True),
        (Call("Copy-BoxItem", Items=[{"Path": f"{SCRATCH}\\a", "Destination": "C:\\a"}]), False),
        (Call("New-BoxJunction", Path=f"{SCRATCH}\\a", Target="C:\\Windows"), False),
        (Call("Set-BoxRegistryValue", Key="HKLM:\\SOFTWARE\\x", Name="a", Kind="DWord", Data=1), False),
        (Call("Register-BoxTask", TaskPath="\\x", Xml=""), False),
        (Call("Stop-BoxProcess", ProcessId=8, CreationTimeUtc=""), True),
        (Call("Stop-BoxProcess", ProcessId=4, CreationTimeUtc=""), False),
        (Call("Stop-BoxProcess", ProcessId="{program.ProcessId}", CreationTimeUtc=""), True),
        (Call("Set-BoxNothing", Path=f"{SCRATCH}\\a"), False),
    ],
    ids=str,
)
def test_what_may_go_to_a_real_box(call: Call, allowed: bool) -> None:
    assert (forbidden(call, SCRATCH, frozenset({8})) is None) == allowed


def test_the_scratch_folder_itself_is_inside() -> None:
    assert inside(SCRATCH + "\\", SCRATCH)
    assert not inside("scratch", SCRATCH)


class Paper:
    """A place that answers from a list and notes what it was asked."""

    platform = "windows"
    simulated = False

    def __init__(
        self, answers: Sequence[Answer] = (), elevated: bool = True, scratch_only: bool = True
    ) -> None:
        self.elevated, self.scratch_only = elevated, scratch_only
        self.values: Mapping[str, str] = {}
        self.asked: list[Call] = []
        self._answers = list(answers)

    def run(self, calls: Sequence[Call], listen: Listener | None = None) -> list[Answer]:
        self.asked += calls
        return [self._answers.pop(0) for _ in calls]

    def start(self, command_line: str) -> Any:
        raise AssertionError(command_line)

    def owns(self, process_id: int) -> None: ...

    def host(self, path: str) -> Path | None:
        return None


def test_a_wrong_answer_and_a_wrong_state_are_both_told() -> None:
    case = Case(
        "New-BoxDirectory",
        "x",
        {"Path": ["{D}\\a"]},
        answer={"Created": ["{D}\\a"]},
        then=({"path": "{D}\\a", "kind": "directory"},),
    )
    seen: dict[str, Any] = {"Kind": "absent", "Attributes": [], "SizeBytes": None, "ContentBase64": None}
    outcome = run_case(case, Paper([Answer(True, {"Created": []}), Answer(True, [seen])]), SCRATCH, 1)
    assert outcome.status == "failed"
    first, second = outcome.differences
    assert first.startswith("answer.Created: wanted 1 items")
    assert second == f"then {SCRATCH}\\a: kind: wanted 'directory', found 'absent'"


def test_an_error_where_an_answer_is_wanted_fails() -> None:
    case = Case("Get-BoxFile", "x", {"Path": []}, answer=[])
    outcome = run_case(case, Paper([Answer.failed("Refused", "no", "Get-BoxFile")]), SCRATCH, 1)
    assert outcome.differences == ("answer: found an error instead: Refused: no (None)",)


def test_an_answer_where_an_error_is_wanted_fails() -> None:
    case = Case("Get-BoxFile", "x", {"Path": []}, error={"type": "BadRequest"})
    assert run_case(case, Paper([Answer(True, [])]), SCRATCH, 1).status == "failed"


@pytest.mark.parametrize(
    ("case", "place", "reason"),
    [
        (
            Case("Get-BoxDisk", "x", answer=[], needs=frozenset({"administrator"})),
            Paper(elevated=False),
            "rights",
        ),
        (Case("Get-BoxGpu", "x", answer={}, needs=frozenset({"machine"})), Paper(), "simulated machine"),
        (Case("Get-BoxHttp", "x", answer={}, needs=frozenset({"server"})), Paper(), "HTTP server"),
        (Case("Start-BoxTask", "x", answer={}), Paper(), "would change the machine: Start-BoxTask"),
        (
            Case("Get-BoxTask", "x", answer=[], given=({"call": "Register-BoxTask"},)),
            Paper(),
            "would change the machine: Register-BoxTask",
        ),
        (
            Case("New-BoxDirectory", "x", {"Path": ["C:\\x"]}, answer={}),
            Paper(),
            "would leave the scratch folder",
        ),
        (
            Case("Get-BoxGpu", "x", answer={}, platforms={"windows": {"because": "of that", "skip": True}}),
            Paper(),
            "of that",
        ),
    ],
)
def test_what_is_skipped_asks_nothing_and_says_why(case: Case, place: Paper, reason: str) -> None:
    outcome = run_case(case, place, SCRATCH, 1)
    assert (outcome.status, place.asked) == ("skipped", [])
    assert reason in outcome.reason
    assert reason in "\n".join(block(case.command, [outcome]))
    assert total([outcome], 0.2) == "passed 0, failed 0, skipped 1 of 1 cases in 0 s"


@pytest.mark.parametrize(
    "text",
    [
        "{command: Get-BoxFile, cases: [{name: a, answer: [], colour: red}]}",
        "{command: Get-BoxFile, cases: [{name: a}]}",
        "{command: Get-BoxFile, cases: [{name: a, answer: [], error: {}}]}",
        "{command: Get-BoxFile, cases: [{name: a, answer: []}, {name: a, answer: []}]}",
        "{command: Get-BoxAcl, cases: []}",
        "{command: Get-BoxFile, cases: [{name: a, answer: [], needs: luck}]}",
        "{command: Get-BoxFile, cases: [{name: a, answer: [], platforms: {wine: {skip: true}}}]}",
    ],
)
def test_a_case_that_is_not_understood_is_named(tmp_path: Path, text: str) -> None:
    cases = tmp_path / "files" / "cases"
    cases.mkdir(parents=True)
    (cases / "Get-BoxFile.yml").write_text(text)
    with pytest.raises(CaseError, match="Get-Box"):
        load_cases(tmp_path)
