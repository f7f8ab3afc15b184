"""A box command as data: cmdlet and parameters, printed as PowerShell, sent as JSON.

The box commands are listed in docs/box-commands.md. A Call is a pyinfra StringCommand, so pyinfra prints it, masks its
secrets and carries it through facts and operations untouched (docs/facts/pyinfra.md#command-objects).

Example::

    Call("Get-BoxFile", Path=["C:\\ninfer"], Hash=True)        # reads
    Call("Set-BoxFile", payload=b"...", Path=r"C:\\a.txt", Sha256="...")   # changes
"""

from __future__ import annotations

import json
from typing import Any

from pyinfra.api import StringCommand
from pyinfra.api.command import HiddenValue

from winfleet.redaction import MASK

READ_VERBS = frozenset({"Get", "Test"})


def _quoted(value: Any, masked: bool) -> str:
    """A PowerShell literal of a JSON-like value; secrets as a mask or as they are."""
    if isinstance(value, HiddenValue):
        return MASK if masked else _quoted(value.unmask(), masked)
    if value is None:
        return "$null"
    if isinstance(value, bool):
        return "$true" if value else "$false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "@(" + ", ".join(_quoted(item, masked) for item in value) + ")"
    if isinstance(value, dict):
        return (
            "@{" + "; ".join(f"{_quoted(k, masked)} = {_quoted(v, masked)}" for k, v in value.items()) + "}"
        )
    return "'" + str(value).replace("'", "''") + "'"


def _plain(value: Any) -> Any:
    """The same value with secrets unmasked, fit for JSON."""
    if isinstance(value, HiddenValue):
        return value.unmask()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


class Call(StringCommand):
    """One box command.

    Args:
        command: its name, ``Verb-BoxNoun``; the verbs Get and Test read, all others change.
        payload: raw bytes that travel beside the JSON (file content, stdin).
        timeout_s: longest time to wait for the answer; None: the connector's default.
        volatile: the answer changes by itself (a process, a wait's own file): one that was fetched ahead serves
            once, and no other is kept.
        parameters: by name as in docs/box-commands.md; None values are left out; HiddenValue marks a secret.
    """

    def __init__(
        self,
        command: str,
        /,
        *,
        payload: bytes = b"",
        timeout_s: float | None = None,
        volatile: bool = False,
        **parameters: Any,
    ) -> None:
        self.command = command
        self.parameters = {name: value for name, value in parameters.items() if value is not None}
        self.payload = payload
        self.timeout_s = timeout_s
        self.volatile = volatile
        super().__init__(self._text(masked=True))

    @property
    def reads(self) -> bool:
        """True when the box may run this in a read-only session."""
        return self.command.partition("-")[0] in READ_VERBS

    def request(self) -> dict[str, Any]:
        """The JSON object of this call in a request, secrets unmasked. Never print it."""
        return {"command": self.command, "parameters": _plain(self.parameters)}

    def key(self) -> str:
        """Identity for caching: equal calls have equal keys."""
        return json.dumps(self.request(), sort_keys=True, ensure_ascii=False)

    def get_raw_value(self) -> str:
        """The PowerShell text with secrets; only a per-command connection needs it."""
        return self._text(masked=False)

    def get_masked_value(self) -> str:
        """The PowerShell text as printed."""
        return self._text(masked=True)

    def __str__(self) -> str:
        return self._text(masked=True)

    def __repr__(self) -> str:
        return f"Call({self._text(masked=True)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self.key() == other.key() and self.payload == other.payload

    def __hash__(self) -> int:
        return hash((self.key(), self.payload))

    def _text(self, masked: bool) -> str:
        parts = [self.command]
        parts += [f"-{name} {_quoted(value, masked)}" for name, value in self.parameters.items()]
        if self.payload:
            parts.append(f"-Payload <{len(self.payload)} bytes>" if masked else "-Payload $Payload")
        return " ".join(parts)
