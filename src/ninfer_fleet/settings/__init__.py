"""Everything that group_data may declare, as typed values that refuse the known traps.

One module a noun: box (layout, gpu), engine, model, serve, network, task; `declared` puts them together for a
host.
"""

from ninfer_fleet.settings.box import Gpu, Layout
from ninfer_fleet.settings.declared import Settings, declared, merged
from ninfer_fleet.settings.engine import Engine
from ninfer_fleet.settings.model import Model
from ninfer_fleet.settings.network import Network
from ninfer_fleet.settings.serve import Serve
from ninfer_fleet.settings.task import Task

__all__ = ["Engine", "Gpu", "Layout", "Model", "Network", "Serve", "Settings", "Task", "declared", "merged"]
