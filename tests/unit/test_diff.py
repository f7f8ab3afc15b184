from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from pyinfra.operations.util.files import generate_color_diff

from winfleet import diff
from winfleet.answer import Difference

lines = st.lists(st.sampled_from(["a", "b", "  c", "", "d%"]), max_size=12)


@given(lines, lines)
def test_plain_texts_look_as_pyinfra_shows_them(old: list[str], new: list[str]) -> None:
    before, after = [line + "\n" for line in old], [line + "\n" for line in new]
    assert list(diff.text_lines("".join(before), "".join(after))) == list(generate_color_diff(before, after))


@given(st.text("ab \t\r\n", max_size=30), st.text("ab \t\r\n", max_size=30))
@example("\na", "a\n\n")
@example("a\r\na\n", "a\na\r\n")
def test_texts_that_differ_never_look_equal(old: str, new: str) -> None:
    shown = list(diff.text_lines(old, new))
    assert bool(shown) == (old != new)
    # As a reader takes it: what stood there, line after line, against what will stand there.
    before = [line[2:] for line in shown if line[:2] in ("  ", "- ")]
    after = [line[2:] for line in shown if line[:2] in ("  ", "+ ")]
    assert before != after or not shown


def test_invisible_differences_are_spelled_out() -> None:
    assert list(diff.text_lines("x \nlast", "x\r\nlast\n")) == [
        "@@ -1,2 +1,2 @@",
        "- x[SP] [LF]",
        "- last [no line end]",
        "+ x [CR LF]",
        "+ last [LF]",
    ]


def test_secrets_and_bytes_are_not_shown() -> None:
    assert list(diff.content_lines(b"old key", b"new key", secret=True)) == ["- *MASKED*", "+ *MASKED*"]
    assert list(diff.content_lines(None, b"new key", secret=True)) == ["+ *MASKED*"]
    assert list(diff.content_lines(b"\x00\x01", b"\xff\xfe\x00")) == ["- 2 bytes", "+ 3 bytes"]
    assert list(diff.content_lines("h\u00e9\n".encode("utf-16"), b"h\n")) == [
        "@@ -1 +1 @@",
        "- h\u00e9",
        "+ h",
    ]


def test_encodings_and_marks_are_spelled_out() -> None:
    assert list(diff.content_lines("a\n".encode("utf-16-le"), b"a\n")) == ["- 4 bytes", "+ 2 bytes"]
    assert list(diff.content_lines(b"\xff\xfe" + "a\n".encode("utf-16-le"), b"a\n")) == [
        "- the same text as UTF-16 little endian, 6 bytes",
        "+ the same text as UTF-8, 2 bytes",
    ]
    assert list(diff.content_lines(b"\xef\xbb\xbfa\n", b"a\n")) == ["@@ -1 +1 @@", "- [BOM]a", "+ a"]


def test_fields() -> None:
    found = [
        Difference("a", "1", "2"),
        Difference("b", None, "x"),
        Difference("key", "k1", "k2", secret=True),
    ]
    shown = list(diff.field_lines(found))
    assert shown == ["- a: 1", "+ a: 2", "+ b: x", "- key: *MASKED*", "+ key: *MASKED*"]
    assert diff.named(found) == "a, b, key"
    assert not re.search("k1|k2", "".join(shown))
