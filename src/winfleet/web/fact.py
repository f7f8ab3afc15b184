"""HTTP as the box itself sees it."""

from __future__ import annotations

from winfleet.call import Call
from winfleet.fact import BoxFact
from winfleet.web.model import HttpAnswer


class HttpGet(BoxFact[HttpAnswer]):
    """The answer to a GET from the box, without any proxy.

    Args: url, timeout_s, bearer_file (path on the box whose trimmed content is the bearer token),
    max_body_bytes.
    """

    @staticmethod
    def call(
        url: str, timeout_s: int = 5, bearer_file: str | None = None, max_body_bytes: int | None = None
    ) -> Call:
        """The box command of this fact."""
        return Call(
            "Get-BoxHttp",
            volatile=True,
            Url=url,
            TimeoutSeconds=timeout_s,
            BearerFile=bearer_file,
            MaxBodyBytes=max_body_bytes,
        )

    parse = staticmethod(HttpAnswer.parse)
