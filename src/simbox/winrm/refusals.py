"""The faults a WS-Man service answers with: codes, kinds and texts (docs/facts/winrm.md#fault-codes).

The texts are ours, in the sense of Windows's; clients must decide by the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["Sender", "Receiver"]

OPERATION_TIMED_OUT = 2150858793
INVALID_SELECTORS = 2150858843
SCHEMA_VIOLATION = 2150858817
INVALID_ACTION = 2150858753
NOT_FOUND = 2150858752
PROFILE_BUSY = 2147943418
PROGRAM_NOT_FOUND = 2147942402
ACCESS_DENIED = 5
NO_COMMAND = 87
BROKEN_PIPE = 109
BUSY = 170
ABORTED = 995
SHUTTING_DOWN = 1115
PIPE_TIMEOUT = 1460
MAX_SHELLS = 2150859173
MAX_OPERATIONS = 2150859174
MAX_USERS = 2150859179

_PROVIDER = "Shell cmd plugin"
_KINDS: dict[int, tuple[Side, str, bool, str]] = {
    OPERATION_TIMED_OUT: (
        "Receiver",
        "w:TimedOut",
        False,
        "The operation did not finish within OperationTimeout.",
    ),
    INVALID_SELECTORS: (
        "Sender",
        "w:InvalidSelectors",
        False,
        "The selectors match no resource of this service.",
    ),
    SCHEMA_VIOLATION: ("Sender", "w:SchemaValidationError", False, "The request violates the schema."),
    INVALID_ACTION: ("Sender", "a:ActionNotSupported", False, "The action URI is not valid."),
    NOT_FOUND: ("Sender", "w:InvalidResourceURI", False, "There is no such resource."),
    PROFILE_BUSY: (
        "Receiver",
        "w:InternalError",
        False,
        "Illegal operation attempted on a registry key that has been marked for deletion.",
    ),
    PROGRAM_NOT_FOUND: ("Receiver", "w:InternalError", True, "The system cannot find the file specified."),
    ACCESS_DENIED: ("Sender", "w:AccessDenied", False, "Access is denied."),
    NO_COMMAND: ("Receiver", "w:InternalError", True, "The parameter is incorrect."),
    BROKEN_PIPE: ("Receiver", "w:InternalError", True, "The pipe has been ended."),
    BUSY: ("Receiver", "w:InternalError", True, "The requested resource is in use."),
    ABORTED: (
        "Receiver",
        "w:InternalError",
        False,
        "The operation was aborted: its command or service has ended.",
    ),
    SHUTTING_DOWN: ("Receiver", "w:InternalError", False, "A system shutdown is in progress."),
    PIPE_TIMEOUT: (
        "Receiver",
        "w:InternalError",
        True,
        "The operation returned: the timeout period expired.",
    ),
    MAX_SHELLS: (
        "Receiver",
        "w:QuotaLimit",
        False,
        "This user has reached the maximum number of concurrent shells.",
    ),
    MAX_OPERATIONS: (
        "Receiver",
        "w:QuotaLimit",
        False,
        "This user has reached the maximum number of concurrent operations.",
    ),
    MAX_USERS: (
        "Receiver",
        "w:QuotaLimit",
        False,
        "The maximum number of concurrent shell users is reached.",
    ),
}


@dataclass(eq=False)
class Refusal(Exception):
    """A fault to be answered: HTTP 500 with a SOAP fault.

    Attributes: code (WSManFault's), side (whose fault), subcode (with the prefix w: or a:), message,
    provider (name of the plug-in when it is the one that refused, else empty).
    """

    code: int
    side: Side
    subcode: str
    message: str
    provider: str = ""

    def __str__(self) -> str:
        return f"{self.code} {self.subcode}: {self.message}"


def refusal(code: int, extra: str = "") -> Refusal:
    """The fault of a known code with its usual kind and text; an unknown code is an internal error."""
    side, subcode, by_plugin, text = _KINDS.get(
        code, ("Receiver", "w:InternalError", False, f"The operation failed with code {code}.")
    )
    return Refusal(code, side, subcode, f"{text} {extra}".strip(), _PROVIDER if by_plugin else "")


def schema_violation(name: str, value: str) -> Refusal:
    """A field whose value is of the wrong type, such as an IdleTimeOut in bare milliseconds."""
    return refusal(SCHEMA_VIOLATION, f"The value '{value}' of {name} is not valid.")


def invalid_xml(reason: str) -> Refusal:
    """A body that is no XML document of SOAP."""
    return refusal(SCHEMA_VIOLATION, f"The XML is not valid: {reason}.")
