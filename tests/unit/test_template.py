"""serve_task.bat as text, and as run by a real cmd.exe (Wine's)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ninfer_fleet import argv, launcher
from ninfer_fleet.settings import Settings
from winfleet.refusal import Refused

TEMPLATE = Path(__file__).parents[2] / "templates" / "serve_task.bat.j2"
PROBE = Path(__file__).with_name("argv_probe.c")
KEY = "test-key-that-opens-nothing-7d1f"


def settings(**nouns: Any) -> Settings:
    nouns["serve"] = {"api_key": "env:NINFER_API_KEY", **nouns.get("serve", {})}
    return Settings.model_validate(nouns)


def rendered(**nouns: Any) -> str:
    return launcher.render(settings(**nouns), TEMPLATE).decode("ascii")


def test_it_is_ascii_with_crlf_and_a_last_line_end() -> None:
    raw = launcher.render(settings(), TEMPLATE)
    assert raw.isascii()
    assert raw.count(b"\n") == raw.count(b"\r\n")
    assert raw.endswith(b"\r\n")
    assert b"\x1a" not in raw


def test_neither_key_nor_depth_stand_in_it() -> None:
    text = rendered(serve={"draft_tokens": 5})
    assert text == rendered(serve={"draft_tokens": 2})
    assert KEY not in text
    assert "NINFER_API_KEY" not in text


def test_what_is_not_declared_is_not_asked_for() -> None:
    text = rendered(
        serve={
            "api_key": None,
            "host": "127.0.0.1",
            "spec": None,
            "draft_tokens": None,
            "lm_head_draft": False,
        }
    )
    assert "--api-key" not in text
    assert "--draft-tokens" not in text


def test_too_long_a_line_is_refused() -> None:
    long = settings(serve={"model_id": "m" * 8000})
    with pytest.raises(Refused, match=r"cmd\.exe takes 7500"):
        launcher.render(long, TEMPLATE)


class Bench:
    """A Wine prefix with the .bat, the probe as ninfer-serve.exe and everything the .bat reads."""

    def __init__(self, box: Path, environment: dict[str, str]) -> None:
        self.drive = box / "drive_c"
        self.environment = environment

    def path(self, windows: str) -> Path:
        return self.drive.joinpath(*windows[3:].split("\\"))

    def install(
        self, declared: Settings, probe: Path, *, key: str | None = KEY, draft: str | None = "7"
    ) -> None:
        layout = declared.layout
        for folder in (*layout.folders(), layout.current, layout.below("probe")):
            self.path(folder).mkdir(parents=True, exist_ok=True)
        self.path(layout.executable).write_bytes(probe.read_bytes())
        self.path(declared.model_path).write_bytes(b"NINFER\x00\x02")
        if key is not None:
            self.path(layout.key_file).write_bytes(key.encode() + b"\r\n")
        if draft is not None:
            self.path(layout.draft_file).write_bytes(draft.encode())
        self.path(layout.launcher).write_bytes(launcher.render(declared, TEMPLATE))

    def run(self, declared: Settings, codes: list[str]) -> int:
        """Run the .bat until the probe (or this call) sets the stop flag; returns its exit code."""
        layout = declared.layout
        self.path(layout.below("probe", "probe.txt")).write_text("\n".join(codes) + "\n")
        environment = {**self.environment, "PROBE": layout.below("probe"), "PROBE_STOP": layout.stop_flag}
        command = ["wine", "cmd.exe", "/d", "/c", layout.launcher]
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
        return done.returncode

    def argv(self, declared: Settings, run: int) -> list[str]:
        return self.path(declared.layout.below("probe", f"argv-{run}.txt")).read_text().splitlines()

    def exits(self, declared: Settings) -> list[str]:
        return self.path(declared.layout.below("logs", "exits.log")).read_text(errors="replace").splitlines()


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("probe") / "probe.exe"
    command = ["x86_64-w64-mingw32-gcc", "-O1", "-o", str(target), str(PROBE)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("x86_64-w64-mingw32-gcc is not here: apt-get install gcc-mingw-w64-x86-64")
    return target


@pytest.fixture(scope="module")
def wine_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    from simbox.wine import locate, prefix

    try:
        tools = locate.locate()
    except locate.Missing as missing:
        pytest.skip(str(missing))
    box = tmp_path_factory.mktemp("cmd") / "box"
    prefix.create(tools, box)
    yield box
    prefix.remove(tools, box)


@pytest.fixture
def bench(wine_box: Path) -> Bench:
    from simbox.wine import prefix

    return Bench(wine_box, {**os.environ, **prefix.environment(wine_box)})


FAST = {"shortest_backoff_s": 1, "longest_backoff_s": 1}


@pytest.mark.wine
def test_cmd_passes_exactly_the_declared_arguments(bench: Bench, probe: Path) -> None:
    declared = settings(layout={"root": r"C:\argv"}, task=FAST)
    bench.install(declared, probe)
    assert bench.run(declared, ["stop 0"]) == 0
    assert bench.argv(declared, 1) == argv.full(declared, KEY, 7)


@pytest.mark.wine
def test_blanks_and_brackets_in_a_path_survive_cmd(bench: Bench, probe: Path) -> None:
    declared = settings(
        layout={"root": r"C:\blanks"},
        task=FAST,
        serve={
            "disk_cache_dir": r"C:\cache of (x86) "
            r"it's, a=b;c\two  blanks"
        },
    )
    bench.install(declared, probe, draft="2")
    assert bench.run(declared, ["stop 0"]) == 0
    assert bench.argv(declared, 1) == argv.full(declared, KEY, 2)


@pytest.mark.wine
def test_it_starts_again_after_every_exit_and_writes_the_code_down(bench: Bench, probe: Path) -> None:
    declared = settings(layout={"root": r"C:\again"}, task=FAST)
    bench.install(declared, probe)
    assert bench.run(declared, ["1", "-1073740791", "stop 3"]) == 0
    codes = [line.split()[0] for line in bench.exits(declared)]
    assert codes == ["code=1", "code=-1073740791", "code=3", "stopped"]
    logs = declared.layout.logs
    texts = [bench.path(f"{logs}\\serve-{number}.log").read_text().strip() for number in (1, 2, 3)]
    assert texts == ["run 1", "run 2", "run 3"]


@pytest.mark.wine
def test_pauses_double_up_to_the_longest(bench: Bench, probe: Path) -> None:
    declared = settings(layout={"root": r"C:\pauses"}, task={"shortest_backoff_s": 1, "longest_backoff_s": 3})
    bench.install(declared, probe)
    bench.run(declared, ["1", "1", "1", "stop 1"])
    pauses = [line.split("pause=")[1].split()[0] for line in bench.exits(declared) if "pause=" in line]
    assert pauses == ["1", "2", "3", "3"]


@pytest.mark.wine
def test_the_draft_depth_is_read_anew_at_each_start(bench: Bench, probe: Path) -> None:
    declared = settings(layout={"root": r"C:\depth"}, task=FAST)
    bench.install(declared, probe, draft="2\r\n")
    bench.run(declared, ["stop 0"])
    bench.path(declared.layout.stop_flag).unlink()
    bench.path(declared.layout.draft_file).write_bytes(b"7\r\n")
    bench.run(declared, ["0", "stop 0"])
    assert bench.argv(declared, 1) == argv.full(declared, KEY, 2)
    assert bench.argv(declared, 2) == argv.full(declared, KEY, 7)


@pytest.mark.wine
@pytest.mark.parametrize("content", [None, "", "8", "seven"])
def test_an_unusable_draft_file_is_noted_and_leaves_the_depth_to_the_engine(
    bench: Bench, probe: Path, content: str | None
) -> None:
    declared = settings(layout={"root": rf"C:\nodepth{content}"}, task=FAST)
    bench.install(declared, probe, draft=content)
    bench.run(declared, ["stop 0"])
    assert bench.argv(declared, 1) == argv.full(declared, KEY, None)
    assert "no usable draft depth" in bench.exits(declared)[0]


@pytest.mark.wine
def test_without_a_key_nothing_is_started(bench: Bench, probe: Path) -> None:
    declared = settings(
        layout={"root": r"C:\nokey"}, task={"shortest_backoff_s": 60, "longest_backoff_s": 60}
    )
    bench.install(declared, probe, key="")
    command = ["wine", "cmd.exe", "/d", "/c", declared.layout.launcher]
    process = subprocess.Popen(
        command, env=bench.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        exits = bench.path(declared.layout.below("logs", "exits.log"))
        _wait_for(lambda: exits.exists() and exits.read_text(errors="replace").count("\n") > 0, process)
    finally:
        process.kill()
        process.wait()
    assert bench.exits(declared)[0].startswith("code=key file missing or empty")
    assert not bench.path(declared.layout.below("probe", "argv-1.txt")).exists()


@pytest.mark.wine
def test_a_stop_flag_from_the_beginning_starts_nothing(bench: Bench, probe: Path) -> None:
    declared = settings(layout={"root": r"C:\flagged"}, task=FAST)
    bench.install(declared, probe)
    bench.path(declared.layout.stop_flag).touch()
    assert bench.run(declared, ["0"]) == 0
    assert not bench.path(declared.layout.below("probe", "argv-1.txt")).exists()


def _wait_for(condition: Any, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if condition():
            return
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    assert condition()
