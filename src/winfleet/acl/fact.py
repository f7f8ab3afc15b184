"""Access control lists."""

from __future__ import annotations

from typing import Any

from winfleet.acl.model import Acl
from winfleet.answer import items
from winfleet.call import Call
from winfleet.fact import BoxFact


class Acls(BoxFact[dict[str, Acl]]):
    """For each path (as asked) its access control list."""

    @staticmethod
    def call(paths: list[str]) -> Call:
        """The box command of this fact."""
        return Call("Get-BoxAcl", Path=paths)

    @staticmethod
    def parse(value: Any) -> dict[str, Acl]:
        """Lists by path. Raises ModelError."""
        lists = [Acl.parse(item) for item in items(value, "Get-BoxAcl")]
        return {one.path: one for one in lists}
