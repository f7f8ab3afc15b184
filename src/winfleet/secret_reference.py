"""Secrets by reference: where a password or key is kept, never the password itself.

A reference is ``env:NAME`` (environment variable), ``file:PATH`` (first line of a file that only its owner
can read) or ``cmd:COMMAND`` (what a program prints, such as a password manager; run without a shell).
Inventories and group data hold references, so they can be committed and shown.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import threading
from pathlib import Path

from pyinfra.api.hiddenvalue import HiddenValue

from winfleet import redaction

SCHEMES = ("env", "file", "cmd")
COMMAND_TIMEOUT_S = 120.0
"""A password manager may wait for its owner to unlock it."""

_lock = threading.Lock()
_printed: dict[str, HiddenValue] = {}


class SecretUnavailable(ValueError):
    """A secret reference that cannot be followed. The text never holds the secret."""


def is_reference(value: object) -> bool:
    """True for text of the form env:..., file:... or cmd:...."""
    return isinstance(value, str) and value.partition(":")[0] in SCHEMES and ":" in value


def resolve(reference: str | HiddenValue, what: str) -> HiddenValue:
    """Follow a secret reference.

    Args:
        reference: ``env:NAME``, ``file:PATH``, ``cmd:COMMAND``, or a HiddenValue, which is returned as it is.
        what: what the secret is for, used in messages ("winrm_password of gpu01").

    Returns: the secret, hidden from printing and known to the redaction from now on.

    Raises: SecretUnavailable when the reference is no reference, leads nowhere, leads to nothing, or to a
    file that others can read.
    """
    if isinstance(reference, HiddenValue):
        secret = reference
    elif not is_reference(reference):
        raise SecretUnavailable(
            f"{what}: found a literal text; wanted: a reference env:NAME, file:PATH or cmd:COMMAND,"
            " so that the secret itself is never in an inventory or a command line"
        )
    else:
        scheme, _, place = reference.partition(":")
        if scheme == "env":
            secret = _hidden(_from_environment(place, what))
        elif scheme == "file":
            secret = _hidden(_from_file(place, what))
        else:
            secret = _from_command(place, what)
    if not secret.unmask():
        raise SecretUnavailable(f"{what}: the secret is empty")
    redaction.register(secret)
    return secret


def _hidden(text: str) -> HiddenValue:
    return HiddenValue(text)  # type: ignore[no-untyped-call]


def _from_environment(name: str, what: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise SecretUnavailable(f"{what}: environment variable {name} is not set; set it: export {name}=...")
    return value


def _from_file(place: str, what: str) -> str:
    path = Path(place).expanduser()
    try:
        mode = path.stat().st_mode
        content = path.read_bytes()
    except OSError as error:
        raise SecretUnavailable(f"{what}: cannot read {path}: {error.strerror or error}") from error
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SecretUnavailable(
            f"{what}: {path} has mode {stat.S_IMODE(mode):04o}, so others can read it;"
            f" wanted: 0600; mend: chmod 600 {path}"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SecretUnavailable(f"{what}: {path} is not UTF-8 text") from None
    lines = text.splitlines()
    if len(lines) > 1 and any(lines[1:]):
        raise SecretUnavailable(
            f"{what}: {path} holds {len(lines)} lines; wanted: the secret alone, on one line"
        )
    return lines[0] if lines else ""


def _from_command(command: str, what: str) -> HiddenValue:
    with _lock:  # Fifty boxes with one password manager ask it once, not fifty times at a time.
        if command not in _printed:
            _printed[command] = _hidden(_run(command, what))
        return _printed[command]


def _run(command: str, what: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SecretUnavailable(f"{what}: cmd: reference is not a command line: {error}") from error
    if not words:
        raise SecretUnavailable(f"{what}: cmd: reference names no program")
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, timeout=COMMAND_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise SecretUnavailable(
            f"{what}: {words[0]} printed nothing within {COMMAND_TIMEOUT_S:.0f} s"
        ) from None
    except OSError as error:
        raise SecretUnavailable(f"{what}: cannot run {words[0]}: {error.strerror or error}") from error
    if done.returncode != 0:
        raise SecretUnavailable(
            f"{what}: {words[0]} ended with exit code {done.returncode}; its message is above"
        )
    try:
        return done.stdout.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise SecretUnavailable(f"{what}: {words[0]} printed bytes that are not UTF-8") from None
