"""Secret references, and the redaction of what they lead to."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import output
from pyinfra.api.command import HiddenValue

from winfleet import redaction, secret_reference
from winfleet.wire.errors import Unreachable
from winfleet.wire.output import LineDecoder

SECRET = "ex'am\"ple-\u4e2d secret"


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_pattern", None)
    monkeypatch.setattr(secret_reference, "_printed", {})


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXAMPLE_SECRET", SECRET)
    found = secret_reference.resolve("env:EXAMPLE_SECRET", "it")
    assert found.unmask() == SECRET
    assert SECRET not in f"{found} {found!r}"
    assert redaction.redact(f"a {SECRET} b") == "a *MASKED* b"


@pytest.mark.parametrize("content", [SECRET, SECRET + "\n", SECRET + "\r\n", "\ufeff" + SECRET])
def test_from_a_file_of_its_owner(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_bytes(content.encode())
    path.chmod(0o600)
    assert secret_reference.resolve(f"file:{path}", "it").unmask() == SECRET


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    path.write_text(SECRET)
    path.chmod(mode)
    with pytest.raises(secret_reference.SecretUnavailable, match=rf"mode {mode:04o}.*chmod 600") as raised:
        secret_reference.resolve(f"file:{path}", "it")
    assert SECRET not in str(raised.value)


def test_from_a_command_run_once(tmp_path: Path) -> None:
    script = tmp_path / "ask.py"
    script.write_text(f"open({str(tmp_path / 'count')!r}, 'a').write('x'); print({SECRET!r})")
    reference = f"cmd:{sys.executable} -X utf8 {script}"
    for _ in range(3):
        assert secret_reference.resolve(reference, "it").unmask() == SECRET
    assert (tmp_path / "count").read_text() == "x"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("env:SURELY_NOT_SET_HERE", "SURELY_NOT_SET_HERE is not set"),
        ("file:/nowhere/key", "cannot read /nowhere/key"),
        ("cmd:/nowhere/ask", "cannot run /nowhere/ask"),
        ("cmd:false", "false ended with exit code 1"),
        ("cmd:true", "the secret is empty"),
        ("cmd:'", "not a command line"),
        ("cmd:", "names no program"),
        ("hunter2hunter2", "found a literal text"),
        ("https://example", "found a literal text"),
    ],
)
def test_references_that_lead_nowhere(reference: str, message: str) -> None:
    with pytest.raises(secret_reference.SecretUnavailable, match=message) as raised:
        secret_reference.resolve(reference, "winrm_password of gpu01")
    assert str(raised.value).startswith("winrm_password of gpu01: ")
    assert "hunter2" not in str(raised.value)


def test_a_file_with_several_lines_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("one\ntwo\n")
    path.chmod(0o600)
    with pytest.raises(secret_reference.SecretUnavailable, match="2 lines"):
        secret_reference.resolve(f"file:{path}", "it")


def test_a_hidden_value_passes() -> None:
    assert secret_reference.resolve(HiddenValue(SECRET), "it").unmask() == SECRET
    assert redaction.redact(SECRET) == "*MASKED*"


def test_all_spellings_of_a_secret_are_redacted() -> None:
    import json

    redaction.register(SECRET)
    doubled = SECRET.replace("'", "''")
    for text in (SECRET, json.dumps(SECRET), json.dumps(SECRET, ensure_ascii=False), f"'{doubled}'"):
        assert "ple-" not in redaction.redact(text)


def test_a_secret_inside_another_leaves_nothing_visible() -> None:
    redaction.register("abcd")
    redaction.register("abcd-efgh")
    assert redaction.redact("abcd-efgh abcd") == "*MASKED* *MASKED*"


def test_lines_of_a_long_secret_are_redacted_one_by_one() -> None:
    redaction.register("first-line\nsecond-line")
    assert redaction.redact("x second-line") == "x *MASKED*"


def test_short_texts_are_not_redacted() -> None:
    redaction.register("1")
    redaction.register("")
    redaction.register(None)
    assert redaction.redact("11") == "11"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    sink = io.StringIO()
    handler = logging.StreamHandler(sink)
    logger = logging.getLogger("pyinfra")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    yield sink
    logger.setLevel(level)
    logger.removeHandler(handler)


def test_log_lines_arguments_and_tracebacks_are_redacted(log: io.StringIO) -> None:
    redaction.install()
    redaction.register(SECRET)
    logger = logging.getLogger("pyinfra")
    logger.info("plain %s", SECRET)
    logger.info(f"formatted {SECRET}")
    try:
        raise RuntimeError(SECRET)
    except RuntimeError:
        logger.exception("failed")
    text = log.getvalue()
    assert "ple-" not in text
    assert text.count("*MASKED*") == 3
    assert "RuntimeError" in text


def test_echoed_lines_are_redacted_once_installed_and_only_wrapped_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(output, "_echo", lambda message=None, **options: seen.append((message, options)))
    redaction.register(SECRET)
    redaction.install()
    wrapped = output._echo
    redaction.install()
    assert output._echo is wrapped
    output.echo(f">>> {SECRET}", err=True)
    output.echo(None)
    assert seen == [(">>> *MASKED*", {"err": True}), (None, {})]


def test_hidden_values_deep_in_parameters_become_known() -> None:
    redaction.register_hidden({"a": [{"b": HiddenValue("deep-secret")}]})
    assert redaction.redact("deep-secret") == "*MASKED*"


def test_error_messages_never_hold_a_secret_and_are_one_line() -> None:
    redaction.register(SECRET)
    error = Unreachable("gpu01", f"found\n{SECRET}", "wanted", "mend")
    assert str(error) == "gpu01: found *MASKED*; wanted: wanted; mend: mend"


@pytest.mark.parametrize("oem", [936, 932, 850, None, 99999])
def test_lines_cut_inside_a_character(oem: Any) -> None:
    decoder = LineDecoder(oem)
    text = {936: "中文路径", 932: "日本語", 850: "Größe"}.get(oem, "utf-8 中文")
    codec = f"cp{oem}" if oem in (936, 932, 850) else "utf-8"
    data = (text + "\r\n" + text).encode(codec)
    lines = [line for byte in data for line in decoder.feed(bytes([byte]))]
    assert lines + decoder.finish() == [text, text]
    assert decoder.finish() == []


def test_bytes_of_no_code_page_never_raise() -> None:
    decoder = LineDecoder(936)
    assert decoder.feed(b"\xff\xff\n") == ["\ufffd\ufffd"]
