"""Detached jobs: what their folder says at each moment, on every engine."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from typing import Any

import pytest
from powershell import BoxFault, EngineBox

CMD = "C:\\Windows\\System32\\cmd.exe"
_NUMBERS = itertools.count(1)


def step(name: str, *arguments: str, **more: Any) -> dict[str, Any]:
    return {"Name": name, "Kind": "run", "Program": CMD, "Arguments": ["/c", *arguments], **more}


class Job:
    """One job folder of a box."""

    def __init__(self, box: EngineBox) -> None:
        number = next(_NUMBERS)
        self.box = box
        self.path = f"C:\\jobs \u4e2d\\job {number}"
        self.task = f"\\NInferFleet\\Job-test{number}"

    def start(self, *steps: dict[str, Any], hash: str = "one") -> str:
        answer = self.box.call(
            "Start-BoxJob", Path=self.path, Hash=hash, Steps=list(steps), TaskPath=self.task
        )
        return str(answer["State"])

    def get(self, **parameters: Any) -> dict[str, Any]:
        value: dict[str, Any] = self.box.call("Get-BoxJob", Path=self.path, **parameters)
        return value

    def until(self, *states: str) -> dict[str, Any]:
        """The first answer with one of these states."""
        deadline = time.monotonic() + 60
        while (found := self.get())["State"] not in states:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found


@pytest.fixture
def job(box: EngineBox) -> Job:
    return Job(box)


def test_there_is_no_job(job: Job) -> None:
    found = job.get()
    assert (found["State"], found["Hash"], found["ExitCode"], found["Log"]) == ("absent", None, None, "")


def test_steps_run_in_order_until_one_fails(job: Job) -> None:
    job.start(
        step("first", "echo one"),
        step("second", "echo %WORD%&& exit 12", Environment={"WORD": "two"}),
        step("third", "echo three"),
    )
    found = job.until("done")
    assert (found["ExitCode"], found["Step"], found["Hash"]) == (12, "second", "one")
    assert found["Log"].split() == ["one", "two"]
    assert found["StartedUtc"].endswith("Z")
    assert job.box.call("Get-BoxTask", TaskPath=[job.task])[0]["Exists"]


def test_the_log_is_read_on_from_an_offset(job: Job) -> None:
    job.start(step("a", "echo first line"), step("b", "echo second line"))
    whole = job.until("done")
    first = job.get(LogOffsetBytes=0, LogMaxBytes=14)
    assert first["Log"].startswith("first line")
    rest = job.get(LogOffsetBytes=first["LogNextOffsetBytes"])
    assert first["Log"] + rest["Log"] == whole["Log"]
    assert rest["LogNextOffsetBytes"] == whole["LogSizeBytes"]
    assert job.get(LogMaxBytes=0)["Log"] == ""


def test_the_same_job_is_started_once(job: Job) -> None:
    steps = [step("once", "echo ran")]
    job.start(*steps)
    job.until("done")
    assert job.start(*steps) == "done"
    assert job.get()["Log"].split() == ["ran"]


def test_a_failed_job_runs_again(job: Job) -> None:
    job.start(step("fails", "exit 1"))
    assert job.until("done")["ExitCode"] == 1
    job.start(step("works", "echo better"))
    found = job.until("done")
    assert (found["ExitCode"], found["Log"].split()) == (0, ["better"])


def test_another_job_is_refused_while_one_runs_and_stopped_is_lost(job: Job) -> None:
    def pings() -> set[int]:
        return {one["ProcessId"] for one in job.box.call("Get-BoxProcess", Name=["ping.exe"])}

    of_others = pings()
    assert job.start(step("slow", "ping -n 300 127.0.0.1")) == "running"
    while not pings() - of_others:
        time.sleep(0.1)
    assert job.get()["Step"] == "slow"
    assert job.start(step("slow", "ping -n 300 127.0.0.1")) == "running"
    with pytest.raises(BoxFault) as fault:
        job.start(step("other", "echo"), hash="two")
    assert fault.value.type == "Refused"
    assert job.box.call("Stop-BoxJob", Path=job.path) == {"State": "lost"}
    assert pings() - of_others == set()
    job.start(step("again", "echo again"), hash="two")
    assert job.until("done")["Log"].split() == ["again"]


def test_a_batch_file_gives_its_environment_to_later_steps(job: Job) -> None:
    batch = f"{job.path}.bat"
    job.box.host(batch).parent.mkdir(parents=True, exist_ok=True)
    job.box.host(batch).write_bytes(b"@echo off\r\nset BUILD=%1 and more\r\n")
    job.start(
        {"Name": "tools", "Kind": "environment", "Batch": batch, "Arguments": ["x64"]},
        step("use", "echo %BUILD%"),
    )
    found = job.until("done")
    assert (found["ExitCode"], found["Log"].strip()) == (0, "x64 and more")


def test_arguments_arrive_exactly(job: Job) -> None:
    """As CommandLineToArgvW takes them apart; cmd's own echo shows the text that it was given."""
    job.start(step("say", "echo", "a b", 'c "d', "back\\slash\\", ""))
    assert job.until("done")["Log"].strip() == 'echo "a b" "c \\"d" back\\slash\\ ""'.removeprefix("echo ")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, None),
        ({"SizeBytes": 4}, "5 bytes"),
        ({"Sha256": "00" * 32}, "SHA-256"),
        ({"MagicHex": "4d5a"}, "begins with"),
    ],
)
def test_verify_puts_only_the_right_file_in_its_place(
    job: Job, change: dict[str, Any], told: str | None
) -> None:
    source, destination = job.box.host(f"{job.path}.part"), job.box.host(f"{job.path}.bin")
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes(b"hello")
    check = {
        "Name": "verify",
        "Kind": "verify",
        "Path": f"{job.path}.part",
        "Destination": f"{job.path}.bin",
        "SizeBytes": 5,
        "Sha256": hashlib.sha256(b"hello").hexdigest(),
        "MagicHex": b"he".hex(),
    }
    job.start({**check, **change})
    found = job.until("done")
    if told is None:
        assert found["ExitCode"] == 0, found["Log"]
        (seen,) = job.box.call("Get-BoxFile", Path=[f"{job.path}.bin"], Hash=True)
        stamp = json.loads(job.box.host(f"{job.path}.bin.verified.json").read_text())
        assert stamp == {key: seen[key] for key in ("SizeBytes", "Sha256", "LastWriteTimeUtc")}
        assert "ReadOnly" in seen["Attributes"]
        assert not source.exists()
    else:
        assert found["ExitCode"] == 1
        assert told in found["Log"]
        assert source.exists()
        assert not destination.exists()


GOOD = b"hello"
# What stands at the part's place before, what the download writes (None: fails with 33 when something is there),
# how often it runs, exit code of the job.
DOWNLOADS = {
    "nothing": (None, GOOD, 1, 0),
    "a part": (b"hel", GOOD, 1, 0),
    "all of it": (GOOD, b"", 0, 0),
    "more than that": (b"hello, hello", GOOD, 1, 0),
    "all of another file": (b"jello", GOOD, 1, 0),
    "a server that gives the whole only": (b"hel", None, 2, 0),
    "another file comes": (None, b"jello", 1, 1),
    "another file comes after a part": (b"jel", b"jello", 2, 1),
}


@pytest.mark.parametrize("story", DOWNLOADS)
def test_a_download_ends_with_the_right_file_whatever_was_left_before(job: Job, story: str) -> None:
    left, comes, runs, code = DOWNLOADS[story]
    # Names that every code page of cmd can hold, unlike that of the job's folder.
    base = f"C:\\fetch {next(_NUMBERS)}"
    part, source = job.box.host(f"{base}.part"), job.box.host(f"{base}.src")
    source.write_bytes(GOOD if comes is None else comes)
    if left is not None:
        part.write_bytes(left)
    here = f'"{base}.part"'
    refuse = f"if exist {here} exit /b 33\r\n" if comes is None else ""
    fetch = f'@echo off\r\necho run\r\n{refuse}copy /b /y "{base}.src" {here} >nul\r\n'
    job.box.host(f"{base}.bat").write_bytes(fetch.encode("ascii"))
    more = {"Path": f"{base}.part", "SizeBytes": len(GOOD)}
    job.start(
        {"Name": "fetch", "Kind": "download", "Program": f"{base}.bat", "Arguments": [], **more},
        {
            "Name": "verify",
            "Kind": "verify",
            "Destination": f"{base}.bin",
            "Sha256": hashlib.sha256(GOOD).hexdigest(),
            "MagicHex": None,
            "Again": "fetch",
            **more,
        },
    )
    found = job.until("done")
    assert found["ExitCode"] == code, found["Log"]
    assert found["Log"].split().count("run") == runs, found["Log"]
    assert not part.exists()
    assert job.box.host(f"{base}.bin").exists() == (code == 0)


def test_a_program_that_is_not_there(job: Job) -> None:
    job.start({"Name": "gone", "Kind": "run", "Program": "C:\\nowhere\\x.exe", "Arguments": []})
    found = job.until("done")
    assert found["ExitCode"] == 9009
    assert "gone" in found["Log"]


def test_a_job_outlives_the_session_that_started_it(job: Job) -> None:
    loop = job.box.new_loop()
    parameters: dict[str, Any] = {
        "Path": job.path,
        "Hash": "one",
        "Steps": [step("a", "ping -n 3 127.0.0.1 >nul")],
        "TaskPath": job.task,
    }
    loop.call("Start-BoxJob", **parameters)
    loop.close()
    assert job.until("done")["ExitCode"] == 0
