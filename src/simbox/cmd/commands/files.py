"""Built-in commands about files and folders."""

from __future__ import annotations

import ntpath
from typing import TYPE_CHECKING

from simbox.cmd.commands.kind import Builtin, switches
from simbox.cmd.machine import MachineError, Streams
from simbox.cmd.patterns import files, matching

if TYPE_CHECKING:
    from simbox.cmd.interpreter import Interpreter

SYNTAX = "The syntax of the command is incorrect."
NOT_FOUND = "The system cannot find the file specified."


def change_directory(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """CD [/D] [folder]; without a folder it prints the present one."""
    text = rest.strip()
    change_drive = text[:2].lower() == "/d"
    target = (text[2:].strip() if change_drive else text).replace('"', "").rstrip(" ")
    if not target:
        shell.say(shell.state.directory, streams)
        return 0
    return _enter(shell, target, change_drive, streams)


def _enter(shell: Interpreter, target: str, change_drive: bool, streams: Streams) -> int:
    path = shell.state.full_path(target)
    entry = shell.machine.entry(path)
    if entry is None or not entry.directory:
        shell.error(
            "The directory name is invalid." if entry else "The system cannot find the path specified.",
            streams,
        )
        return 1
    change_drive = change_drive or path[0] == shell.state.drive
    shell.state.enter(_spelled(shell, path), change_drive)
    return 0


def _spelled(shell: Interpreter, path: str) -> str:
    """The path with each part as it is stored."""
    parent, name = ntpath.split(path)
    if not name:
        return path
    entry = shell.machine.entry(path)
    return ntpath.join(_spelled(shell, parent), entry.name if entry else name)


def push(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """PUSHD folder."""
    before = shell.state.directory
    code = _enter(shell, rest.strip().replace('"', ""), True, streams)
    if code == 0:
        shell.state.pushed.append(before)
    return code


def pop(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """POPD."""
    if not shell.state.pushed:
        return 1
    shell.state.enter(shell.state.pushed.pop())
    return None


def delete(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """DEL [/F] [/Q] [/S] files. A file that is not there is reported, yet the error level stays 0."""
    options, names = switches(rest)
    if not names:
        shell.error(SYNTAX, streams)
        return 1
    for name in names:
        found = files(shell.state, name)
        if not found:
            shell.error(f"Could Not Find {shell.state.full_path(name)}", streams)
        for path in found:
            entry = shell.machine.entry(path)
            try:
                if entry and "ReadOnly" in entry.attributes and "f" not in options:
                    raise MachineError(5)
                shell.machine.delete(path)
            except MachineError as error:
                shell.error(f"{path}\r\n{error}", streams)
    return 0


def make_directory(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """MD folders, with those above them."""
    _, names = switches(rest)
    if not names:
        shell.error(SYNTAX, streams)
        return 1
    code = 0
    for name in names:
        try:
            shell.machine.make_directory(shell.state.full_path(name))
        except MachineError as error:
            text = f"A subdirectory or file {name} already exists." if error.code == 183 else str(error)
            shell.error(text, streams)
            code = 1
    return code


def remove_directory(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """RD [/S] [/Q] folders."""
    options, names = switches(rest)
    if not names:
        shell.error(SYNTAX, streams)
        return 1
    code: int | None = None
    for name in names:
        path = shell.state.full_path(name)
        entry = shell.machine.entry(path)
        try:
            if entry is None:
                raise MachineError(2)
            if not entry.directory:
                raise MachineError(267)
            shell.machine.remove_directory(path, "s" in options)
        except MachineError as error:
            shell.error(str(error), streams)
            code = error.code
    return code


def move(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """MOVE [/Y] source destination; in a batch file it replaces without asking."""
    _, names = switches(rest)
    if len(names) != 2:
        shell.error(SYNTAX, streams)
        return 1
    source, destination = names
    state = shell.state
    wild = "*" in source or "?" in source
    paths = files(state, source) if wild else [state.full_path(source)]
    target = state.entry(destination)
    moved = 0
    try:
        if not paths or (not wild and state.entry(source) is None):
            raise MachineError(2)
        for path in paths:
            final = state.full_path(destination)
            if target is not None and target.directory:
                final = ntpath.join(final, ntpath.basename(path))
            entry = shell.machine.entry(path)
            shell.machine.move(path, final, replace=True)
            moved += 0 if entry and entry.directory else 1
    except MachineError as error:
        shell.error(str(error), streams)
        return 1
    kind = "file(s)" if moved else "dir(s)"
    shell.say(f"        {moved or 1} {kind} moved.", streams)
    return 0


def copy(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """COPY [/Y] [/B] source [destination]; `a+b` joins."""
    _, names = switches(rest.replace("+", ","))
    joined = "+" in rest
    if not names or (not joined and len(names) > 2):
        shell.error(SYNTAX, streams)
        return 1
    state = shell.state
    sources = names[:-1] if len(names) > 1 else names
    destination = names[-1] if len(names) > 1 else "."
    found = [path for source in sources for path in files(state, source)]
    if not found:
        shell.error(NOT_FOUND, streams)
        shell.say("        0 file(s) copied.", streams)
        return 1
    target = state.entry(destination)
    copied = 0
    try:
        if joined:
            content = b"".join(shell.machine.read(path) for path in found)
            _store(shell, state.full_path(destination), content)
            copied = 1
        else:
            for path in found:
                final = state.full_path(destination)
                if target is not None and target.directory:
                    final = ntpath.join(final, ntpath.basename(path))
                if final.lower() == path.lower():
                    shell.error("The file cannot be copied onto itself.", streams)
                    shell.say(f"        {copied} file(s) copied.", streams)
                    return 1
                _store(shell, final, shell.machine.read(path))
                copied += 1
    except MachineError as error:
        shell.error(str(error), streams)
        shell.say(f"        {copied} file(s) copied.", streams)
        return 1
    shell.say(f"        {copied} file(s) copied.", streams)
    return 0


def _store(shell: Interpreter, path: str, content: bytes) -> None:
    if ntpath.basename(path).lower() == "nul":
        return
    file = shell.machine.open(path, "write")
    try:
        file.write(content)
    finally:
        file.close()


def rename(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """REN path name."""
    _, names = switches(rest)
    if len(names) != 2 or "\\" in names[1]:
        shell.error(SYNTAX, streams)
        return 1
    path = shell.state.full_path(names[0])
    destination = ntpath.join(ntpath.dirname(path), names[1])
    try:
        if shell.machine.entry(path) is None:
            raise MachineError(2)
        existing = shell.machine.entry(destination)
        if existing is not None and destination.lower() != path.lower():
            shell.error("A duplicate file name exists, or the file\r\ncannot be found.", streams)
            return 1
        shell.machine.move(path, destination, replace=False)
    except MachineError as error:
        shell.error(str(error), streams)
        return 1
    return 0


def show(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """TYPE files: their bytes, as they are."""
    _, names = switches(rest)
    if not names:
        shell.error(SYNTAX, streams)
        return 1
    code = 0
    for name in names:
        if name.lower() == "nul":
            continue
        paths = files(shell.state, name) if "*" in name or "?" in name else [shell.state.full_path(name)]
        for path in paths:
            if len(paths) > 1 or len(names) > 1:
                shell.error(f"\r\n{name if len(names) > 1 else ntpath.basename(path)}\r\n\r\n", streams)
            try:
                streams.stdout.write(shell.machine.read(path))
            except MachineError as error:
                shell.error(str(error), streams)
                code = 1
    return code


def listing(shell: Interpreter, rest: str, streams: Streams) -> int | None:
    """DIR /B [/A-D | /AD] [pattern]: names only."""
    options, names = switches(rest)
    if "b" not in options:
        shell.error("Only DIR /B is known here.", streams)
        return 1
    pattern = names[0] if names else "*"
    entry = shell.state.entry(pattern) if "*" not in pattern and "?" not in pattern else None
    if entry is not None and entry.directory:
        pattern = ntpath.join(pattern, "*")
    shown = [
        found
        for _, found in matching(shell.state, pattern)
        if not ("a-d" in options and found.directory) and not ("ad" in options and not found.directory)
    ]
    if not shown:
        shell.error("File Not Found", streams)
        return 1
    for found in shown:
        shell.say(found.name, streams)
    return 0


COMMANDS: dict[str, Builtin] = {
    "cd": change_directory,
    "chdir": change_directory,
    "pushd": push,
    "popd": pop,
    "del": delete,
    "erase": delete,
    "md": make_directory,
    "mkdir": make_directory,
    "rd": remove_directory,
    "rmdir": remove_directory,
    "move": move,
    "copy": copy,
    "ren": rename,
    "rename": rename,
    "type": show,
    "dir": listing,
}
