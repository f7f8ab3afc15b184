"""serve_task.bat as text."""

from __future__ import annotations

from typing import Any

import pytest
from bat_bench import KEY, TEMPLATE

from ninfer_fleet import launcher
from ninfer_fleet.settings import Settings
from winfleet.refusal import Refused


def settings(**nouns: Any) -> Settings:
    nouns["serve"] = {"api_key": "env:NINFER_API_KEY", **nouns.get("serve", {})}
    return Settings.model_validate(nouns)


def rendered(**nouns: Any) -> str:
    return launcher.render(settings(**nouns), TEMPLATE).decode("ascii")


def test_it_is_ascii_with_crlf_and_a_last_line_end() -> None:
    raw = launcher.render(settings(), TEMPLATE)
    assert raw.isascii()
    assert raw.count(b"\n") == raw.count(b"\r\n")
    assert raw.endswith(b"\r\n")
    assert b"\x1a" not in raw


def test_neither_key_nor_depth_stand_in_it() -> None:
    text = rendered(serve={"draft_tokens": 5})
    assert text == rendered(serve={"draft_tokens": 2})
    assert KEY not in text
    assert "NINFER_API_KEY" not in text


def test_what_is_not_declared_is_not_asked_for() -> None:
    text = rendered(
        serve={
            "api_key": None,
            "host": "127.0.0.1",
            "spec": None,
            "draft_tokens": None,
            "lm_head_draft": False,
        }
    )
    assert "--api-key" not in text
    assert "--draft-tokens" not in text


def test_too_long_a_line_is_refused() -> None:
    long = settings(serve={"model_id": "m" * 8000})
    with pytest.raises(Refused, match=r"cmd\.exe takes 7500"):
        launcher.render(long, TEMPLATE)
