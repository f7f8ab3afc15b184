"""The cases that a test run wants, run in the background: each engine in one session, two engines at a time.

One session answers one call after another; two engines side by side halve the time on a machine with two cores.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from case_boxes import CASES, Kind, direct_box, remote

from winfleet.contract import Case, Outcome, run_case

AT_A_TIME = 2


class CaseRuns:
    """Starts with its creation; `stop` ends it after the cases that run just then."""

    def __init__(self, wanted: Mapping[Kind | str, Sequence[Case]]) -> None:
        self._stopped = threading.Event()
        self._outcomes: dict[tuple[str, str], Future[Outcome]] = {
            (str(place), case.title): Future() for place, cases in wanted.items() for case in cases
        }
        self._pool = ThreadPoolExecutor(AT_A_TIME, "cases")
        for place, cases in wanted.items():
            self._pool.submit(self._run, place, cases)

    def outcome(self, place: Kind | str, case: Case) -> Outcome:
        """What became of a case, as soon as it is known. Raises what its place raised."""
        return self._outcomes[str(place), case.title].result()

    def stop(self) -> None:
        """End the sessions."""
        self._stopped.set()
        self._pool.shutdown(cancel_futures=True)

    def _run(self, place: Kind | str, cases: Sequence[Case]) -> None:
        try:
            with remote(place) if isinstance(place, str) else direct_box(place) as (box, folder):
                for case in cases:
                    if self._stopped.is_set():
                        return
                    number = CASES.index(case)
                    future = self._outcomes[str(place), case.title]
                    try:
                        future.set_result(run_case(case, box, f"{folder}\\{number}", number, folder))
                    except AssertionError as error:  # the session was lost; the next case has another
                        future.set_exception(error)
        except BaseException as error:
            for case in cases:
                future = self._outcomes[str(place), case.title]
                if not future.done():
                    future.set_exception(error)
