"""Waits for a box end with a look, however long the looks take."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from winfleet import waiting


class Clock:
    """A clock that only sleeps and slow looks move on."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, passed_s: float) -> None:
        self.now += passed_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(waiting, "time", clock)
    monkeypatch.setattr(waiting, "gevent", clock)
    return clock


def looks(clock: Clock, takes_s: float, there_at_s: float) -> Callable[[], float | None]:
    """Looks that take that long and see what was there when they began."""

    def look() -> float | None:
        began = clock.now
        clock.now += takes_s
        return began if began >= there_at_s else None

    return look


def test_a_look_that_outlives_the_wait_is_followed_by_another(clock: Clock) -> None:
    assert waiting.until(looks(clock, 60, 1), 30, 0.5) == 60


def test_the_last_look_begins_when_the_time_is_up(clock: Clock) -> None:
    assert waiting.until(looks(clock, 0, 30), 30, 0.7) == 30
    clock.now = 0.0
    assert waiting.until(looks(clock, 0, 31), 30, 0.7) is None
    assert clock.now == 30


def test_no_time_is_one_look(clock: Clock) -> None:
    assert waiting.until(looks(clock, 5, 1), 0, 0.5) is None
    assert clock.now == 5
