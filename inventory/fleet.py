"""The fleet: inventory/fleet.yml; as long as there is none, or while NINFER_FLEET_SIMULATED is set, simulated
boxes on this machine, started on demand."""

import os as _os
import runpy as _runpy
from pathlib import Path as _Path

from pyinfra import logger as _logger

from ninfer_fleet.fleet.inventory import InventoryError as _InventoryError
from ninfer_fleet.fleet.inventory import read_fleet as _read_fleet

_directory = _Path(__file__).resolve().parent
if _Path.cwd() != _directory.parent:
    # pyinfra reads config.py and group_data/ from the current folder: elsewhere it would apply defaults.
    raise _InventoryError(
        f"run pyinfra in {_directory.parent}, the folder of deploy.py and group_data; this is {_Path.cwd()}"
    )
_declared = _directory / "fleet.yml"

if _declared.exists() and not _os.environ.get("NINFER_FLEET_SIMULATED"):  # set it to rehearse
    globals().update(_read_fleet(_declared))
else:
    _why = (
        "NINFER_FLEET_SIMULATED is set"
        if _declared.exists()
        else "No inventory/fleet.yml (copy fleet.example.yml for real boxes)"
    )
    _logger.info(f"    {_why}: using simulated boxes on this machine.")
    _simulated = _runpy.run_path(str(_directory / "simulated.py"))
    globals().update({name: hosts for name, hosts in _simulated.items() if isinstance(hosts, list)})
