"""What makes an API key fit for use."""

from __future__ import annotations

import re

from pyinfra.api.hiddenvalue import HiddenValue

from winfleet.refusal import Refused

SHORTEST = 16
# It stands on the server's command line, of which cmd.exe takes 8191 characters in all.
LONGEST = 256
# RFC 6750's token68 characters: safe in a header, in a .bat between quotes and in an argument list.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")
_EXAMPLE = re.compile(
    r"your|example|sample|change.?me|placeholder|dummy|secret.?here|key.?here|xxxx|1234567890", re.I
)


def check_key(key: HiddenValue) -> HiddenValue:
    """The key itself if it is fit; raises Refused otherwise, never naming it."""
    text = str(key.unmask())
    remedy = "Remedy: make one with `openssl rand -hex 32` and give it by reference"
    if not text:
        raise Refused(f"serve.api_key: the key is empty. {remedy}")
    if _EXAMPLE.search(text):
        raise Refused(f"serve.api_key: the key is an example from a page that everybody can read. {remedy}")
    if not _TOKEN.fullmatch(text):
        raise Refused(
            f"serve.api_key: the key holds characters that a header or cmd.exe does not take "
            f"literally. {remedy}"
        )
    if len(text) < SHORTEST or len(set(text)) < 6:
        raise Refused(f"serve.api_key: the key is too short or too uniform to resist guessing. {remedy}")
    if len(text) > LONGEST:
        raise Refused(f"serve.api_key: the key has {len(text)} characters, more than {LONGEST}. {remedy}")
    return key
