"""Sessions that begin on two wine boxes at once, again and again.

NINFER_FLEET_STARTS=100 repeats it that often on each box (some ten minutes on two cores); by default a few times.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from powershell import EngineBox, engine_box, wine_missing

pytestmark = pytest.mark.wine

VARIABLE = "NINFER_FLEET_STARTS"


@pytest.fixture
def pair() -> Iterator[list[EngineBox]]:
    missing = wine_missing()
    if missing:
        pytest.skip(missing)
    with ExitStack() as stack:
        yield [stack.enter_context(engine_box("wine")) for _ in range(2)]


def _repeat(box: EngineBox, times: int) -> tuple[list[float], list[str]]:
    """Seconds of each start, and what went wrong."""
    took, failures = [], []
    for _ in range(times):
        began = time.monotonic()
        try:
            loop = box.new_loop()
        except (AssertionError, OSError) as error:
            failures.append(str(error)[-500:])
            continue
        try:
            took.append(time.monotonic() - began)
            kind = loop.call("Get-BoxFile", Path=["C:\\windows"])[0]["Kind"]
            if kind != "directory" or loop.ready["LanguageMode"] != "FullLanguage":
                failures.append(f"{kind} {loop.ready}")
        except AssertionError as error:
            failures.append(str(error)[-500:])
        finally:
            loop.close()
    return took, failures


@pytest.mark.timeout(3600)
def test_every_session_begins(pair: list[EngineBox], record_property: Callable[[str, object], None]) -> None:
    times = int(os.environ.get(VARIABLE, "4"))
    gc.collect()
    files = len(os.listdir("/proc/self/fd"))
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda box: _repeat(box, times), pair))
    gc.collect()
    took = [seconds for seconds_of_box, _ in results for seconds in seconds_of_box]
    failures = [failure for _, failures_of_box in results for failure in failures_of_box]
    restarts = sum(box.box.events.counts("powershell_restart") for box in pair)
    told = (
        f"{2 * times} sessions, {len(failures)} failed, {restarts} starts of PowerShell repeated; "
        f"median {statistics.median(took):.1f} s, longest {max(took):.1f} s; "
        f"{len(os.listdir('/proc/self/fd')) - files} file descriptors more"
    )
    record_property("start-ups", told)
    print(told)
    assert failures == []
    assert len(os.listdir("/proc/self/fd")) - files < times
