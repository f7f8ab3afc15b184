"""How a box command gets its parameters, answers, and fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simbox.errors import WindowsError

if TYPE_CHECKING:
    from simbox.box import Box


@dataclass
class Call:
    """One box command being run.

    Attributes: box; values (parameters by lower-case name, converted to their declared types, absent ones
    missing); payload (bytes that came with the request); process_id (of the PowerShell that answers); output
    (sends an `output` frame: stream, bytes); progress (sends a `progress` frame); stopped (true once the
    process is killed).
    """

    box: Box
    values: Mapping[str, Any]
    payload: bytes = b""
    process_id: int = 0
    output: Callable[[str, bytes], None] = lambda stream, data: None
    progress: Callable[[str, int, int], None] = lambda activity, done, total: None
    stopped: Callable[[], bool] = lambda: False

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter, or default when it was not given."""
        value = self.values.get(name.lower())
        return default if value is None else value

    def text(self, name: str) -> str:
        """A text parameter; empty when it was not given, as an unset [string] is."""
        return str(self.get(name, ""))

    def texts(self, name: str) -> list[str]:
        """A list parameter; empty when it was not given."""
        return [str(item) for item in self.get(name, [])]


@dataclass
class Answer:
    """A value with a payload beside it."""

    value: Any
    payload: bytes = field(default=b"")


Command = Callable[[Call], Any]


def bad_request(message: str) -> WindowsError:
    """The command cannot mean anything on any box."""
    return WindowsError("BadRequest", message, None, "InvalidOperation", "BadRequest")


def thrown(type_name: str, message: str, hresult: int) -> WindowsError:
    """An exception thrown by name: PowerShell makes its text the FullyQualifiedErrorId."""
    return WindowsError(type_name, message, hresult, "OperationStopped", message)


def refused(message: str) -> WindowsError:
    """The box could do it and will not."""
    return WindowsError("Refused", message, None, "PermissionDenied", "Refused")


def convert(value: Any, type_name: str) -> Any:
    """A JSON value as PowerShell would bind it to a parameter of that type. Raises ValueError or
    TypeError."""
    kind = type_name.lower().replace(" ", "")
    if value is None:
        return None
    if kind.endswith("[]"):
        items = value if isinstance(value, list) else [value]
        return [convert(item, kind[:-2]) for item in items]
    if isinstance(value, list):
        if kind in ("", "object", "array"):
            return value
        if kind == "string":
            return " ".join(str(convert(item, "string")) for item in value)
        raise TypeError(f"a list is no {type_name}")
    match kind:
        case "string":
            if isinstance(value, bool):
                return "True" if value else "False"
            if isinstance(value, dict):
                raise TypeError("an object is no text")
            return str(value)
        case "bool" | "switch":
            if isinstance(value, str):
                raise TypeError("text is no boolean")
            return bool(value)
        case "int" | "int32" | "long" | "int64" | "uint32" | "uint64":
            # PowerShell rounds to the nearest even number, and reads 0x from text
            number = int(value, 0) if isinstance(value, str) else round(value)
            bits = 64 if "64" in kind or kind == "long" else 32
            if not -(1 << (bits - 1)) <= number < 1 << bits:
                raise ValueError(f"{number} does not fit in {type_name}")
            return number
        case "double":
            return float(value)
    return value
