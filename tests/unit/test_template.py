"""serve_task.bat as text."""

from __future__ import annotations

import re
from typing import Any

import pytest
from bat_bench import KEY, TEMPLATE

from ninfer_fleet.server import launcher
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


# What Wine's cmd.exe does in another way than Microsoft's (tests/unit/cmd_cases.py, `wine`): what was shown there would
# not hold on a box. One more, a file's line that begins with ; is skipped by Microsoft's FOR /F alone: neither key,
# depth nor number does, and a draft file with such a line is unusable to both.
DIFFERENT = {
    "echo( prints": r"(?im)\becho\(",
    "echo without words": r"(?im)^\s*echo\s*$",
    "a chain of && and ||": r"&&|\|\|",
    "the exit code of a called file": r"(?im)\bcall\s+(?!:)",
    "set /p": r"(?i)\bset\s+/p\b",
    "modulo in parentheses after an operator": r"[-+*/]\s*\([^)]*%%",
    "more commands after a body of for": r"(?im)\bdo\b[^\r\n]*?[^>]&(?!1)",
    "a line of a file in a line that cmd.exe reads": r'(?i)"%DRAFT%"',
    "pipes": r"\|",
    "blocks": r"(?im)(\bdo|\belse|^if [^\r\n]*)\s+\(\s*$",
}


@pytest.mark.parametrize("construct", DIFFERENT)
def test_nothing_in_it_is_read_in_two_ways(construct: str) -> None:
    for text in (rendered(), rendered(serve={"api_key": None, "host": "127.0.0.1"})):
        assert re.findall(DIFFERENT[construct], text) == []


def test_the_constructs_are_recognised() -> None:
    samples = [
        "echo(x", "echo", "a && b || c", "call other.bat", 'set /p X=<"f"', 'set /a "X=60*(A %% 100)"',
        "for %%i in (1) do echo %%i& echo x", 'if "%DRAFT%"=="1" echo x', "dir | more", "if exist x (",
    ]  # fmt: skip
    for pattern, sample in zip(DIFFERENT.values(), samples, strict=True):
        assert re.search(pattern, sample), sample
