"""Access control lists.

Example::

    acl.protected(path=r"C:\\ninfer\\secrets", access=[Access("SYSTEM"), Access("Administrators")])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from winfleet import diff
from winfleet.calls import Call
from winfleet.current import box
from winfleet.facts import read
from winfleet.facts.acl import Acls
from winfleet.facts.files import Files
from winfleet.facts.system import Accounts
from winfleet.models.account import Accounts as KnownAccounts
from winfleet.models.acl import Access, Acl, acl_differences, declared_rules, protected_sddl, unresolved
from winfleet.models.file import absolute_path
from winfleet.refusal import Refused, box_operation

__all__ = ["Access", "protected"]


@box_operation()
def protected(path: str, access: Sequence[Access], directory: bool = True) -> Iterator[Any]:
    """A path that only these accounts may use, in these ways; nothing comes from the folder above.

    Args:
        path: full path of a folder or file.
        access: who may do what; on a folder also for what is in it. At least one account must keep full
        access. directory: what path will be when it does not exist yet (in a plan).
    """
    if not absolute_path(path):
        raise Refused(f"no full Windows path: {path!r}; write C:\\folder\\name")
    if not any(item.rights == "full" for item in access):
        raise Refused(f"{path}: nobody would keep full access; give it to SYSTEM or Administrators")
    found = next(iter(read(Acls, paths=[path]).values()), Acl(path, False, None, False, ()))
    kind = next(iter(read(Files, paths=[path]).values())).kind if found.exists else None
    names = unresolved(access)
    accounts = read(Accounts, names=names) if names else KnownAccounts({}, {})
    is_directory = directory if kind in {None, "absent"} else kind != "file"
    rules, unknown = declared_rules(access, accounts, is_directory)
    if unknown:
        why = "; ".join(f"{name}: {accounts.faults.get(name.lower(), 'not known')}" for name in unknown)
        raise Refused(
            f"{path}: the box does not know the account ({why}); name an account that exists, or a SID"
        )
    differences = acl_differences(found, rules)
    if not differences:
        box().noop(f"access to {path} is as declared")
        return
    headline = f"Will {'modify' if found.exists else 'set'} access to {diff.bold(path)}"
    diff.show(headline, diff.field_lines(differences), diff.named(differences))
    yield Call("Set-BoxAcl", Path=path, Sddl=protected_sddl(rules))
