"""What can go wrong between controller and box: one class per kind, one line per message.

All are OSErrors, because pyinfra ends the whole fleet's run for any other exception
(docs/facts/pyinfra.md#which-errors-end-a-run). A message says which box, what was found, what was wanted and the
remedy; known secrets are cut out of it.
"""

from __future__ import annotations

from winfleet.redaction import redact


def one_line(text: str) -> str:
    """Text on one line, runs of white space shortened, at most 600 characters."""
    joined = " ".join(text.split())
    return joined if len(joined) <= 600 else joined[:597] + "..."


class WireError(OSError):
    """A fault of the connection to one box.

    Args: endpoint (which box), found, wanted and mend (parts of the one-line message; empty ones are left
    out).
    """

    def __init__(self, endpoint: str, found: str, wanted: str = "", mend: str = "") -> None:
        parts = [found]
        if wanted:
            parts.append(f"wanted: {wanted}")
        if mend:
            parts.append(f"mend: {mend}")
        self.endpoint = endpoint
        self.found = found
        super().__init__(redact(one_line(f"{endpoint}: " + "; ".join(parts))))


class SettingRefused(WireError):
    """The connection settings of a box contradict each other or are unsafe. Nothing was sent."""


class Unreachable(WireError):
    """No TCP connection: unknown name, refused port, no answer."""


class CertificateRefused(WireError):
    """The box's TLS certificate is not the one that was pinned or cannot be validated. Nothing was sent."""


class TlsRefused(WireError):
    """Box and controller agree on no TLS version, cipher or client certificate. Nothing was sent."""


class CredentialsRefused(WireError):
    """The box does not accept the user and password, or offers no scheme that is safe to use."""


class BoxUnavailable(WireError):
    """The box answers, but its service refuses to work: quota, access denied, service starting, shutdown."""


class ConnectionLost(WireError):
    """An exchange broke off.

    Attributes: delivered: False when the box certainly did not take the message, True when it may have.
    """

    def __init__(self, endpoint: str, found: str, *, delivered: bool) -> None:
        super().__init__(endpoint, found)
        self.delivered = delivered


class LoginExpired(ConnectionLost):
    """A box that had let us in asks for the password again. Nothing was delivered."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint, "the box asked for the password again (HTTP 401)", delivered=False)


class InputBusy(WireError):
    """Another write to the process is still under way; the same message works a moment later."""


class InputDoubtful(WireError):
    """The service could not confirm that the process read what it was sent; the bytes usually arrive all the
    same.
    """


class InputRefused(WireError):
    """The process has closed its input or has ended; its last output can still be read."""


class ShellLost(WireError):
    """The shell or its process is gone: reboot, service restart, idle expiry, quota, exit."""


class MessageTooLarge(WireError):
    """The box takes smaller messages than this one. Nothing was delivered."""


class ProfileBusy(WireError):
    """The user's registry hive is still being unloaded or loaded; the same message works a moment later."""


class StartFailed(WireError):
    """PowerShell started but did not take up the conversation."""


class OutcomeUnknown(WireError):
    """A changing command may or may not have been carried out; it is never repeated silently."""


class DeadlineExceeded(WireError, TimeoutError):
    """A command did not end in the time it was given. Its process was ended."""


class TransferFailed(WireError):
    """A file did not arrive as it was sent."""


class ArgumentRefused(WireError):
    """A pyinfra argument that has no meaning on Windows."""
