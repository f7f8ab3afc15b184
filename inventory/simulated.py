"""Simulated boxes on this machine, started when they are not up (`ninfer-fleet sim down` stops them).

Only what differs from a real box stands here, as data of the box: where it listens, its key, and a small
model artifact from the simulator's own mirror in place of 17 GB from the internet.
"""

from ninfer_fleet.fleet.inventory import InventoryError as _InventoryError
from ninfer_fleet.fleet.inventory import add as _add
from simbox import service as _service

try:
    _fleet = _service.up()
except _service.SimError as _error:
    raise _InventoryError(f"simulated boxes: {_error}") from None
_artifact = _fleet["artifact"]
_groups = {}
for _box in _fleet["boxes"]:
    _add(
        _groups,
        _box["name"],
        {
            "address": _box["address"],
            "port": _box["https_port"],
            "user": _box["user"],
            "password": f"file:{_box['password_file']}",
            "certificate_sha256": _box["certificate_sha256"],
            "groups": _box["groups"],
            "serve": {"api_key": f"file:{_box['api_key_file']}"},
            "model": {name: _artifact[name] for name in ("url", "size_bytes", "sha256")},
        },
        "the simulated fleet",
    )
globals().update(_groups)
