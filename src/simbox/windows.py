"""The Windows services of a simulated box, by dotted name: `box.windows.scheduler.get(path)`.

Over the RPC of `simbox.service` the same methods answer to "scheduler.get" {"path": ...}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simbox.account.state import Accounts
from simbox.acl.state import Acls
from simbox.disk.state import Disks
from simbox.errors import WindowsError
from simbox.files.junction import Junctions
from simbox.firewall.state import Firewall
from simbox.gpu.state import Gpu
from simbox.network.state import Network
from simbox.process.state import Processes
from simbox.system.state import System
from simbox.task.scheduler import Scheduler

if TYPE_CHECKING:
    from simbox.box import Box
    from simbox.task.starter import ProcessStarter

__all__ = ["Windows", "WindowsError"]


class Windows:
    """All services of one box."""

    SERVICES = (
        "account",
        "acl",
        "disk",
        "firewall",
        "gpu",
        "junction",
        "network",
        "process",
        "scheduler",
        "system",
    )

    def __init__(self, box: Box) -> None:
        self.account = Accounts(box)
        self.system = System(box)
        self.acl = Acls(box)
        self.disk = Disks(box)
        self.firewall = Firewall(box)
        self.gpu = Gpu(box)
        self.junction = Junctions(box)
        self.junction = Junctions(box)
        self.network = Network(box)
        self.process = Processes(box)
        self.scheduler = Scheduler(box)

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Run a method by dotted name with named parameters, as the RPC does.

        Raises: WindowsError of the method, or of type UnknownCommand / BadRequest for a wrong name /
        parameter.
        """
        service, _, name = method.partition(".")
        target = getattr(getattr(self, service), name, None) if service in self.SERVICES else None
        if target is None or name.startswith("_") or name not in target.__self__.REMOTE:
            raise WindowsError("UnknownCommand", f"no method {method!r}", None, "ObjectNotFound")
        try:
            return target(**params)
        except TypeError as error:
            raise WindowsError("BadRequest", f"{method}: {error}", None, "InvalidArgument") from error

    def boot(self, starter: ProcessStarter | None) -> None:
        """See Box.boot."""
        self.system.boot()
        self.scheduler.boot(starter)

    def shut_down(self) -> None:
        """See Box.shut_down."""
        self.scheduler.shut_down()
        self.process.shut_down()
