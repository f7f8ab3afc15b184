"""The contract of the box commands as cases, and what it takes to run them on any box.

The cases are data (`cases/`, one YAML file per command). A case lays an initial state with box commands, asks
one call, and compares the answer and the state after it; so the same cases run on a simulated box and, over the
connector's own session, on a real one.

Example::

    for case in load_cases():
        outcome = run_case(case, place, folder=r"C:\\scratch\\1", number=1)
        print(case.title, outcome.status, outcome.differences)
"""

from winfleet.contract.case import Case, load_cases
from winfleet.contract.place import Place
from winfleet.contract.run import Outcome, run_case

__all__ = ["Case", "Outcome", "Place", "load_cases", "run_case"]
