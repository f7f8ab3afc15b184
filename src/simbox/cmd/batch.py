"""A batch file being run. As cmd.exe does, it is read from disk again for each line, from the byte where the
last one ended: a file replaced while it runs goes on in the middle of the new one."""

from __future__ import annotations

from dataclasses import dataclass, field

from simbox.cmd.machine import Machine, MachineError
from simbox.cmd.state import Frame
from simbox.cmd.variables import Parameters

_LABEL_ENDS = " \t:+,;=&|<>\r\x1a"


class BatchGone(Exception):
    """The batch file cannot be read any more."""


@dataclass
class Batch:
    """One batch context: the file, or a subroutine in it.

    Attributes: path, parameters, offset (byte of the next line), frames (SETLOCALs of this context).
    """

    machine: Machine
    path: str
    parameters: Parameters
    offset: int = 0
    frames: list[Frame] = field(default_factory=list)

    def _content(self) -> bytes:
        try:
            content = self.machine.read(self.path)
        except MachineError as error:
            raise BatchGone("The batch file cannot be found.") from error
        end = content.find(b"\x1a")
        return content if end < 0 else content[:end]

    def next_line(self) -> str | None:
        """The next line as text without its end; None at the end of the file."""
        content = self._content()
        if self.offset >= len(content):
            return None
        end = content.find(b"\n", self.offset)
        stop = len(content) if end < 0 else end
        line = content[self.offset : stop]
        self.offset = stop + 1
        return line.decode(self.machine.encoding, "replace").replace("\r", "")

    def find_label(self, label: str) -> bool:
        """Go to the line after a label, searched from here to the end and then from the top. False: not
        there."""
        content = self._content()
        wanted = label.lower()
        lines: list[tuple[int, int, str]] = []
        at = 0
        while at < len(content):
            end = content.find(b"\n", at)
            stop = len(content) if end < 0 else end
            text = content[at:stop].decode(self.machine.encoding, "replace").lstrip(" \t,;=")
            if text.startswith(":"):
                lines.append((at, stop + 1, label_name(text[1:])))
            at = stop + 1
        for start, after, name in [*(x for x in lines if x[0] >= self.offset), *lines]:
            if name.lower() == wanted:
                self.offset = after
                return start >= 0
        return False


def label_name(text: str) -> str:
    """The label in the text after GOTO or a colon."""
    text = text.lstrip(" \t,;=")
    for index, character in enumerate(text):
        if character in _LABEL_ENDS:
            return text[:index]
    return text
