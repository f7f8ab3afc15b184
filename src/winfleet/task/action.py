"""What a scheduled task does: actions of every kind (MS-TSCH 2.5.7), run one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from winfleet.answer import Model


@dataclass(frozen=True)
class Exec(Model):
    """Runs a program.

    Attributes: command (full path), arguments (one text), working_directory, id, foreign (elements of an
    observed action that no published schema has; written back as found, never compared).
    """

    command: str
    arguments: str | None = None
    working_directory: str | None = None
    id: str | None = None
    foreign: str = ""


@dataclass(frozen=True)
class ComHandler(Model):
    """Calls a COM object. Attributes: class_id ("{GUID}"), data (what it is given: text or XML), id."""

    class_id: str
    data: str | None = None
    id: str | None = None


@dataclass(frozen=True)
class SendEmail(Model):
    """Sends a mail; Windows 8 and later register it but do not run it.

    Attributes: server (host name), subject, to, cc, bcc, reply_to, sender (the element From), header_fields
    (name and value of each), body, attachments (full paths), id.
    """

    server: str
    subject: str | None = None
    to: str | None = None
    cc: str | None = None
    bcc: str | None = None
    reply_to: str | None = None
    sender: str | None = None
    header_fields: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    attachments: tuple[str, ...] = ()
    id: str | None = None


@dataclass(frozen=True)
class ShowMessage(Model):
    """Shows a window; Windows 8 and later register it but do not run it. Attributes: body, title, id."""

    body: str
    title: str | None = None
    id: str | None = None


@dataclass(frozen=True)
class OtherAction(Model):
    """An action that no published schema has; xml is its elements, written back as found."""

    name: str
    xml: str = ""
    id: str | None = None


Action: TypeAlias = Exec | ComHandler | SendEmail | ShowMessage | OtherAction

# Field and element of the plain texts of an action, in the order of the schema.
TEXTS: dict[type[Action], tuple[tuple[str, str], ...]] = {
    Exec: (("command", "Command"), ("arguments", "Arguments"), ("working_directory", "WorkingDirectory")),
    ComHandler: (("class_id", "ClassId"),),
    SendEmail: (
        ("server", "Server"),
        ("subject", "Subject"),
        ("to", "To"),
        ("cc", "Cc"),
        ("bcc", "Bcc"),
        ("reply_to", "ReplyTo"),
        ("sender", "From"),
        ("body", "Body"),
    ),
    ShowMessage: (("title", "Title"), ("body", "Body")),
}
KINDS: dict[str, type[Action]] = {
    "Exec": Exec,
    "ComHandler": ComHandler,
    "SendEmail": SendEmail,
    "ShowMessage": ShowMessage,
}


def action_kind(action: Action) -> str:
    """The element of an action."""
    return action.name if isinstance(action, OtherAction) else type(action).__name__
