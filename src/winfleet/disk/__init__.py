"""The disk under a path."""

from winfleet.disk.fact import Disks
from winfleet.disk.model import DiskPlace

__all__ = ["DiskPlace", "Disks"]
