"""Options of the whole suite, and the count of contract cases at its end."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import settings

# The same examples in every run: a suite that finds something new on one day in fifty tells of it to whoever
# changed something else that day. `pytest --hypothesis-profile default` searches anew.
settings.load_profile("ci")

_CASE = re.compile(r"test_cases\.py::test_case\[(\S+) - ")


def pytest_addoption(parser: pytest.Parser) -> None:
    """--box runs the contract's cases on a real box, too."""
    parser.addoption(
        "--box",
        metavar="@winrm/HOST",
        help="also run the contract's cases on this box of inventory/fleet.yml, in a scratch folder",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test with Windows programs under Wine gets a second run, told as `rerun`.

    Among thousands of starts Wine 8 itself fails now and then (a program that is not found, a socket that stays
    open); a fault of ours fails twice.
    """
    for item in items:
        if item.get_closest_marker("wine"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many cases ran on each engine."""
    counts: dict[str, Counter[str]] = {}
    for status in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(status, []):
            found = _CASE.search(getattr(report, "nodeid", ""))
            if found:
                counts.setdefault(found[1], Counter())[status] += 1
    if counts:
        terminalreporter.section("contract cases")
    for place, count in counts.items():
        words = ", ".join(f"{number} {status}" for status, number in count.items())
        terminalreporter.write_line(f"{place:<12}{sum(count.values())} cases: {words}")
