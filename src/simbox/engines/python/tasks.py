"""How the task scheduler of a python box starts what a task declares. `start` is a ProcessStarter."""

from __future__ import annotations

import ntpath
from typing import TYPE_CHECKING

from simbox.account import environment as account
from simbox.cmd.interpreter import Empty
from simbox.cmd.machine import Streams
from simbox.cmd.variables import Environment
from simbox.engines.python import launcher, systemprograms
from simbox.errors import WindowsError
from simbox.job import jobrunner
from simbox.task.starter import StartedProcess

if TYPE_CHECKING:
    from simbox.box import Box


def _find(box: Box, command: str, folder: str, environment: Environment) -> str:
    """The full path of a task's command: as it is, in its folder, in System32, or in the search path."""
    name = command.strip().strip('"')
    folders = [""] if ntpath.isabs(name) else [folder, systemprograms.SYSTEM32]
    if "\\" not in name:
        folders += (environment.get("PATH") or "").split(";")
    for base in folders:
        for extension in ("", ".exe", ".bat", ".cmd"):
            path = ntpath.join(base, name) + extension
            try:
                if box.filesystem.host(path).is_file():
                    return box.filesystem.normalise(path)
            except WindowsError:
                break
    raise launcher.win32_error(2, "The system cannot find the file specified", "ObjectNotFound")


def start(
    box: Box,
    command: str,
    arguments: str,
    working_directory: str | None,
    *,
    priority_class: str = "Normal",
    session_id: int = 0,
) -> StartedProcess:
    """Start `command arguments` outside of any remote session; see simbox.task.starter.ProcessStarter."""
    systemprograms.install(box)
    environment = account.environment(box)
    folder = (working_directory or systemprograms.SYSTEM32).strip('"')
    if not box.filesystem.host(folder).is_dir():
        raise launcher.win32_error(267, "The directory name is invalid")
    path = _find(box, command, folder, environment)
    nothing = Empty()
    streams = Streams(nothing, nothing, nothing)
    command_line = f'"{path}" {arguments}'.rstrip()
    if path.lower() == systemprograms.POWERSHELL.lower():
        job = jobrunner.job_folder(box, arguments)
        if job is not None:
            return jobrunner.JobProcess(box, job, environment, priority_class, session_id)
    return launcher.launch(
        box,
        path,
        command_line,
        folder,
        environment,
        streams,
        priority_class=priority_class,
        session_id=session_id,
    )
