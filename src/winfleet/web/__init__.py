"""HTTP as the box itself sees it."""

from winfleet.web.fact import HttpGet
from winfleet.web.model import HttpAnswer

__all__ = ["HttpAnswer", "HttpGet"]
