"""pyinfra's global arguments on Windows: what is supported, what is refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyinfra.api.hiddenvalue import HiddenValue

from winfleet import redaction
from winfleet.redaction import MASK
from winfleet.wire.errors import ArgumentRefused

UNIX_ONLY = frozenset(
    {
        "_sudo",
        "_sudo_user",
        "_use_sudo_login",
        "_sudo_password",
        "_preserve_sudo_env",
        "_su_user",
        "_use_su_login",
        "_preserve_su_env",
        "_su_shell",
        "_su_password",
        "_doas",
        "_doas_user",
        "_dzdo",
        "_dzdo_user",
        "_get_pty",
    }
)
HANDLED_BY_PYINFRA = frozenset({"_retries", "_retry_delay", "_retry_until", "_temp_dir"})
SUPPORTED = frozenset({"_shell_executable", "_chdir", "_env", "_success_exit_codes", "_timeout", "_stdin"})
SHELLS = {
    "sh": "powershell",  # pyinfra's default: nobody asked for a certain shell
    "powershell": "powershell",
    "powershell.exe": "powershell",
    "ps": "powershell",
    "cmd": "cmd",
    "cmd.exe": "cmd",
}


@dataclass(frozen=True)
class CommandSettings:
    """How a free text is to run.

    Attributes: shell (powershell or cmd), directory, environment (secrets unmasked: never print it),
    exit_codes that mean success, timeout_s, stdin, unknown (names of arguments of a newer pyinfra, which have
    no effect).
    """

    shell: str = "powershell"
    directory: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    exit_codes: frozenset[int] = frozenset({0})
    timeout_s: float | None = None
    stdin: bytes = b""
    unknown: tuple[str, ...] = ()

    def succeeded(self, exit_code: int) -> bool:
        """True for a wanted exit code; Windows reports them as signed or unsigned 32 bit."""
        return exit_code & 0xFFFFFFFF in self.exit_codes


def read_arguments(arguments: Mapping[str, Any], where: str) -> CommandSettings:
    """The settings in pyinfra's connector arguments. Raises ArgumentRefused, naming the argument."""
    for name in sorted(UNIX_ONLY):
        if arguments.get(name):
            raise ArgumentRefused(
                where,
                f"{name} is set",
                "no Unix privilege or terminal argument on Windows",
                f"remove {name}; connect as an administrator, or let a scheduled task run as another account",
            )
    shell = str(arguments.get("_shell_executable") or "sh").lower()
    if shell not in SHELLS:
        raise ArgumentRefused(
            where, f"_shell_executable is {shell!r}", "powershell or cmd", "remove it, or choose one of them"
        )
    environment = {str(name): _plain(value) for name, value in (arguments.get("_env") or {}).items()}
    for name, value in environment.items():
        refuse_masked(value, f"the environment variable {name}", where)
    codes = arguments.get("_success_exit_codes")
    timeout_s = arguments.get("_timeout")
    known = UNIX_ONLY | HANDLED_BY_PYINFRA | SUPPORTED
    return CommandSettings(
        SHELLS[shell],
        str(arguments["_chdir"]) if arguments.get("_chdir") else None,
        environment,
        frozenset(int(code) & 0xFFFFFFFF for code in (codes if codes is not None else [0])),
        float(timeout_s) if timeout_s else None,
        _stdin(arguments.get("_stdin"), where),
        tuple(sorted(name for name, value in arguments.items() if name not in known and value)),
    )


def refuse_masked(text: str | bytes, what: str, where: str) -> None:
    """Raise ArgumentRefused when text holds the mask of a HiddenValue instead of its secret."""
    if MASK in text if isinstance(text, str) else MASK.encode() in text:
        raise ArgumentRefused(
            where,
            f"{what} holds the literal {MASK}",
            "the secret itself",
            "a HiddenValue was formatted into text: pass it as an own bit of a StringCommand or in _env",
        )


def _plain(value: Any) -> str:
    if isinstance(value, HiddenValue):
        redaction.register(value)
        return value.unmask()
    return str(value)


def _stdin(value: Any, where: str) -> bytes:
    if not value:
        return b""
    lines: Iterable[Any] = [value] if isinstance(value, str | bytes | HiddenValue) else value
    data = b"".join(
        line if isinstance(line, bytes) else (_plain(line).removesuffix("\n") + "\n").encode()
        for line in lines
    )
    refuse_masked(data, "_stdin", where)
    return data
