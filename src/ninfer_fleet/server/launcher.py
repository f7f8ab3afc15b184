"""serve_task.bat: rendered from its template, and checked against what cmd.exe can take."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, StrictUndefined

from ninfer_fleet.server import argv
from ninfer_fleet.settings import Settings
from ninfer_fleet.settings.serve import LARGEST_SERVED_DRAFT
from winfleet.refusal import Refused

# cmd.exe ends a line at 8191 characters, counted after its variables are filled in.
LONGEST_LINE = 7_500


def render(settings: Settings, template: Path) -> bytes:
    """The .bat of a box: ASCII, CRLF, without the key and without the draft depth.

    Args:
        settings: what is declared for the box.
        template: serve_task.bat.j2.

    Raises: Refused when a line would not survive cmd.exe.
    """
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    lines = [argv.quoted(line) for line in argv.steady(settings)]
    text = environment.from_string(template.read_text(encoding="ascii")).render(
        layout=settings.layout,
        task=settings.task,
        model_path=settings.model_path,
        lines=lines,
        depths=range(1, LARGEST_SERVED_DRAFT + 1),
        with_key=settings.serve.api_key is not None,
        with_draft=settings.serve.spec is not None,
    )
    whole = sum(len(line) + 1 for line in lines) + 3 * 160
    if max(whole, *(len(line) for line in text.splitlines())) > LONGEST_LINE:
        raise Refused(
            f"{template.name}: a command line of {whole} characters is found, cmd.exe takes {LONGEST_LINE}. "
            "Remedy: declare fewer or shorter values"
        )
    try:
        return text.replace("\r\n", "\n").replace("\n", "\r\n").encode("ascii")
    except UnicodeEncodeError as error:
        raise Refused(
            f"{template.name}: not plain ASCII ({error}). Remedy: use ASCII names and paths"
        ) from error
