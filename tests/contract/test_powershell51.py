"""What ships is valid Windows PowerShell 5.1, told by PowerShell's parser and the tables of 5.1."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from powershell51 import check, document, parser, tables, tree

import simbox
from winfleet.call import Call
from winfleet.contract import lay, load_cases
from winfleet.wire.exchange import Answer
from winfleet.wire.program import bootstrap_line, build_program

REPOSITORY = Path(__file__).resolve().parents[2]
STANDINS = sorted(Path(simbox.__file__).parent.rglob("*.ps1"))
SAMPLES: dict[str, dict[str, list[str]]] = yaml.safe_load(
    Path(__file__).with_name("powershell51").joinpath("samples.yml").read_text("utf-8")
)
CASES = [
    (rule, kind, number, text)
    for rule, given in SAMPLES.items()
    for kind, texts in given.items()
    for number, text in enumerate(texts)
]


try:
    parser.powershell()
    tables.folder()
except (tables.NoTables, parser.NoPowerShell) as missing:
    pytest.skip(f"the check against Windows PowerShell 5.1: {missing}", allow_module_level=True)


@pytest.fixture(scope="module")
def known() -> tables.Tables:
    return tables.load()


@pytest.fixture(scope="module")
def shipped(known: tables.Tables) -> list[check.Subject]:
    return check.shipped(REPOSITORY, known)


def test_what_ships_has_only_what_windows_powershell_has(shipped: list[check.Subject]) -> None:
    names = {subject.script.path.name for subject in shipped}
    assert {"loop.ps1", "bootstrap.ps1", "job_runner.ps1", "enable-winrm.ps1"} <= names
    assert [str(fault) for subject in shipped for fault in check.faults(subject)] == []


@pytest.fixture(scope="module")
def rendered(known: tables.Tables, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tree.Script]:
    """What our code writes PowerShell into, as it is sent or lies on a box."""
    folder = tmp_path_factory.mktemp("rendered")
    built = build_program()
    texts = {"loader": bootstrap_line("0" * 32, built.sha256), "program": built.text}
    # The program only defines functions, so PowerShell for this machine can be asked for what they write.
    (folder / "program.ps1").write_text(built.text)
    job = "'C:\\it''s a job'"
    writes = {
        "runner.ps1": f"Get-JobRunnerText -Folder {job}",
        "rendering.ps1": "Get-RenderingText",
        "task.xml": f"Get-JobTaskXml -Folder {job}",
    }
    ask = f". '{folder}/program.ps1'" + "".join(
        f"; [IO.File]::WriteAllText('{folder}/{name}', ({call}))" for name, call in writes.items()
    )
    subprocess.run([str(parser.powershell()), "-NoProfile", "-NonInteractive", "-Command", ask], check=True)
    for name in ("runner", "rendering"):
        texts[name] = (folder / f"{name}.ps1").read_text()
    arguments = re.search(r"<Arguments>(.*)</Arguments>", (folder / "task.xml").read_text())
    assert arguments is not None
    command = re.search(r"-Command (.*)$", arguments[1].replace("&quot;", '"').replace("&apos;", "'"))
    assert command is not None
    texts["task"] = command[1].strip('"')
    texts["call"] = Call(
        "Get-BoxFile",
        Path=['C:\\it\'s $env:X `n "q" @(1)', "", "C:\\a; Remove-Item C:\\b"],
        Hash=True,
        MaxContentBytes=-1,
    ).get_raw_value()
    for name, text in texts.items():
        (folder / f"{name}.ps1").write_text(text)
    return dict(zip(texts, tree.parse(folder / f"{name}.ps1" for name in texts), strict=True))


@pytest.mark.parametrize("name", ["loader", "program", "runner", "rendering", "task", "call"])
def test_what_our_code_renders_has_only_what_windows_powershell_has(
    name: str, rendered: dict[str, tree.Script], known: tables.Tables
) -> None:
    # The loader and a call use what is loaded; the job runner has to bring all that it calls.
    own = rendered["program" if name in ("loader", "call") else name].functions
    faults = check.faults(check.Subject(rendered[name], known, own))
    assert [str(fault) for fault in faults if fault.rule != "size"] == []
    if name == "call":
        assert len(list(rendered[name].root.find("Command"))) == 1, "a value got out of its quotes"


class _Recorder:
    """Takes the place of a box and keeps what is sent to it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def run(self, calls: list[Call], listen: Any = None) -> list[Answer]:
        self.texts += [call.parameters["Text"] for call in calls]
        return [Answer(ok=True, value={"ExitCode": 0})]


def test_what_cases_send_to_any_box_has_only_what_windows_powershell_has(
    known: tables.Tables, tmp_path: Path
) -> None:
    recorder = _Recorder()
    with lay._held(recorder, "C:\\it's"):  # type: ignore[arg-type]
        pass
    texts = [*recorder.texts, lay._START_PING]
    for case in load_cases():
        if case.command == "Invoke-BoxScript" and case.parameters.get("Shell", "powershell") == "powershell":
            texts.append(case.parameters["Text"])
    files = [tmp_path / f"{number}.ps1" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    # A session is 64-bit and its text is no file: no other code page reads it. One case is no PowerShell on purpose.
    skipped = {"PS29", "PS31", "size"}
    found = [
        (text, str(fault))
        for text, script in zip(texts, tree.parse(files), strict=True)
        for fault in check.faults(check.Subject(script, known, script.functions))
        if fault.rule not in skipped and text != "if ("
    ]
    assert len(texts) > 6
    assert found == []


def test_stand_ins_take_no_parameter_that_the_real_command_lacks(known: tables.Tables) -> None:
    wrong = []
    stood_in = 0
    for script in tree.parse(STANDINS):
        assert script.errors == []
        for name, given in script.functions.items():
            if name not in known.commands:
                continue
            stood_in += 1
            wrong += [f"{name} -{extra}" for extra in sorted(given - known.commands[name].parameters.keys())]
    assert wrong == []
    assert stood_in > 20


def test_the_table_in_the_documentation_is_current(shipped: list[check.Subject]) -> None:
    path = REPOSITORY / "docs" / "powershell-5.1.md"
    written = path.read_text() if path.exists() else ""
    assert written == document.render(shipped), (
        "write it anew: .venv/bin/python tests/contract/powershell51/document.py"
    )


@pytest.fixture(scope="module")
def samples(
    known: tables.Tables, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str, int], list[Any]]:
    """What the check finds in each sample; one parser for all."""
    folder = tmp_path_factory.mktemp("samples")
    files = []
    for rule, kind, number, text in CASES:
        file = folder / f"{rule}-{kind}-{number}.ps1"
        text = text.replace("{long line}", f"$a = '{'x' * check.MAX_LINE_CHARACTERS}'")
        file.write_text(text.replace("{many lines}", "1\n" * (check.MAX_LINES + 1)), encoding="utf-8")
        files.append(file)
    results: dict[tuple[str, str, int], list[Any]] = {}
    for script, (rule, kind, number, _) in zip(tree.parse(files), CASES, strict=True):
        subject = check.Subject(script, known, dict(script.functions))
        results[rule, kind, number] = check.faults(subject)
    return results


@pytest.mark.parametrize(("rule", "kind", "number", "text"), CASES)
def test_sample(
    samples: dict[tuple[str, str, int], list[Any]], rule: str, kind: str, number: int, text: str
) -> None:
    """A failing sample breaks its rule and no other; a passing one breaks none."""
    faults = samples[rule, kind, number]
    assert {fault.rule for fault in faults} == ({rule} if kind == "fails" else set()), list(map(str, faults))


def test_every_rule_has_a_sample_of_each_kind() -> None:
    from powershell51 import rules_commands, rules_text, rules_values, rules_windows  # noqa: F401

    assert set(check.RULES) == set(SAMPLES)
    assert {f"PS{number:02}" for number in range(1, 33)} <= set(SAMPLES)
    assert all(given["fails"] and given["passes"] for given in SAMPLES.values())
