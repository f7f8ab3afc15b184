"""What counts as an answer to a request for one token. Pure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ninfer_fleet.server.readiness import generation_fault
from winfleet.web.model import HttpAnswer

# As 3d11fd64 gives it (docs/facts/ninfer.md#chat-completion): a model that thinks begins with reasoning_content.
CHOICE = {
    "index": 0,
    "message": {"role": "assistant", "content": "", "reasoning_content": "The"},
    "finish_reason": "length",
}


def answer(status: int | None, body: Any = "") -> HttpAnswer:
    text = body if isinstance(body, str) else json.dumps(body)
    kind = None if status else "timeout"
    return HttpAnswer(status, {}, text, False, 1, kind, kind)


def test_a_completion_is_one_whatever_the_token() -> None:
    assert generation_fault(answer(200, {"choices": [CHOICE], "usage": {"completion_tokens": 1}})) is None
    assert generation_fault(answer(200, {"choices": [{**CHOICE, "finish_reason": "stop"}]})) is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (answer(503), "HTTP 503 instead of 200"),
        (answer(None), "no answer (timeout: timeout) instead of 200"),
        (answer(200, "<html>"), "answers no completion"),
        (answer(200, []), "answers no completion"),
        (answer(200, {"choices": []}), "answers no completion"),
        (answer(200, {"choices": [{**CHOICE, "finish_reason": None}]}), "answers no completion"),
        (answer(200, {"error": {"message": "no", "code": "internal_error"}}), "answers no completion"),
    ],
)
def test_everything_else_is_a_fault(given: HttpAnswer, words: str) -> None:
    assert words in (generation_fault(given) or "")
