"""The argument list: the published production line exactly, every flag reachable, nothing unsafe quoted."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ninfer_fleet.server import argv
from ninfer_fleet.settings import Settings

PRODUCTION = r"""
C:\ninfer\models\qwen3_8_27b.ninfer
--host 0.0.0.0 --port 8080
--max-context 131072
--kv-dtype rk4v4-e8 --kv-capacity auto
--max-concurrency 4 --max-pending-requests 64
--spec mtp --lm-head-draft
--preserve-thinking
--disk-cache --disk-cache-dir C:\ninfer-cache --disk-cache-gb 200
--request-log-jsonl C:\ninfer\logs\requests.jsonl
--draft-tokens 7 --api-key not-a-real-key
"""


def settings(**serve: Any) -> Settings:
    return Settings.model_validate({"serve": {"api_key": "env:NINFER_API_KEY", **serve}})


def test_the_published_production_line() -> None:
    assert argv.full(settings(), "not-a-real-key", 7) == PRODUCTION.split()


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"kv_capacity": 262144}, "--kv-capacity 262144"),
        ({"kv_capacity": None}, None),
        ({"vision": True, "vision_max_tokens": 4096}, "--vision-max-tokens 4096"),
        ({"disk_cache": False}, "--no-disk-cache"),
        ({"pending_timeout_ms": 180000}, "--pending-timeout-ms 180000"),
        ({"thinking": False}, "--no-thinking"),
        ({"ui": False}, "--no-ui"),
        ({"temperature": 0.5}, "--temperature 0.5"),
        ({"cuda_graph": False}, "--no-cuda-graph"),
        ({"prefix_reuse": False}, "--no-prefix-reuse"),
        ({"model_id": "fleet"}, "--model-id fleet"),
        ({"reasoning_effort": "low"}, "--reasoning-effort low"),
    ],
)
def test_a_declared_value_becomes_its_flag(declared: dict[str, Any], expected: str | None) -> None:
    line = " ".join(argv.full(settings(**declared), None, 7))
    if expected is None:
        assert "--kv-capacity" not in line
    else:
        assert f" {expected} " in f"{line} "


def test_without_speculation_there_is_no_draft_flag() -> None:
    line = argv.full(settings(spec=None, draft_tokens=None, lm_head_draft=False), None, 7)
    assert "--draft-tokens" not in line
    assert "--spec" not in line


def test_the_wddm_flag_appears_only_when_declared_on_a_headless_card() -> None:
    headless = Settings.model_validate(
        {"gpu": {"display": False}, "serve": {"api_key": "env:X", "wddm_evictable_budget": True}}
    )
    assert "--wddm-evictable-budget" in argv.full(headless, None, 7)
    assert "--wddm-evictable-budget" not in argv.full(settings(), None, 7)


@pytest.mark.parametrize("text", ["C:\\a b", "x(1)", "a=b", "a,b;c", "it's"])
def test_what_needs_quotes_gets_them(text: str) -> None:
    assert argv.quoted([text]) == f'"{text}"'


@pytest.mark.parametrize(
    "text", ['a"b', "100%", "a!b", "a^b", "a&b", "a|b", "x>y", "\u5fcd", "a\nb", "C:\\a b\\"]
)
def test_what_cannot_survive_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        argv.quoted([text])
