"""Change a box by hand, as somebody would who means well: three edits that a deploy must find by name."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from simbox.task import xml as task_xml

if TYPE_CHECKING:
    from simbox.box import Box


def apply(box: Box) -> list[str]:
    """Open the firewall scope, put the task's time limit back, edit one line of its batch file.

    Returns what was done, one text for each edit; what is not there is left out.
    """
    return [text for text in (_firewall(box), _time_limit(box), _batch_line(box)) if text]


def _firewall(box: Box) -> str | None:
    for name, data in box.store.get("firewall", "rules").items():
        scoped = "|Dir=In|" in data and "|Action=Allow|" in data and "|LPort=" in data and "|RA4=" in data
        if scoped:
            opened = re.sub(r"\|RA[46]=[^|]*(?=\|)", "", data)
            box.windows.firewall.write(name, opened)
            if box.engine == "wine":
                _write_registry(box, name, opened)
            return f"firewall rule {name}: RemoteAddress opened to Any"
    return None


def _write_registry(box: Box, name: str, data: str) -> None:
    from simbox.engines.wine import locate, prefix
    from simbox.firewall.state import STORES

    key = STORES["Local"].replace("HKLM:", "HKLM")
    command = [str(locate.locate().wine), "reg", "add", key, "/v", name, "/t", "REG_SZ", "/d", data, "/f"]
    subprocess.run(command, env=prefix.environment(box.directory), check=True, capture_output=True)


def _serve_task(box: Box) -> tuple[str, task_xml.Node] | None:
    """The first task outside of \\Microsoft that runs a batch file."""
    for record in box.store.get("tasks").values():
        task = task_xml.read(record["Xml"])
        if _batch_path(task) and not record["Path"].startswith("\\Microsoft"):
            return record["Path"], task
    return None


def _batch_path(task: task_xml.Node) -> str | None:
    exec_ = "Actions/Exec/"
    text = f"{task.value(exec_ + 'Command')} {task.value(exec_ + 'Arguments')}"
    match = re.search(r"[A-Za-z]:\\[^\"<>|]*?\.(?:bat|cmd)\b", text)
    return match[0] if match else None


def _time_limit(box: Box) -> str | None:
    found = _serve_task(box)
    if found is None:
        return None
    path, task = found
    task.put("Settings/ExecutionTimeLimit", "PT72H")
    box.windows.scheduler.register(path, task_xml.write(task))
    return f"task {path}: Settings/ExecutionTimeLimit back to PT72H"


def _batch_line(box: Box) -> str | None:
    found = _serve_task(box)
    batch = _batch_path(found[1]) if found else None
    if batch is None or not box.filesystem.host(batch).is_file():
        return None
    host = box.filesystem.host(batch)
    lines = host.read_bytes().split(b"\r\n")
    number = next((index for index, line in enumerate(lines) if b"--max-pending-requests" in line), None)
    if number is not None:
        lines[number] = re.sub(rb"(--max-pending-requests\s+)\d+", rb"\g<1>16", lines[number])
    else:
        number = next(index for index, line in enumerate(lines) if line.strip())
        lines.insert(number + 1, b"rem edited by hand")
    host.write_bytes(b"\r\n".join(lines))
    return f"{batch}: line {number + 1} edited"
