"""The connector under pyinfra's own command line, where gevent has replaced sockets, threads and locks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from loop_box import ADDRESS, PASSWORD, LoopBox

PYINFRA = str(Path(sys.executable).parent / "pyinfra")


def data_options(box: LoopBox) -> list[str]:
    """The options that give every host the box's data."""
    data = {
        "winrm_port": str(box.endpoint.https_port),
        "winrm_user": "operator",
        "winrm_password": "env:LOOP_BOX_PASSWORD",
    }
    return [word for key, value in data.items() for word in ("--data", f"{key}={value}")]


def pin(box: LoopBox) -> list[str]:
    """The option that pins the box's certificate."""
    return ["--data", f"winrm_certificate_sha256={box.endpoint.certificate.sha256}"]


def pyinfra(box: LoopBox, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run pyinfra on an inventory (the first word) with the box's data for every host."""
    return subprocess.run(
        [PYINFRA, words[0], *data_options(box), *words[1:]],
        cwd=folder,
        env={**os.environ, "LOOP_BOX_PASSWORD": PASSWORD},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty working folder."""
    made = tmp_path / "work"
    made.mkdir()
    return made


def test_an_ad_hoc_command(box: LoopBox, folder: Path) -> None:
    done = pyinfra(
        box, folder, f"@winrm/{ADDRESS}", *pin(box), "-y", "exec", "--", "print it works; complain a little"
    )
    assert done.returncode == 0, done.stderr
    assert "it works" in done.stdout + done.stderr
    assert "a little" in done.stdout + done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert box.events.counts("process_start") == 1
    assert box.endpoint.shells() == []


def test_an_ad_hoc_command_that_fails(box: LoopBox, folder: Path) -> None:
    done = pyinfra(box, folder, f"@winrm/{ADDRESS}", *pin(box), "-y", "exec", "--", "exit 3")
    assert done.returncode == 1
    assert box.endpoint.shells() == []


def test_one_box_that_cannot_be_entered_stops_alone(box: LoopBox, folder: Path) -> None:
    (folder / "hosts.py").write_text(
        f"""
boxes = [
    ("@winrm/good", {{"winrm_host": "{ADDRESS}"}}),
    ("@winrm/unknown", {{"winrm_host": "box.invalid"}}),
    ("@winrm/wrong", {{"winrm_host": "{ADDRESS}", "winrm_certificate_sha256": "{"ab" * 32}"}}),
    ("@winrm/mode", {{"winrm_host": "{ADDRESS}", "winrm_mode": ["x"]}}),
    ("@winrm/timeout", {{"winrm_host": "{ADDRESS}", "winrm_timeout_s": "long"}}),
    ("@winrm/refused", {{"winrm_refused": "fleet.yml: port: found 'abc'"}}),
]
"""
    )
    (folder / "group_data").mkdir()
    (folder / "group_data" / "boxes.py").write_text(
        f'winrm_certificate_sha256 = "{box.endpoint.certificate.sha256}"\n'
    )
    done = pyinfra(box, folder, "hosts.py", "-y", "exec", "--", "print it works")
    text = done.stdout + done.stderr
    assert done.returncode == 1
    assert "it works" in text
    assert "the name box.invalid is unknown" in text
    assert f"the pinned {'ab' * 32}" in text
    assert "winrm_mode is ['x']" in text
    assert "winrm_timeout_s is 'long'" in text
    assert "fleet.yml: port: found 'abc'" in text
    assert "Traceback" not in text
    assert PASSWORD not in text
    assert box.endpoint.shells() == []


def test_a_wrong_entry_of_a_fleet_yml_stops_its_box_alone(box: LoopBox, folder: Path) -> None:
    entry = f"address: {ADDRESS}, user: operator, password: 'env:LOOP_BOX_PASSWORD'"
    (folder / "fleet.yml").write_text(
        f"""
boxes:
  good: {{{entry}, port: {box.endpoint.https_port}, certificate_sha256: {box.endpoint.certificate.sha256}}}
  port: {{{entry}, port: abc}}
  key: {{{entry}, adress: x}}
  nothing:
  text: {ADDRESS}
  twice: {{{entry}}}
  twice: {{{entry}}}
"""
    )
    (folder / "hosts.py").write_text(
        "from pathlib import Path as _Path\n"
        "from ninfer_fleet.fleet.inventory import read_fleet as _read_fleet\n"
        "globals().update(_read_fleet(_Path('fleet.yml')))\n"
    )
    done = subprocess.run(
        [PYINFRA, "hosts.py", "-y", "exec", "--", "print it works"],
        cwd=folder,
        env={**os.environ, "LOOP_BOX_PASSWORD": PASSWORD},
        capture_output=True,
        text=True,
        timeout=120,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 1
    assert "it works" in text
    assert "Traceback" not in text
    for name, told in {
        "port": "port: found 'abc'",
        "key": "did you mean 'address'?",
        "nothing": "address: found nothing",
        "text": f"found '{ADDRESS}'",
        "twice": "the box 'twice' stands there 2 times (lines 8, 9)",
    }.items():
        assert [line for line in text.splitlines() if f"[{name}]" in line and told in line], name


def test_a_secret_in_the_output_of_a_command_is_not_shown(box: LoopBox, folder: Path) -> None:
    (folder / "deploy.py").write_text(
        """
from pyinfra.api import StringCommand
from pyinfra.api.command import HiddenValue
from pyinfra.operations import server

secret = HiddenValue("example-of-a-key")
server.shell(name="shows it", commands=[StringCommand("print key is", secret)])
server.shell(name="fails with it", commands=[StringCommand("print key is", secret, ";exit 5")])
"""
    )
    done = pyinfra(box, folder, f"@winrm/{ADDRESS}", *pin(box), "-y", "-vvv", "--debug", "deploy.py")
    text = done.stdout + done.stderr
    assert done.returncode == 1
    assert "key is *MASKED*" in text
    assert "example-of-a-key" not in text
    assert box.endpoint.shells() == []


def test_the_password_is_not_shown_as_json_either(box: LoopBox, folder: Path) -> None:
    (folder / "deploy.py").write_text(
        """
import os

from pyinfra.operations import server

server.shell(commands=["print " + os.environ["LOOP_BOX_PASSWORD"]])
"""
    )
    done = pyinfra(box, folder, f"@winrm/{ADDRESS}", *pin(box), "-y", "--json", "deploy.py")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)["results"]
    assert shown["totals"]["success"] == 1
    assert "*MASKED*" in json.dumps(shown)
    assert PASSWORD not in json.dumps(shown, ensure_ascii=False) + done.stderr


def test_planning_changes_nothing(box: LoopBox, folder: Path) -> None:
    (folder / "deploy.py").write_text(
        'from pyinfra.operations import server\nserver.shell(name="x", commands=["print x"])\n'
    )
    done = pyinfra(box, folder, f"@winrm/{ADDRESS}", *pin(box), "--dry", "deploy.py")
    assert done.returncode == 0, done.stderr
    assert "Invoke-BoxScript" not in box.world.executed
    assert box.endpoint.shells() == []


def test_a_command_beyond_its_timeout(box: LoopBox, folder: Path) -> None:
    (folder / "deploy.py").write_text(
        'from pyinfra.operations import server\nserver.shell(name="x", commands=["overrun"], _timeout=2)\n'
    )
    done = pyinfra(box, folder, f"@winrm/{ADDRESS}", *pin(box), "-y", "deploy.py")
    assert done.returncode == 1
    assert "timed out after 2s" in done.stdout + done.stderr
    assert box.endpoint.shells() == []


def test_a_unix_argument_fails_by_name(box: LoopBox, folder: Path) -> None:
    done = pyinfra(box, folder, f"@winrm/{ADDRESS}", *pin(box), "-y", "--sudo", "exec", "--", "print x")
    assert done.returncode == 1
    assert "_sudo is set" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.fixture
def hooked(folder: Path) -> Path:
    """The working folder with the command line's hooks, as the product's own folder has them."""
    (folder / "config.py").write_text("from winfleet import cli_hooks\ncli_hooks.install()\n")
    return folder


def test_ctrl_c_ends_with_130_and_deletes_the_shell(box: LoopBox, hooked: Path) -> None:
    running = subprocess.Popen(
        [PYINFRA, f"@winrm/{ADDRESS}", *data_options(box), *pin(box), "-y", "exec", "--", "wait"],
        cwd=hooked,
        env={**os.environ, "LOOP_BOX_PASSWORD": PASSWORD},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert box.world.started.wait(60)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()
    box.world.go_on.set()
    assert running.returncode == 130
    assert "Ended with Ctrl+C" in told
    assert "Traceback" not in told
    assert box.endpoint.shells() == []


def test_a_limit_that_matches_nothing_is_an_error(box: LoopBox, hooked: Path) -> None:
    done = pyinfra(
        box, hooked, f"@winrm/{ADDRESS}", *pin(box), "-y", "--limit", "gpu1", "exec", "--", "print x"
    )
    assert done.returncode == 1
    assert "--limit gpu1 matches no box and no group with boxes; nothing was done" in done.stderr
    assert box.events.counts("connection") == 0


@pytest.mark.parametrize(("text", "code"), [("server.shell(commands=['print x'])", 1), ("", 0)])
def test_a_run_with_changes_but_without_terminal_and_y_is_an_error(
    box: LoopBox, hooked: Path, text: str, code: int
) -> None:
    (hooked / "deploy.py").write_text(f"from pyinfra.operations import server\n{text}\n")
    done = pyinfra(box, hooked, f"@winrm/{ADDRESS}", *pin(box), "deploy.py")
    assert done.returncode == code, done.stderr
    assert ("add -y to apply" in done.stderr) is (code == 1)
    assert "Invoke-BoxScript" not in box.world.executed
    assert "Traceback" not in done.stderr


def test_a_killed_run_and_the_next_one(box: LoopBox, folder: Path) -> None:
    """R27: SIGKILL in mid-command; the next run removes the shell that was left."""
    running = subprocess.Popen(
        [PYINFRA, f"@winrm/{ADDRESS}", *data_options(box), *pin(box), "-y", "exec", "--", "wait"],
        cwd=folder,
        env={**os.environ, "LOOP_BOX_PASSWORD": PASSWORD},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert box.world.started.wait(60)
    finally:
        running.kill()
        running.wait()
    box.world.go_on.set()
    assert len(box.endpoint.shells()) == 1
    done = pyinfra(box, folder, f"@winrm/{ADDRESS}", *pin(box), "-y", "exec", "--", "print it works")
    assert done.returncode == 0, done.stderr
    assert box.endpoint.shells() == []
