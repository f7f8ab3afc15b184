"""The box and the run that pyinfra works on at this moment.

pyinfra keeps both in contexts whose public names (`pyinfra.host`, `pyinfra.state`) are stand-ins that compare
and hash as the real objects do only in part; sets of hosts need the real one.
"""

from __future__ import annotations

from typing import cast

from pyinfra.api import Host, State
from pyinfra.context import ctx_host, ctx_state


def box() -> Host:
    """The current host of this greenlet."""
    return cast(Host, ctx_host.get())  # type: ignore[no-untyped-call]


def run() -> State:
    """The state of the current run."""
    return cast(State, ctx_state.get())  # type: ignore[no-untyped-call]
