"""An HTTP answer as a box itself sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from winfleet.answer import Model, mapping, optional_integer, optional_text


@dataclass(frozen=True)
class HttpAnswer(Model):
    """Answer of Get-BoxHttp.

    Attributes: status (None: no answer), headers (names in lower case), body, body_truncated, elapsed_ms,
    error_kind (None, "refused", "timeout", "dns", "tls", "other"), error_message.
    """

    status: int | None
    headers: Mapping[str, str]
    body: str
    body_truncated: bool
    elapsed_ms: int | None
    error_kind: str | None
    error_message: str | None

    @classmethod
    def parse(cls, value: Any) -> HttpAnswer:
        """From the JSON value. Raises ModelError."""
        data = mapping(value, "Get-BoxHttp")
        headers = mapping(data.get("Headers") or {}, "Headers")
        return cls(
            optional_integer(data, "StatusCode"),
            {str(name).lower(): str(content) for name, content in headers.items()},
            optional_text(data, "Body") or "",
            bool(data.get("BodyTruncated")),
            optional_integer(data, "ElapsedMs"),
            optional_text(data, "ErrorKind"),
            optional_text(data, "ErrorMessage"),
        )

    @property
    def ok(self) -> bool:
        """True for a status of 200 to 299."""
        return self.status is not None and 200 <= self.status < 300

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        return json.loads(self.body)

    def __str__(self) -> str:
        if self.status is not None:
            return f"HTTP {self.status}"
        why = f": {self.error_message}" if self.error_message else ""
        return f"no answer ({self.error_kind or 'other'}{why})"
