"""git.exe: clone, fetch, checkout and reading, on a source tree that is laid down at the asked commit.

The tree holds what the build and the checks read: CMakeLists.txt, the manifest of vcpkg, a few sources.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

from simbox.programs.invocation import Invocation

_SOURCES = (
    "src/core/device.h",
    "src/core/engine.cpp",
    "src/kernels/gqa_decode.cu",
    "src/kernels/gdn_scan.cu",
    "src/kernels/mtp_verify.cu",
    "src/kernels/kv_quant.cu",
    "apps/ninfer.cpp",
    "apps/serve/http_server.cpp",
    "apps/serve/serve_options.cpp",
    "bench/ninfer_bench.cpp",
)
_HEAD_OF_EVERY_BRANCH = "feat/rtx-4090-sm89-native"


class _Fatal(Exception):
    """git's `fatal:` line; exit code 128."""


def run(invocation: Invocation) -> int:
    """Exit codes: 0, 1 for an unknown command, 128 for a fatal error."""
    arguments = invocation.arguments
    folder = invocation.cwd
    while len(arguments) > 1 and arguments[0] in ("-C", "-c"):
        if arguments[0] == "-C":
            folder = invocation.box.filesystem.normalise(arguments[1], folder)
        arguments = arguments[2:]
    if arguments[:1] in (["--version"], ["version"]):
        invocation.out(f"git version {invocation.box.profile.get('toolchain', 'git')}")
        return 0
    commands = {
        "clone": _clone,
        "init": _init,
        "remote": _remote,
        "config": _config,
        "fetch": _fetch,
        "checkout": _checkout,
        "switch": _checkout,
        "reset": _checkout,
        "rev-parse": _rev_parse,
        "status": _status,
        "cat-file": _cat_file,
        "clean": _nothing,
        "submodule": _nothing,
    }
    name = arguments[0] if arguments else ""
    if name not in commands:
        invocation.err(f"git: '{name}' is not a git command. See 'git --help'.")
        return 1
    try:
        return commands[name](invocation, folder, arguments[1:])
    except _Fatal as error:
        invocation.err(f"fatal: {error}")
        return 128


def commit_of(reference: str) -> str:
    """Full commit id of a reference: a full id is itself, a name or short id has always the same one."""
    if re.fullmatch(r"[0-9a-f]{40}", reference):
        return reference
    if re.fullmatch(r"[0-9a-f]{7,39}", reference):
        return (reference + hashlib.sha1(reference.encode()).hexdigest())[:40]
    return hashlib.sha1(reference.encode()).hexdigest()


def _state(invocation: Invocation, folder: str) -> tuple[Path, dict[str, object]]:
    path = invocation.box.filesystem.host(folder)
    while not (path / ".git").is_dir():
        if path == invocation.box.directory or path.parent == path:
            raise _Fatal("not a git repository (or any of the parent directories): .git")
        path = path.parent
    file = path / ".git" / "state.json"
    return path, json.loads(file.read_text()) if file.exists() else {
        "remotes": {},
        "commit": None,
        "fetched": [],
    }


def _save(path: Path, state: dict[str, object]) -> None:
    (path / ".git").mkdir(parents=True, exist_ok=True)
    (path / ".git" / "state.json").write_text(json.dumps(state))
    if state["commit"]:
        (path / ".git" / "HEAD").write_text(f"{state['commit']}\n")


def _positional(arguments: list[str], with_value: tuple[str, ...] = ()) -> list[str]:
    found, skip = [], False
    for text in arguments:
        if skip:
            skip = False
        elif text in with_value:
            skip = True
        elif not text.startswith("-"):
            found.append(text)
    return found


def _reachable(invocation: Invocation, url: str) -> None:
    if invocation.box.store.get("faults", "no_internet"):
        raise _Fatal(f"unable to access '{url}/': Could not resolve host: {url.split('/')[2]}")
    if not re.match(r"https?://[^/]+/[^/]+/[^/]+", url):
        raise _Fatal(f"repository '{url}' does not exist")


def _clone(invocation: Invocation, folder: str, arguments: list[str]) -> int:
    names = _positional(
        arguments, ("--branch", "-b", "--depth", "--origin", "-o", "--filter", "-c", "--config")
    )
    if not names:
        raise _Fatal("You must specify a repository to clone.")
    url = names[0]
    target = names[1] if len(names) > 1 else url.rstrip("/").rpartition("/")[2].removesuffix(".git")
    path = invocation.box.filesystem.host(target, folder)
    if path.exists() and any(path.iterdir()):
        raise _Fatal(f"destination path '{target}' already exists and is not an empty directory.")
    invocation.err(f"Cloning into '{target}'...")
    _reachable(invocation, url)
    branch = _HEAD_OF_EVERY_BRANCH
    for flag in ("--branch", "-b"):
        if flag in arguments:
            branch = arguments[arguments.index(flag) + 1]
    commit = commit_of(branch)
    _save(path, {"remotes": {"origin": url}, "commit": commit, "fetched": [commit]})
    if not {"--no-checkout", "-n"} & set(arguments):
        _lay_down(path, commit)
    return 0


def _init(invocation: Invocation, folder: str, arguments: list[str]) -> int:
    names = _positional(arguments, ("--initial-branch", "-b"))
    path = invocation.box.filesystem.host(names[0] if names else ".", folder)
    if not (path / ".git").exists():
        _save(path, {"remotes": {}, "commit": None, "fetched": []})
    invocation.out(f"Initialized empty Git repository in {invocation.box.filesystem.windows(path)}")
    return 0


def _remote(invocation: Invocation, folder: str, arguments: list[str]) -> int:
    path, state = _state(invocation, folder)
    remotes = state["remotes"]
    assert isinstance(remotes, dict)
    match arguments:
        case ["add", name, url]:
            if name in remotes:
                invocation.err(f"error: remote {name} already exists.")
                return 3
            remotes[name] = url
        case ["set-url", name, url]:
            if name not in remotes:
                invocation.err(f"error: No such remote '{name}'")
                return 2
            remotes[name] = url
        case ["get-url", name]:
            if name not in remotes:
                invocation.err(f"error: No such remote '{name}'")
                return 2
            invocation.out(str(remotes[name]))
        case _:
            for name in remotes:
                invocation.out(str(name))
    _save(path, state)
    return 0


def _config(invocation: Invocation, folder: str, arguments: list[str]) -> int:
    if arguments[:1] == ["--get"] and arguments[1:] == ["remote.origin.url"]:
        return _remote(invocation, folder, ["get-url", "origin"])
    return 0


def _fetch(invocation: Invocation, folder: str, arguments: list[str]) -> int:
    path, state = _state(invocation, folder)
    names = _positional(arguments, ("--depth", "--filter", "-j", "--jobs"))
    remotes, fetched = state["remotes"], state["fetched"]
    assert isinstance(remotes, dict)
    assert isinstance(fetched, list)
    remote = names[0] if names else "origin"
    url = remotes.get(remote, remote if "://" in remote else None)
    if url is None:
        raise _Fatal(f"'{remote}' does not appear to be a git repository")
    _reachable(invocation, str(url))
    for reference in names[1:] or [_HEAD_OF_EVERY_BRANCH]:
        if re.fullmatch(r"[0-9a-f]{1,39}", reference):
            raise _Fatal(f"couldn't find remote ref {reference}")  # a server gives commits by full id only
        commit = commit_of(reference)
        if commit not in fetched:
            fetched.append(commit)
        state["fetch_head"] = commit
        invocation.err(f"From {url}\n * branch            {reference} -> FETCH_HEAD")
    _save(path, state)
    return 0


def _checkout(invocation: Invocation, folder: str, arguments: list[str]) -> int:
    path, state = _state(invocation, folder)
    names = _positional(arguments)
    reference = names[0] if names else "HEAD"
    commit = (
        state.get("fetch_head") if reference == "FETCH_HEAD" else commit_of(reference.removeprefix("origin/"))
    )
    if reference == "HEAD":
        commit = state["commit"]
    if not commit:
        raise _Fatal(f"reference is not a tree: {reference}")
    _lay_down(path, str(commit))
    state["commit"] = commit
    _save(path, state)
    invocation.err(f"HEAD is now at {str(commit)[:8]}")
    return 0


def _rev_parse(invocation: Invocation, folder: str, arguments: list[str]) -> int:
    path, state = _state(invocation, folder)
    if "--show-toplevel" in arguments:
        invocation.out(invocation.box.filesystem.windows(path).replace("\\", "/"))
        return 0
    if "--is-inside-work-tree" in arguments:
        invocation.out("true")
        return 0
    names = _positional(arguments)
    reference = (names[0] if names else "HEAD").removesuffix("^{commit}")
    commit = state["commit"] if reference == "HEAD" else commit_of(reference)
    if not commit:
        raise _Fatal("ambiguous argument 'HEAD': unknown revision or path not in the working tree.")
    invocation.out(str(commit)[:7] if "--short" in arguments else str(commit))
    return 0


def _cat_file(invocation: Invocation, folder: str, arguments: list[str]) -> int:
    _, state = _state(invocation, folder)
    commit = _positional(arguments)[-1].removesuffix("^{commit}")
    fetched = state["fetched"]
    assert isinstance(fetched, list)
    if commit in fetched or commit == state["commit"]:
        return 0
    if "-e" not in arguments:
        raise _Fatal(f"Not a valid object name {commit}")
    return 1


def _status(invocation: Invocation, folder: str, arguments: list[str]) -> int:
    path, state = _state(invocation, folder)
    wanted = _files(str(state["commit"]))
    for name, content in wanted.items():
        file = path / name
        if not file.is_file():
            invocation.out(f" D {name}")
        elif file.read_bytes() != content:
            invocation.out(f" M {name}")
    return 0


def _nothing(invocation: Invocation, folder: str, arguments: list[str]) -> int:
    _state(invocation, folder)
    return 0


def _files(commit: str) -> dict[str, bytes]:
    head = (
        "cmake_minimum_required(VERSION 3.28)\nproject(ninfer LANGUAGES CXX CUDA)\n"
        'set(NINFER_TARGET_SM_COUNT 128 CACHE STRING "streaming multiprocessors of the card")\n'
        'option(NINFER_BUILD_APPS "" ON)\noption(NINFER_BUILD_BENCHMARKS "" OFF)\n'
    )
    files = {
        "CMakeLists.txt": head.encode(),
        "vcpkg.json": b'{"name": "ninfer", "dependencies": ["curl", "ffmpeg"]}\n',
    }
    for name in _SOURCES:
        files[name] = f"// {name} at {commit}\n".encode()
    return files


def _lay_down(path: Path, commit: str) -> None:
    for name in ("src", "apps", "bench"):
        shutil.rmtree(path / name, ignore_errors=True)
    for name, content in _files(commit).items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_bytes() != content:
            file.write_bytes(content)
