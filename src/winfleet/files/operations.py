"""Folders, files and junctions.

Example::

    files.directories(paths=[r"C:\\ninfer", r"C:\\ninfer\\logs"])
    files.put(files=[FileContent(r"C:\\ninfer\\serve_task.bat", content=text.encode("ascii"))])
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyinfra.api.hiddenvalue import HiddenValue

from winfleet import diff
from winfleet.account.fact import Accounts
from winfleet.account.model import AccountSids
from winfleet.acl.fact import Acls
from winfleet.acl.model import (
    Access,
    AccessRule,
    Acl,
    acl_differences,
    declared_rules,
    protected_sddl,
    unresolved,
)
from winfleet.answer import Difference
from winfleet.call import Call
from winfleet.current import box
from winfleet.fact import prefetch, read
from winfleet.files.fact import Files
from winfleet.files.model import FileState
from winfleet.operation import box_operation
from winfleet.path import absolute_path, normal_path, same_path
from winfleet.refusal import FactUnreadable, Refused

# A text longer than this is compared by hash and shown by size only.
SHOWN_BYTES = 256 * 1024


@dataclass(frozen=True)
class FileContent:
    """A declared file.

    Attributes: path (full), content (bytes, or text, which is written as UTF-8 with the line ends that it has; a
    HiddenValue holding either is a secret: it is never shown), access (None: whatever the folder gives; else
    exactly these, nothing inherited, set before the content arrives), read_only (None: not declared).

    Raises: TypeError where the content is neither, when it is declared and not in the middle of an apply.
    """

    path: str
    content: bytes | str | HiddenValue = field(repr=False)
    access: tuple[Access, ...] | None = None
    read_only: bool | None = None

    def __post_init__(self) -> None:
        raw: Any = self.content.unmask() if isinstance(self.content, HiddenValue) else self.content
        if not isinstance(raw, bytes | str):
            raise TypeError(f"content of {self.path}: found {type(raw).__name__}, wanted text or bytes")

    @property
    def secret(self) -> bool:
        """True when the content must not be shown."""
        return isinstance(self.content, HiddenValue)

    def data(self) -> bytes:
        """The bytes of the file. Never print them when the file is secret."""
        raw: Any = self.content.unmask() if isinstance(self.content, HiddenValue) else self.content
        return raw if isinstance(raw, bytes) else str(raw).encode()


def _noop(message: str) -> None:
    box().noop(message)


def _check_paths(paths: Sequence[str]) -> None:
    wrong = [path for path in paths if not absolute_path(path)]
    if wrong:
        raise Refused(
            f"no full Windows path: {', '.join(repr(path) for path in wrong)}; write C:\\folder\\name"
        )
    spelled = [normal_path(path) for path in paths]
    twice = sorted({path for path, key in zip(paths, spelled, strict=True) if spelled.count(key) > 1})
    if twice:
        raise Refused(f"declared more than once: {', '.join(twice)}")


def _observed(states: dict[str, FileState], path: str) -> FileState:
    found = states.get(path) or next((one for key, one in states.items() if same_path(key, path)), None)
    if found is None:
        raise FactUnreadable(f"the box said nothing about {path}")
    if found.fault is not None:
        raise FactUnreadable(f"cannot read {path}: {found.fault}")
    return found


@box_operation()
def directories(paths: Sequence[str]) -> Iterator[Any]:
    """Folders that must exist (their parents too). A file in the place of one is refused, never removed."""
    _check_paths(paths)
    states = read(Files, paths=list(paths))
    missing = []
    for path in paths:
        found = _observed(states, path)
        if found.kind == "file":
            raise Refused(f"{path} is a file, a folder is wanted there; move the file away by hand")
        if found.kind == "absent":
            missing.append(path)
    for path in missing:
        diff.show(f"Will create folder {diff.bold(path)}")
    if not missing:
        _noop(f"{len(paths)} folders exist")
        return
    yield Call("New-BoxDirectory", Path=missing)


@box_operation()
def put(files: Sequence[FileContent]) -> Iterator[Any]:
    """Files with exactly this content (and access list, when declared). Folders above them must exist when it
    runs.

    A changed file is replaced in one step, so a reader sees the old or the new content. The access list of a
    file that did not exist is set on an empty file before the content arrives.
    """
    paths = [one.path for one in files]
    _check_paths(paths)
    states = _contents(files)
    lists = _lists([one.path for one in files if one.access is not None])
    accounts = _accounts([entry for one in files for entry in one.access or ()])
    calls: list[Call] = []
    for one in files:
        found = _observed(states, one.path)
        if found.kind not in {"absent", "file"}:
            raise Refused(f"{one.path} is a {found.kind}, a file is wanted there; move it away by hand")
        calls += _put_one(one, found, lists.get(normal_path(one.path)), accounts)
    if not calls:
        _noop(f"{len(files)} files are as declared")
        return
    yield from calls


def _contents(files: Sequence[FileContent]) -> dict[str, FileState]:
    """Hashes of all files, contents of those that may be shown; a secret's hash tells all that is needed."""
    secret = [one.path for one in files if one.secret]
    open_ones = [one.path for one in files if not one.secret]
    if secret and open_ones:
        prefetch(
            [Files.call(secret, hash=True), Files.call(open_ones, hash=True, max_content_bytes=SHOWN_BYTES)]
        )
    states: dict[str, FileState] = {}
    if secret:
        hidden = read(Files, paths=secret, hash=True)
        states |= hidden
    if open_ones:
        shown = read(Files, paths=open_ones, hash=True, max_content_bytes=SHOWN_BYTES)
        states |= shown
    return states


def _lists(paths: list[str]) -> dict[str, Acl]:
    return {normal_path(path): one for path, one in read(Acls, paths=paths).items()} if paths else {}


def _accounts(access: Sequence[Access]) -> AccountSids:
    names = unresolved(access)
    return read(Accounts, names=names) if names else AccountSids({}, {})


def _put_one(one: FileContent, found: FileState, acl: Acl | None, accounts: AccountSids) -> list[Call]:
    data = one.data()
    digest = hashlib.sha256(data).hexdigest()
    changes_content = found.sha256 != digest
    calls: list[Call] = []
    headline = f"Will {'create' if found.kind == 'absent' else 'modify'} {diff.bold(one.path)}"
    fields: list[Difference] = []
    if one.access is not None:
        rules, access_fields = _access(one.path, one.access, acl, accounts, directory=False)
        fields += access_fields
        if access_fields:
            if found.kind == "absent":
                calls.append(_upload(one.path, b"", secret=False))
            calls.append(Call("Set-BoxAcl", Path=one.path, Sddl=protected_sddl(rules)))
    if changes_content:
        calls.append(_upload(one.path, data, one.secret))
    if one.read_only is not None and one.read_only != found.read_only:
        fields.append(Difference("read_only", str(found.read_only).lower(), str(one.read_only).lower()))
        calls.append(Call("Set-BoxFileAttribute", Path=one.path, ReadOnly=one.read_only))
    if calls:
        before = None if found.kind == "absent" else found.content
        lines = list(_content_lines(found, before, data, one.secret)) if changes_content else []
        what = [*(["content"] if changes_content else []), *dict.fromkeys(item.field for item in fields)]
        diff.show(headline, [*lines, *diff.field_lines(fields)], ", ".join(what))
    return calls


def _content_lines(found: FileState, before: bytes | None, data: bytes, secret: bool) -> Iterator[str]:
    if not secret and found.kind == "file" and before is None:
        # Too large to be fetched: sizes and hashes are all there is to show.
        wanted = f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"
        yield from diff.field_lines(
            [Difference("content", f"{found.size_bytes} bytes, sha256 {found.sha256 or 'unknown'}", wanted)]
        )
        return
    yield from diff.content_lines((before or b"") if found.kind == "file" else None, data, secret)


def _upload(path: str, data: bytes, secret: bool) -> Call:
    packed = gzip.compress(data, mtime=0)
    smaller = len(packed) < len(data)
    digest = hashlib.sha256(data).hexdigest()
    return Call(
        "Set-BoxFile",
        payload=packed if smaller else data,
        Path=path,
        # The hash of a short secret can be tried out by whoever reads a log.
        Sha256=_hidden(digest) if secret else digest,
        Encoding="gzip" if smaller else "none",
    )


def _hidden(text: str) -> HiddenValue:
    return HiddenValue(text)  # type: ignore[no-untyped-call]


def _access(
    path: str, access: Sequence[Access], acl: Acl | None, accounts: AccountSids, directory: bool
) -> tuple[Sequence[AccessRule], list[Difference]]:
    rules, unknown = declared_rules(access, accounts, directory)
    if unknown:
        why = "; ".join(f"{name}: {accounts.faults.get(name.lower(), 'not known')}" for name in unknown)
        raise Refused(
            f"{path}: the box does not know the account ({why}); name an account that exists, or a SID"
        )
    observed = acl if acl is not None else Acl(path, False, None, False, ())
    return rules, acl_differences(observed, rules)


@box_operation()
def absent(paths: Sequence[str], recurse: bool = False) -> Iterator[Any]:
    """Files, junctions and empty folders that must not exist; with recurse also folders with what is in them.

    A junction is removed, never followed.
    """
    _check_paths(paths)
    states = read(Files, paths=list(paths))
    present = [path for path in paths if _observed(states, path).exists]
    for path in present:
        diff.show(f"Will remove {_observed(states, path).kind} {diff.bold(path)}")
    if not present:
        _noop("nothing to remove")
        return
    yield Call("Remove-BoxItem", Path=present, Recurse=True if recurse else None)


@box_operation()
def junction(path: str, target: str) -> Iterator[Any]:
    """A junction at path that leads to target. A real folder or file in its place is refused, never
    removed."""
    _check_paths([path])
    _check_paths([target])
    found = _observed(read(Files, paths=[path]), path)
    if found.kind not in {"absent", "junction"}:
        raise Refused(
            f"{path} is a {found.kind}, a junction to {target} is wanted there; move it away by hand"
        )
    if found.kind == "junction" and found.target is not None and same_path(found.target, target):
        _noop(f"{path} leads to {target}")
        return
    lines = diff.field_lines([Difference("target", found.target, target)])
    diff.show(
        f"Will {'modify' if found.exists else 'create'} junction {diff.bold(path)}", lines, f"to {target}"
    )
    yield Call("New-BoxJunction", Path=path, Target=target)


@box_operation()
def copies(items: Sequence[tuple[str, str]]) -> Iterator[Any]:
    """Files copied on the box: (source, destination) pairs; a destination with another hash is replaced.

    Sources that do not exist yet are refused in execution only: in a plan an earlier operation may still make
    them.
    """
    sources, destinations = [one for one, _ in items], [other for _, other in items]
    _check_paths(destinations)
    states = read(Files, paths=[*dict.fromkeys([*sources, *destinations])], hash=True)
    wanted = []
    for source, destination in items:
        before, after = _observed(states, source), _observed(states, destination)
        if before.kind != "file" and (before.exists or box().state.is_executing):
            raise Refused(
                f"cannot copy {source}: it is {'not there' if not before.exists else 'a ' + before.kind}"
            )
        if after.kind not in {"absent", "file"}:
            raise Refused(f"{destination} is a {after.kind}, a file is wanted there; move it away by hand")
        if before.sha256 is None or before.sha256 != after.sha256:
            wanted.append((source, destination))
            verb = "modify" if after.exists else "create"
            diff.show(f"Will {verb} {diff.bold(destination)}", [f"copy of {source}"], f"copy of {source}")
    if not wanted:
        _noop(f"{len(items)} copies are as their sources")
        return
    yield Call("Copy-BoxItem", Items=[{"Path": source, "Destination": target} for source, target in wanted])
