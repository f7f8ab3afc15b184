"""Access control lists.

Example::

    acl.protected(path=r"C:\\ninfer\\secrets", access=[Access("SYSTEM"), Access("Administrators")])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from winfleet import diff
from winfleet.account.fact import Accounts
from winfleet.account.model import AccountSids
from winfleet.acl.fact import Acls
from winfleet.acl.model import (
    FULL,
    TRUSTED_OWNERS,
    Access,
    AccessRule,
    Acl,
    acl_differences,
    declared_rules,
    inheritance_differences,
    inherited_sddl,
    owner_difference,
    protected_sddl,
    unresolved,
)
from winfleet.call import Call
from winfleet.current import box
from winfleet.fact import read
from winfleet.operation import box_operation
from winfleet.path import absolute_path
from winfleet.refusal import Refused
from winfleet.session.fact import Session

__all__ = ["Access", "inherited", "protected"]


@box_operation()
def protected(path: str, access: Sequence[Access], directory: bool = True) -> Iterator[Any]:
    """A path that only these accounts may use, in these ways; nothing comes from the folder above.

    A path that belongs to somebody else, who could change its list at any time, is given to Administrators.

    Args:
        path: full path of a folder or file.
        access: who may do what; on a folder also for what is in it. At least one account must keep full access.
        directory: what path will be when it does not exist yet (in a plan).
    """
    if not absolute_path(path):
        raise Refused(f"no full Windows path: {path!r}; write C:\\folder\\name")
    if not any(item.rights == "full" for item in access):
        raise Refused(f"{path}: nobody would keep full access; give it to SYSTEM or Administrators")
    found = next(iter(read(Acls, paths=[path]).values()), Acl(path, False, None, False, ()))
    rules = _rules(path, access, directory if found.directory is None else found.directory)
    owner = owner_difference(found, _trusted(rules))
    differences = owner + acl_differences(found, rules)
    if not differences:
        box().noop(f"access to {path} is as declared")
        return
    headline = f"Will {'modify' if found.exists else 'set'} access to {diff.bold(path)}"
    diff.show(headline, diff.field_lines(differences), diff.named(differences))
    yield Call("Set-BoxAcl", Path=path, Sddl=protected_sddl(rules, owner[0].wanted if owner else None))


@box_operation()
def inherited(
    folders: Sequence[str], files: Sequence[str], access: Sequence[Access], settled: bool = True
) -> Iterator[Any]:
    """Folders and files below a protected folder that hold no more than what it hands down to them.

    An entry of their own that gives anybody else a right is taken away, as is an owner who could make one. What
    is not there is passed over.

    Args:
        folders: full paths. files: full paths. access: what the protected folder above is declared to give.
        settled: False when that folder is about to be changed: what comes from it is not compared then.
    """
    paths = [*folders, *files]
    if wrong := [path for path in paths if not absolute_path(path)]:
        raise Refused(f"no full Windows path: {wrong[0]!r}; write C:\\folder\\name")
    rules = _rules(paths[0], access, True)
    trusted = _trusted(rules)
    calls = []
    for path, found in read(Acls, paths=paths).items():
        if not found.exists:
            continue
        owner = owner_difference(found, trusted)
        differences = owner + inheritance_differences(found, rules, path in folders, settled)
        if differences:
            fields = diff.field_lines(differences)
            diff.show(f"Will modify access to {diff.bold(path)}", fields, diff.named(differences))
            sddl = inherited_sddl(owner[0].wanted if owner else None)
            calls.append(Call("Set-BoxAcl", Path=path, Sddl=sddl))
    if not calls:
        box().noop(f"access to {len(paths)} paths is what they inherit")
    yield from calls


def _rules(path: str, access: Sequence[Access], directory: bool) -> tuple[AccessRule, ...]:
    """The entries that declared access means on this box. Raises Refused for an account that it lacks."""
    names = unresolved(access)
    accounts = read(Accounts, names=names) if names else AccountSids({}, {})
    rules, unknown = declared_rules(access, accounts, directory)
    if unknown:
        why = "; ".join(f"{name}: {accounts.faults.get(name.lower(), 'not known')}" for name in unknown)
        raise Refused(
            f"{path}: the box does not know the account ({why}); name an account that exists, or a SID"
        )
    return rules


def _trusted(rules: Sequence[AccessRule]) -> frozenset[str]:
    """Who may own a path with these entries: whoever may do everything there anyhow.

    That is also the administrator who is connected: with the policy "default owner: object creator" all that he
    makes is his, and not of the group Administrators.
    """
    full = {rule.sid for rule in rules if rule.allow and rule.rights == FULL}
    rights = read(Session)
    connected = {rights.user_sid.upper()} if rights.elevated and rights.user_sid else set()
    return TRUSTED_OWNERS | full | connected
