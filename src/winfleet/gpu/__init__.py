"""Graphics cards."""

from winfleet.gpu.fact import Gpu
from winfleet.gpu.model import GpuCard, GpuState

__all__ = ["Gpu", "GpuCard", "GpuState"]
