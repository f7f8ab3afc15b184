"""serve_task.bat keeps the server running: the same scenarios under the simulator's interpreter and under Wine's
cmd.exe with real programs."""

from __future__ import annotations

import datetime
import io
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bat_bench import (
    KEY,
    TEMPLATE,
    MemoryMachine,
    Scenario,
    Seen,
    compile_probe,
    run_in_memory,
    run_on_wine,
)

from ninfer_fleet.server import argv, launcher
from ninfer_fleet.settings import Settings
from simbox.cmd.interpreter import Interpreter
from simbox.cmd.machine import Streams
from simbox.engines.wine import locate, prefix

Look = Callable[[str], Seen]
LARGEST = 50_000_000


def declared(root: str, **nouns: Any) -> Settings:
    serve = {"api_key": "env:NINFER_API_KEY", **nouns.pop("serve", {})}
    return Settings.model_validate({"layout": {"root": f"C:\\{root}"}, "serve": serve, **nouns})


def scenarios() -> dict[str, Scenario]:
    found = {
        "production": Scenario(declared("ninfer")),
        "restarts": Scenario(declared("restarts"), ("1", "-1073740791", "stop 3")),
        "pauses": Scenario(declared("pauses"), ("1",) * 7 + ("stop 1",)),
        "many starts": Scenario(declared("many"), ("0",) * 11 + ("stop 0",)),
        "flag from the beginning": Scenario(
            flagged := declared("flagged"), files={flagged.layout.stop_flag: b""}
        ),
        "flag in a pause": Scenario(declared("paused"), ("1",) * 9, stop_at_pause=3),
        "no program": Scenario(gone := declared("gone"), missing=(gone.layout.executable,), stop_at_pause=3),
        "no model": Scenario(lost := declared("lost"), missing=(lost.model_path,), stop_at_pause=2),
        "no key file": Scenario(declared("nokey"), key=None, stop_at_pause=2),
        "empty key file": Scenario(declared("emptykey"), key=b"\r\n", stop_at_pause=1),
        "large logs": Scenario(
            large := declared("large"),
            files={
                large.layout.below("logs", "exits.log"): b"x" * LARGEST + b"\r\n",
                large.layout.below("logs", "exits-old.log"): b"older",
                large.layout.below("logs", "requests.jsonl"): b"y" * LARGEST,
            },
        ),
        "small request log": Scenario(
            small := declared("small"),
            ("0", "stop 0"),
            files={small.layout.below("logs", "requests.jsonl"): b"{}\n"},
        ),
        "no speculation": Scenario(
            declared("plain", serve={"spec": None, "draft_tokens": None, "lm_head_draft": False})
        ),
        "no key declared": Scenario(declared("open", serve={"api_key": None, "host": "127.0.0.1"})),
    }
    for number, (content, _) in enumerate(DRAFTS):
        found[f"draft {number}"] = Scenario(declared(f"draft{number}"), draft=content)
    for number, (content, _) in enumerate(COUNTS):
        settings = declared(f"count{number}")
        counter = settings.layout.below("state", "log_number.txt")
        found[f"count {number}"] = Scenario(settings, files={counter: content})
    return found


# Content of the draft file, and the depth that the server is started with (None: its own).
DRAFTS: list[tuple[bytes | None, int | None]] = [
    (b"2", 2),
    (b"5\r\n", 5),
    (b" 7 \r\n", 7),
    (None, None),
    (b"", None),
    (b"8", None),
    (b"0", None),
    (b"07", None),
    (b"-1", None),
    (b"seven", None),
    (b";7", None),
    (b'7"&echo x>C:\\pwned&"', None),
    (b"%OS%!x!^7", None),
]
# Content of the file that counts the starts, and the number of the next log.
COUNTS = [
    (b"1\r\n", 2),
    (b"9\r\n", 1),
    (b"", 1),
    (b"many\r\n", 1),
    (b"-5\r\n", 1),
    (b'"&echo x\r\n', 1),
    (b"12345\r\n", 1),
]
SCENARIOS = scenarios()


@pytest.fixture(scope="module")
def wine_seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Seen]]:
    try:
        tools = locate.locate()
    except locate.Missing as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("cmd")
    try:
        compile_probe(folder / "probe.exe")
    except FileNotFoundError:
        pytest.skip("x86_64-w64-mingw32-gcc is not here: apt-get install gcc-mingw-w64-x86-64")
    box = folder / "box"
    prefix.create(tools, box)
    try:
        seen = run_on_wine(tools, box, folder / "probe.exe", SCENARIOS.values())
        assert not (box / "drive_c" / "pwned").exists()
        yield dict(zip(SCENARIOS, seen, strict=True))
    finally:
        prefix.remove(tools, box)


@pytest.fixture(params=["memory", pytest.param("wine", marks=pytest.mark.wine)])
def look(request: pytest.FixtureRequest) -> Look:
    """What a scenario did under one of the two cmd.exe."""
    if request.param == "wine":
        found: dict[str, Seen] = request.getfixturevalue("wine_seen")
        return found.__getitem__
    return lambda name: run_in_memory(SCENARIOS[name])


def test_the_server_gets_exactly_the_production_line(look: Look) -> None:
    seen = look("production")
    assert seen.argvs == [argv.full(SCENARIOS["production"].settings, KEY, 7)]
    assert seen.code == 0


def test_without_speculation_or_key_neither_is_passed(look: Look) -> None:
    for name, key in (("no speculation", KEY), ("no key declared", None)):
        settings = SCENARIOS[name].settings
        depth = None if settings.serve.spec is None else 7
        assert look(name).argvs == [argv.full(settings, key, depth)]


def test_it_starts_again_after_every_exit_and_writes_the_code_down(look: Look) -> None:
    settings = SCENARIOS["restarts"].settings
    seen = look("restarts")
    assert len(seen.argvs) == 3
    codes = [code.split()[0] for code in seen.codes(settings)]
    assert codes == ["code=1", "code=-1073740791", "code=3", "stopped"]
    assert [seen.text(f"{settings.layout.logs}\\serve-{number}.log") for number in (1, 2, 3)] == [
        "run 1\n",
        "run 2\n",
        "run 3\n",
    ]
    assert seen.code == 0


def test_pauses_double_up_to_the_longest(look: Look) -> None:
    """ping waits a second between two packets, so that n + 1 of them take n seconds."""
    seen = look("pauses")
    assert [pause[:2] for pause in seen.pauses] == [["-n", str(n + 1)] for n in (2, 4, 8, 16, 32, 60, 60)]
    assert {pause[2] for pause in seen.pauses} == {"127.0.0.1"}
    lines = seen.exits(SCENARIOS["pauses"].settings)
    assert [re.findall(r"pause=(\d+)", line) for line in lines[:3]] == [["2"], ["4"], ["8"]]


def test_the_tenth_start_writes_over_the_first_log(look: Look) -> None:
    settings = SCENARIOS["many starts"].settings
    seen = look("many starts")
    logs = {path: seen.text(path) for path in seen.files if "serve-" in path}
    expected = {number: number for number in range(1, 10)} | {1: 10, 2: 11, 3: 12}
    assert logs == {
        f"{settings.layout.logs}\\serve-{number}.log": f"run {run}\n" for number, run in expected.items()
    }
    assert [re.findall(r"serve-\d", line) for line in seen.exits(settings)[8:11]] == [
        ["serve-9"],
        ["serve-1"],
        ["serve-2"],
    ]


@pytest.mark.parametrize("number", range(len(COUNTS)))
def test_the_number_of_the_log_is_always_one_of_nine(look: Look, number: int) -> None:
    seen = look(f"count {number}")
    layout = SCENARIOS[f"count {number}"].settings.layout
    assert [path for path in seen.files if "serve-" in path] == [
        f"{layout.logs}\\serve-{COUNTS[number][1]}.log"
    ]


def test_a_large_log_is_put_aside_once(look: Look) -> None:
    logs = SCENARIOS["large logs"].settings.layout.logs
    seen = look("large logs")
    assert len(seen.files[f"{logs}\\exits-old.log"]) == LARGEST + 2
    assert seen.text(f"{logs}\\exits.log").startswith("code=0 ")
    assert f"{logs}\\requests-old.jsonl" not in seen.files, "exactly the limit is not too large"
    assert len(seen.files[f"{logs}\\requests.jsonl"]) == LARGEST


def test_a_small_log_stays(look: Look) -> None:
    logs = SCENARIOS["small request log"].settings.layout.logs
    seen = look("small request log")
    assert seen.text(f"{logs}\\requests.jsonl") == "{}\n"
    assert len([path for path in seen.files if path.endswith("-old.jsonl")]) == 0


def test_a_flag_from_the_beginning_starts_nothing(look: Look) -> None:
    seen = look("flag from the beginning")
    assert (seen.argvs, seen.pauses, seen.code) == ([], [], 0)
    assert [line.split(" at ")[0] for line in seen.exits(SCENARIOS["flag from the beginning"].settings)] == [
        "stopped by flag"
    ]


def test_a_flag_set_in_a_pause_ends_it_before_the_next_start(look: Look) -> None:
    seen = look("flag in a pause")
    assert (len(seen.argvs), len(seen.pauses), seen.code) == (3, 3, 0)


@pytest.mark.parametrize(
    ("name", "told", "pauses"),
    [
        ("no program", "code=program missing", 3),
        ("no model", "code=model missing", 2),
        ("no key file", "code=key file missing or empty", 2),
        ("empty key file", "code=key file missing or empty", 1),
    ],
)
def test_what_is_missing_is_said_and_waited_for(look: Look, name: str, told: str, pauses: int) -> None:
    seen = look(name)
    assert seen.argvs == []
    assert len(seen.pauses) == pauses
    *waits, end = seen.codes(SCENARIOS[name].settings)
    assert waits == [told] * pauses
    assert end.startswith("stopped by flag")
    assert "log=none" in seen.exits(SCENARIOS[name].settings)[0]


@pytest.mark.parametrize("number", range(len(DRAFTS)))
def test_the_depth_is_that_of_the_draft_file_or_the_engines_own(look: Look, number: int) -> None:
    _, depth = DRAFTS[number]
    settings = SCENARIOS[f"draft {number}"].settings
    seen = look(f"draft {number}")
    assert seen.argvs == [argv.full(settings, KEY, depth)]
    noted = "no usable draft depth" in seen.exits(settings)[0]
    assert noted == (depth is None)


def test_key_and_depth_are_read_anew_at_each_start() -> None:
    scenario = Scenario(declared("anew"), ("0", "stop 0"))
    layout = scenario.settings.layout
    machine = MemoryMachine(scenario)

    def rotate() -> None:
        machine.files[layout.draft_file.lower()] = (layout.draft_file, b"2")
        machine.files[layout.key_file.lower()] = (layout.key_file, b"another-test-key-0c1d")

    machine.on_run = rotate
    assert run_in_memory(scenario, machine).argvs == [
        argv.full(scenario.settings, KEY, 7),
        argv.full(scenario.settings, "another-test-key-0c1d", 2),
    ]


class Clock(datetime.datetime):
    """A clock that the test sets."""

    at = datetime.datetime(2026, 3, 1, 23, 50)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Clock:
        return cls.fromisoformat(Clock.at.isoformat())


@pytest.mark.parametrize("began", ["00:00", "08:09", "12:59", "23:55"])
@pytest.mark.parametrize(
    ("minutes", "told"), [(9, 9), (10, 10), (70, 70), (725, 725), (1435, 1435), (2000, None)]
)
def test_a_long_run_begins_the_pauses_anew_whatever_the_time(
    monkeypatch: pytest.MonkeyPatch, began: str, minutes: int, told: int | None
) -> None:
    monkeypatch.setattr("simbox.cmd.variables.datetime.datetime", Clock)
    Clock.at = datetime.datetime.fromisoformat(f"2026-03-01T{began}")
    scenario = Scenario(declared("calm"), ("1", "1", "1", "1", "stop 1"))
    machine = MemoryMachine(scenario)

    def work() -> None:
        if len(machine.argvs) == 3:
            Clock.at += datetime.timedelta(minutes=minutes)

    machine.on_run = work
    seen = run_in_memory(scenario, machine)
    calm = minutes >= scenario.settings.task.calm_minutes
    pauses = [int(pause[1]) - 1 for pause in seen.pauses]
    assert pauses == ([2, 4, 2, 4] if calm else [2, 4, 8, 16])
    if told is not None:
        assert f" minutes={told} " in seen.exits(scenario.settings)[2]


@pytest.mark.parametrize("shell", ["memory", pytest.param("wine", marks=pytest.mark.wine)])
def test_every_form_of_the_clock_is_read(shell: str, tmp_path: Path) -> None:
    """%TIME% is 24 hours with a blank or a nought in front, with the separator of the region; Wine tells 12
    hours."""
    clocks = {
        " 0:00:00.00": 0, " 9:08:09.10": 548, "08:09:10,11": 489, "23.59.59,99": 1439, "17:37:00.00": 1057,
        "12:07 AM": 7, "1:05 AM": 65, "12:59 PM": 779, "1:00 PM": 780, "11:59 PM": 1439,
    }  # fmt: skip
    routine = launcher.render(declared("x"), TEMPLATE).decode("ascii").split("\r\n\r\n:minutes\r\n")[1]
    lines = ["@echo off"]
    for clock in clocks:
        lines += [f'set "TIME={clock}"', "call :minutes", "echo %MINUTES%"]
    text = "\r\n".join([*lines, "exit /b 0", ":minutes", routine])
    assert [int(line) for line in OUTPUT[shell](text, tmp_path).split()] == list(clocks.values())


def _in_memory(text: str, _: Path) -> str:
    scenario = Scenario(declared("clock"), files={"C:\\clock\\t.bat": text.encode()})
    out = io.BytesIO()
    shell = Interpreter(MemoryMachine(scenario), {}, "C:\\clock", Streams(io.BytesIO(), out, io.BytesIO()))
    shell.run_line("t.bat")
    return out.getvalue().decode("ascii")


def _on_wine(text: str, folder: Path) -> str:
    try:
        tools = locate.locate()
    except locate.Missing as missing:
        pytest.skip(str(missing))
    box = folder / "box"
    prefix.create(tools, box)
    (box / "drive_c" / "t.bat").write_bytes(text.encode())
    try:
        return subprocess.run(
            [str(tools.wine), "cmd.exe", "/d", "/c", "C:\\t.bat"],
            env=prefix.environment(box), stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True,
        ).stdout.decode("ascii")  # fmt: skip
    finally:
        prefix.remove(tools, box)


OUTPUT = {"memory": _in_memory, "wine": _on_wine}
