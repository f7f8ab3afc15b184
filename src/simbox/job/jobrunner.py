"""Runs the steps of a detached job, as the PowerShell job runner does on a box."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import ntpath
import os
import re
import subprocess
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from simbox.cmd.machine import Streams
from simbox.cmd.variables import Environment
from simbox.engines.python import handles, launcher, systemprograms
from simbox.engines.python.pipes import HostFile
from simbox.engines.python.shell import ShellProcess
from simbox.errors import WindowsError, signed
from simbox.files.boxfiles import BoxFiles, o_time
from simbox.job.jobfolder import JobFolder
from simbox.process.state import utc_text

if TYPE_CHECKING:
    from simbox.box import Box

_PATHS = re.compile(r"[A-Za-z]:\\[^\"'|<>*?\r\n]*")
FAILED_CHECK = 1
CANNOT_START = 9009
NO_RANGES = 33  # of curl


def job_folder(box: Box, arguments: str) -> str | None:
    """The job folder that a command line of powershell.exe speaks of, or None when it runs no job."""
    text = arguments
    encoded = re.search(r"-e(?:nc|ncodedcommand)?\s+([A-Za-z0-9+/=]+)", arguments, re.IGNORECASE)
    if encoded:
        try:
            text = base64.b64decode(encoded[1], validate=True).decode("utf-16-le")
        except (binascii.Error, UnicodeDecodeError):
            return None
    for path in map(str, _PATHS.findall(text)):
        for folder in (path.rstrip("\\ "), ntpath.dirname(path)):
            if len(folder) > 3 and JobFolder(box, folder).job() is not None:
                return folder
    return None


class JobProcess:
    """The process of one running job. Implements simbox.task.starter.StartedProcess."""

    def __init__(
        self, box: Box, path: str, environment: Environment, priority_class: str, session_id: int
    ) -> None:
        self._box = box
        self._folder = JobFolder(box, path)
        self._environment = environment
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._done = threading.Event()
        self._killed = 1
        self._resumed = False
        self._again: str | None = None
        self.exit_code: int | None = None
        entry = box.windows.process.add(
            systemprograms.POWERSHELL, self.kill, priority_class=priority_class, session_id=session_id
        )
        self.pid = entry.pid
        self._created = utc_text(entry.created)
        box.events.append("program_start", pid=self.pid, program="powershell.exe")
        threading.Thread(target=self._run, name=f"job {path}", daemon=True).start()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """See StartedProcess."""
        self._done.wait(timeout_s)
        return self.exit_code

    def kill(self, exit_code: int = 1) -> None:
        """TerminateProcess: the present step's program goes on, no later step runs, no rc is written."""
        if not self._done.is_set():
            self._killed = exit_code
            self._stopping.set()
            self._wake.set()

    def kill_root(self) -> None:
        """See StartedProcess."""
        self.kill()

    def kill_tree(self) -> None:
        """See StartedProcess."""
        self._box.windows.process.kill_tree(self.pid)

    def _run(self) -> None:
        code: int | None = 1
        try:
            code = self._job()
        except Exception:
            self._box.events.append("program_fault", program="job", fault=traceback.format_exc())
        if self._stopping.is_set() or code is None:
            code = self._killed
        else:
            self._folder.write("rc", str(code))
        self.exit_code = code & 0xFFFFFFFF
        self._box.windows.process.exited(self.pid, self.exit_code)
        self._box.events.append("program_exit", pid=self.pid, program="powershell.exe", code=self.exit_code)
        self._done.set()

    def _job(self) -> int | None:
        folder = self._folder
        folder.write("started", utc_text(datetime.now(UTC)))
        folder.write("pid", f"{self.pid} {self._created}")
        job = folder.job() or {}
        log = HostFile(handles.of(self._box), folder.host("stdout.log"), "log")
        try:
            steps = job.get("Steps", [])
            names = [str(step.get("Name", "")) for step in steps]
            at = 0
            while at < len(steps):
                if self._stopping.is_set():
                    return None
                folder.write("step", names[at])
                code = self._step(steps[at], log)
                again, self._again = self._again, None
                if code == 0:
                    at += 1
                elif again in names[:at]:
                    at = names.index(again)
                else:
                    return code
            return None if self._stopping.is_set() else 0
        finally:
            log.close()

    def _step(self, step: dict[str, Any], log: HostFile) -> int:
        try:
            match step.get("Kind"):
                case "run":
                    return self._program(step, log)
                case "environment":
                    return self._batch(step, log)
                case "download":
                    return self._download(step, log)
                case "verify":
                    return self._verify(step, log)
                case kind:
                    raise WindowsError("BadRequest", f"'{kind}' is no kind of step")
        except WindowsError as error:
            log.write(f"{step.get('Name')}: {error.message}\r\n".encode())
            return CANNOT_START if error.type.endswith(".Win32Exception") else FAILED_CHECK

    def _program(self, step: dict[str, Any], log: HostFile) -> int:
        program = str(step["Program"])
        environment = self._environment.copy()
        environment.update({str(key): str(value) for key, value in (step.get("Environment") or {}).items()})
        argv = [program, *(str(item) for item in step.get("Arguments") or [])]
        child = launcher.launch(
            self._box,
            program,
            subprocess.list2cmdline(argv),
            step.get("WorkingDirectory") or self._folder.path,
            environment,
            Streams(_Nothing(), log, log),
            parent_pid=self.pid,
        )
        return self._wait(child.wait)

    def _batch(self, step: dict[str, Any], log: HostFile) -> int:
        batch = str(step["Batch"])
        if not self._box.filesystem.host(batch).is_file():
            log.write(f"{step.get('Name')}: there is no {batch}\r\n".encode())
            return CANNOT_START
        arguments = subprocess.list2cmdline([str(item) for item in step.get("Arguments") or []])
        # On the command line of cmd.exe, so that its rules hold for the arguments, too.
        line = f'call "{batch}" {arguments}'
        shell = ShellProcess(
            self._box,
            lambda interpreter: interpreter.run_line(line),
            self._folder.path,
            self._environment,
            Streams(_Nothing(), log, log),
            parent_pid=self.pid,
        )
        code = self._wait(shell.wait)
        if code == 0:
            self._environment = shell.interpreter.state.environment.copy()
        return code

    def _wait(self, wait: Callable[[float | None], int | None]) -> int:
        """Wait for a child; when this process is killed, leave it alone."""
        ended: list[int] = []

        def watch() -> None:
            ended.append(signed(wait(None) or 0))
            self._wake.set()

        threading.Thread(target=watch, daemon=True).start()
        while not ended:
            self._wake.wait()
            if self._stopping.is_set():
                return 1
            self._wake.clear()
        return ended[0]

    def _download(self, step: dict[str, Any], log: HostFile) -> int:
        files = BoxFiles(self._box)
        path, wanted = str(step["Path"]), int(step["SizeBytes"])
        size = files.status(path).st_size if files.kind(path) == "file" else None
        if size is not None and size > wanted:
            log.write(f"{step['Name']}: {path} had {size} bytes, more than {wanted}; deleted\r\n".encode())
            self._delete(path)
            size = None
        self._resumed = size is not None
        if size == wanted:
            log.write(f"{step['Name']}: {path} is there already, {size} bytes\r\n".encode())
            return 0
        code = self._program(step, log)
        if code == NO_RANGES and self._resumed and not self._stopping.is_set():
            self._delete(path)
            self._resumed = False
            code = self._program(step, log)
        return code

    def _delete(self, path: str) -> None:
        files = BoxFiles(self._box)
        if files.kind(path) == "file":
            files.set_read_only(path, False)
            files.delete_file(path)

    def _verify(self, step: dict[str, Any], log: HostFile) -> int:
        try:
            return self._put(step, log)
        except WindowsError as error:
            if error.type != "HashMismatch" or not step.get("Again"):
                raise
            log.write(f"{step['Name']}: {error.message}\r\n".encode())
            self._delete(str(step["Path"]))
            if self._resumed:
                log.write(f"{step['Name']}: deleted, fetched anew\r\n".encode())
                self._again = str(step["Again"])
            return FAILED_CHECK

    def _put(self, step: dict[str, Any], log: HostFile) -> int:
        files = BoxFiles(self._box)
        path, destination = str(step["Path"]), str(step["Destination"])
        size = files.status(path).st_size
        if size != int(step["SizeBytes"]):
            raise WindowsError("HashMismatch", f"{path} has {size} bytes, not {step['SizeBytes']}")
        magic = bytes.fromhex(step.get("MagicHex") or "")
        with files.reading(path) as file:
            start = file.read(len(magic))
            file.seek(0)
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if start != magic:
            raise WindowsError(
                "HashMismatch", f"{path} begins with {start.hex().upper()}, not {magic.hex().upper()}"
            )
        if found != str(step["Sha256"]).lower():
            raise WindowsError("HashMismatch", f"{path} has SHA-256 {found}, not {step['Sha256']}")
        if files.kind(destination) == "file":
            files.set_read_only(destination, False)
        files.replace(path, destination)
        files.set_read_only(destination, True)
        stamp = {
            "SizeBytes": size,
            "Sha256": found,
            "LastWriteTimeUtc": o_time(files.status(destination).st_mtime_ns),
        }
        host = files.host(destination + ".verified.json")
        temporary = host.with_name(host.name + ".new")
        temporary.write_text(json.dumps(stamp), "utf-8")
        os.replace(temporary, host)
        log.write(f"{step.get('Name')}: {destination} verified, {size} bytes\r\n".encode())
        return 0


class _Nothing:
    """A stdin that is NUL."""

    def read(self, size: int = -1, /) -> bytes:
        return b""

    def readline(self) -> bytes:
        return b""
