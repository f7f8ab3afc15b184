"""Whose rules, jobs and folders on a box these are: one value that a deploy makes once and passes on.

Example::

    OWNER = Owner(name="AcmeBackup", prefix="acme-", description="Managed by acme's deploy")
    firewall.rules(rules=[Rule(name="acme-agent", ...)], owner=OWNER)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,62}")
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,30}[-._]")


@dataclass(frozen=True)
class Owner:
    """A deploy, as it signs what it makes on a box.

    Attributes:
        name: folder of its tasks in the Task Scheduler, and first word of its scratch folders.
        prefix: how the names of its firewall rules begin; ends with ``-``, ``.`` or ``_``. What begins otherwise
            is somebody else's and never changed.
        description: written into whatever it makes that can hold a text.

    Raises: ValueError for a name or prefix that could stand for something of others.
    """

    name: str
    prefix: str
    description: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"owner's name {self.name!r}: wanted letters, digits, blanks, '_' and '-'")
        if not _PREFIX.fullmatch(self.prefix):
            raise ValueError(
                f"owner's prefix {self.prefix!r}: wanted three or more letters, digits, '.', '_' and '-', of which"
                " the last is a '-', '.' or '_', such as 'acme-'"
            )

    def owns(self, rule_name: str) -> bool:
        """True for the name of one of its rules; case does not count, as in Windows."""
        return rule_name.lower().startswith(self.prefix.lower())

    @property
    def task_folder(self) -> str:
        """Where its tasks of jobs live; one folder, so that a teardown finds them."""
        return f"\\{self.name}"

    def job_task(self, job_name: str) -> str:
        """Path of the on-demand task that starts the job of that name."""
        return f"{self.task_folder}\\Job-{job_name}"
