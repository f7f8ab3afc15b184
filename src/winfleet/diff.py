"""Differences as text, in the style of pyinfra's own ``--diff``.

pyinfra prints a diff as ``@@ ... @@`` and lines that begin with ``-`` (red) and ``+`` (green), two lines of
context (docs/facts/pyinfra.md#diff-style). Here every line also carries the box's name, and line ends and
trailing blanks that differ are made visible: a .bat with bare LF looks the same but breaks
(docs/facts/windows.md#batch-files).

Nothing in this module reads a box: a diff is computed whole, then printed in one go, so that the lines of
several boxes do not mix.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from pyinfra import logger
from pyinfra.api.output import format_text

from winfleet.answer import Difference
from winfleet.current import box, run
from winfleet.redaction import MASK

_CONTEXT_LINES = 2


def decoded(content: bytes) -> str | None:
    """The text of a file's bytes (UTF-8, or UTF-16 with its mark), or None when they are no text."""
    try:
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return content.decode("utf-16")
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _spellings(lines: Iterable[str]) -> dict[str, set[str]]:
    """The lines of a text by what of them is visible."""
    found: dict[str, set[str]] = {}
    for line in lines:
        found.setdefault(line.rstrip(), set()).add(line)
    return found


def _visible(line: str, other: dict[str, set[str]]) -> str:
    """The line as shown; marks for its end when a line of the other text differs from it only there."""
    plain = line.rstrip()
    if not other.get(plain, set()) - {line}:
        return plain
    blanks = line.rstrip("\r\n")[len(plain) :]
    end = line[len(line.rstrip("\r\n")) :]
    names = {"\r\n": "[CR LF]", "\n": "[LF]", "\r": "[CR]", "": "[no line end]"}
    shown = blanks.replace("\t", "[TAB]").replace(" ", "[SP]")
    return f"{plain}{shown} {names.get(end, repr(end))}"


def text_lines(found: str, wanted: str) -> Iterator[str]:
    """The coloured lines of the difference of two texts; none when they are equal."""
    # keepends with "\n" only: splitlines would also cut at form feeds and the like, which are content.
    old = _cut(found)
    new = _cut(wanted)
    old_spellings, new_spellings = _spellings(old), _spellings(new)
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT_LINES):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (f"  {line.rstrip()}" for line in old[old_start:old_end])
                continue
            for line in old[old_start:old_end]:
                yield format_text(f"- {_visible(line, new_spellings)}", "red")
            for line in new[new_start:new_end]:
                yield format_text(f"+ {_visible(line, old_spellings)}", "green")


def _cut(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]] + (
        [text.split("\n")[-1]] if text.split("\n")[-1] else []
    )


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start if not length else start + 1},{length}"


def content_lines(found: bytes | None, wanted: bytes, secret: bool = False) -> Iterator[str]:
    """The coloured lines of the difference of two contents; found None: there was no file.

    A secret content, and one that is no text, is never shown: only that it changes.
    """
    if secret:
        if found is not None:
            yield format_text(f"- {MASK}", "red")
        yield format_text(f"+ {MASK}", "green")
        return
    old, new = decoded(found or b""), decoded(wanted)
    if old is None or new is None:
        if found is not None:
            yield format_text(f"- {len(found)} bytes", "red")
        yield format_text(f"+ {len(wanted)} bytes", "green")
        return
    if old == new and found is not None and found != wanted:
        yield format_text(f"- {_encoding(found)}", "red")
        yield format_text(f"+ {_encoding(wanted)}", "green")
        return
    yield from text_lines(old.replace("\ufeff", "[BOM]"), new.replace("\ufeff", "[BOM]"))


def _encoding(content: bytes) -> str:
    marks = {b"\xff\xfe": "UTF-16 little endian", b"\xfe\xff": "UTF-16 big endian"}
    return f"the same text as {marks.get(content[:2], 'UTF-8')}, {len(content)} bytes"


def field_lines(differences: Iterable[Difference]) -> Iterator[str]:
    """The coloured lines of differing fields, each under its name."""
    for one in differences:
        if one.found is not None:
            yield format_text(f"- {one.field}: {MASK if one.secret else one.found}", "red")
        if one.wanted is not None:
            yield format_text(f"+ {one.field}: {MASK if one.secret else one.wanted}", "green")


def show(headline: str, lines: Iterable[str] = (), summary: str = "") -> None:
    """Print one change of the current box: the headline with the lines under it, or only the summary without
    --diff.

    Args:
        headline: what will happen, e.g. "Will modify C:\\ninfer\\serve_task.bat".
        lines: the difference, coloured.
        summary: what changes in a few words, appended to the headline when the lines are not shown.
    """
    prefix = box().print_prefix
    if not run().config.DIFF:
        logger.info(f"{prefix}{headline}{f': {summary}' if summary else ''}")
        return
    block = [f"{prefix}{headline}", *(f"{prefix}  {line}" for line in lines)]
    for line in block:
        logger.info(line)


def named(differences: Iterable[Difference]) -> str:
    """The names of differing fields, for a summary: "settings.priority, actions[0].command"."""
    return ", ".join(dict.fromkeys(one.field for one in differences))


def bold(text: str) -> str:
    """The text in bold, as pyinfra shows paths and names."""
    return format_text(text, bold=True)
