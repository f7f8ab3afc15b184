"""Bring a simulated fleet up and down; usable from any process, also one patched by gevent.

Example::

    from simbox import service
    fleet = service.up(profiles=["rtx4090d", "old-driver"], directory=tmp_path, network="127.0.88")
    ...
    service.down(tmp_path)

The fleet runs in a process of its own (`simbox.daemon`); this one only starts it and speaks to it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simbox import box_profile as profiles_
from simbox import rpc
from simbox.box import EngineName
from simbox.layout import BoxPlan, Layout, Plan, default_directory

NETWORK = "127.0.77"
_STOP_S = 60


class SimError(Exception):
    """The simulator cannot do what was asked; the message says why and what to do."""


def up(
    *,
    engine: EngineName | None = None,
    boxes: int | None = None,
    profiles: Sequence[str] | None = None,
    network: str | None = None,
    directory: Path | None = None,
    https_port: int = 5986,
    http_port: int = 5985,
) -> dict[str, Any]:
    """The fleet of that directory, started when it is not up; returns what fleet.json holds.

    Args:
        engine: python (default) or wine. boxes: that many healthy ones (default 3).
        profiles: one box for each name instead.
        network: first three numbers of the addresses; default NINFER_FLEET_SIM_NETWORK, else 127.0.77.
        directory: default NINFER_FLEET_SIM_DIR, else .simbox.
        https_port, http_port: the same on every box, for each has its own address.

    Raises: SimError when it is up as something else than asked, or did not come up.
    """
    layout = Layout(directory or default_directory())
    running = fleet(layout.directory)
    if running is not None:
        _check_same(running, engine, boxes, profiles, network)
        return running
    wanted = network or os.environ.get("NINFER_FLEET_SIM_NETWORK") or NETWORK
    plan = _plan(engine or "python", boxes, profiles, wanted, https_port, http_port)
    layout.directory.mkdir(parents=True, exist_ok=True)
    with (layout.directory / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two starters at once: the second finds the first one's fleet
        running = fleet(layout.directory)
        if running is None:
            plan.write(layout.plan)
            _start(layout)
            running = fleet(layout.directory)
    if running is None:
        raise SimError(f"the simulator ended as soon as it was up; see {layout.log}")
    return running


def fleet(directory: Path | None = None) -> dict[str, Any] | None:
    """What fleet.json holds while the simulator of that directory lives, else None."""
    layout = Layout(directory or default_directory())
    try:
        ask("ping", directory=layout.directory)
        value: dict[str, Any] = json.loads(layout.fleet.read_text("utf-8"))
    except (SimError, OSError, ValueError):
        return None
    return value


def down(directory: Path | None = None) -> bool:
    """Stop the simulator of that directory by its process id and wait until it has ended; False when none
    ran.
    """
    layout = Layout(directory or default_directory())
    try:
        control = json.loads(layout.control.read_text("utf-8"))
        connection = rpc.ask_and_stay(control["port"], control["token"], "ping")
    except (OSError, ValueError, RuntimeError):
        return False
    with connection:
        os.kill(control["pid"], signal.SIGTERM)
        connection.settimeout(_STOP_S)
        try:
            connection.recv(1)
        except TimeoutError:
            os.kill(control["pid"], signal.SIGKILL)
            connection.settimeout(None)
            connection.recv(1)
        except OSError:
            pass
    with layout.lock.open("w") as lock:  # held until the very end of the process
        fcntl.flock(lock, fcntl.LOCK_EX)
    return True


def reset(directory: Path | None = None) -> bool:
    """Take the fleet down and delete its directory; False when there was none. Only a fleet's own is
    deleted.
    """
    layout = Layout(directory or default_directory())
    down(layout.directory)
    if not layout.directory.exists():
        return False
    if not layout.plan.exists():
        raise SimError(f"{layout.directory} holds no simulated fleet; nothing deleted")
    shutil.rmtree(layout.directory)
    return True


def ask(method: str, params: dict[str, Any] | None = None, *, directory: Path | None = None) -> Any:
    """A control request to the running simulator: status, drift, reboot, faults, windows, store.

    Raises: SimError when none runs or it refuses.
    """
    layout = Layout(directory or default_directory())
    try:
        control = json.loads(layout.control.read_text("utf-8"))
        return rpc.ask(control["port"], control["token"], method, params)
    except (OSError, ValueError) as error:
        raise SimError(
            f"no simulated fleet is up in {layout.directory}; start one: ninfer-fleet sim up"
        ) from error
    except RuntimeError as error:
        raise SimError(str(error)) from error


def _plan(
    engine: EngineName,
    boxes: int | None,
    profiles: Sequence[str] | None,
    network: str,
    https_port: int,
    http_port: int,
) -> Plan:
    chosen = list(profiles) if profiles else ["rtx4090d"] * (boxes or 3)
    for name in chosen:
        try:
            profiles_.load(name)
        except ValueError as error:
            raise SimError(str(error)) from error
    return Plan(
        engine,
        f"{network}.250",
        [
            BoxPlan(
                f"gpu{number:02}",
                f"{network}.{number}",
                name,
                engine,
                https_port=https_port,
                http_port=http_port,
            )
            for number, name in enumerate(chosen, 1)
        ],
    )


def _check_same(
    running: dict[str, Any],
    engine: EngineName | None,
    boxes: int | None,
    profiles: Sequence[str] | None,
    network: str | None,
) -> None:
    names = [box["profile"] for box in running["boxes"]]
    different = [
        f"{what} {have}"
        for what, have, want in (
            ("engine", running["engine"], engine),
            ("boxes", len(names), boxes),
            ("profiles", " ".join(names), " ".join(profiles) if profiles else None),
            ("network", running["boxes"][0]["address"].rpartition(".")[0], network),
        )
        if want is not None and have != want
    ]
    if different:
        raise SimError(
            f"a simulated fleet is already up with {', '.join(different)}; "
            "take it down first: ninfer-fleet sim down"
        )


def _start(layout: Layout) -> None:
    # Its stdout, not a pipe of our own: under gevent that stays open in this process and never ends.
    with layout.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "simbox.daemon", str(layout.directory)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdout is not None
    with process.stdout:
        word = process.stdout.read().decode()  # ends when the daemon says ready or dies
    process.returncode = 0  # it stays: nobody here waits for its end
    if word != "ready":
        raise SimError(f"the simulator did not start: {word or 'it ended at once'} (log: {layout.log})")
