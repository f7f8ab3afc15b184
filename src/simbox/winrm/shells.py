"""The shells of a box: made, owned, counted against quotas, ended by Delete, idleness, age or the service."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from simbox.engines.engine import Engine, Process
from simbox.eventlog import EventLog
from simbox.winrm import soap
from simbox.winrm.command import Command, PrintedProcess
from simbox.winrm.faults import FaultPlan
from simbox.winrm.limits import Limits
from simbox.winrm.refusals import (
    ACCESS_DENIED,
    INVALID_SELECTORS,
    MAX_OPERATIONS,
    MAX_SHELLS,
    MAX_USERS,
    NO_COMMAND,
    PROGRAM_NOT_FOUND,
    SHUTTING_DOWN,
    refusal,
)

# Longest line cmd.exe takes, in characters (Microsoft: "Command prompt line string limitation").
_CMD_LINE_LIMIT = 8191
_E_FAIL = 2147500037


class Shell:
    """One shell. Its commands share its environment, folder and fate."""

    def __init__(
        self, owner: str, machine: str, client_ip: str, request: soap.ShellRequest, idle_s: float, now: float
    ) -> None:
        self.shell_id = soap.new_id()
        self.owner = owner
        self.environment = request.environment
        self.working_directory = request.working_directory
        self.idle_s = idle_s
        self.lifetime_s = request.lifetime_s
        self.commands: dict[str, Command] = {}
        # Ended text-shell commands keep counting until the shell is deleted (MS-WSMV product note).
        self.started_commands = 0
        self.created = self.last_used = now
        self.active_operations = 0
        self._machine = machine
        self._client_ip = client_ip
        self._request = request

    def state(self, now: float) -> soap.ShellState:
        """What it tells about itself."""
        return soap.ShellState(
            shell_id=self.shell_id,
            owner=f"{self._machine}\\{self.owner}",
            client_ip=self._client_ip,
            name=self._request.name,
            idle_timeout_s=self.idle_s,
            input_streams=self._request.input_streams,
            output_streams=self._request.output_streams,
            run_time_s=now - self.created,
            inactivity_s=0.0 if self.active_operations else now - self.last_used,
        )


class Shells:
    """All shells of one box.

    Args:
        machine: the box's name, for owners.
        engine: starts the commands.
        limits: quotas, read anew at each request.
        faults: shapes the output of commands.
        clock: seconds that only rise.
    """

    def __init__(
        self,
        machine: str,
        engine: Engine,
        limits: Limits,
        events: EventLog,
        faults: FaultPlan,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._machine = machine
        self._engine = engine
        self._limits = limits
        self._events = events
        self._faults = faults
        self._clock = clock
        self._changed = threading.Condition()
        self._shells: dict[str, Shell] = {}
        self._closed = False
        self._reaper = threading.Thread(target=self._reap, name=f"winrm-reaper-{machine}", daemon=True)
        self._reaper.start()

    def create(self, user: str, client_ip: str, request: soap.ShellRequest) -> soap.ShellState:
        """Make a shell. Raises Refusal when a quota is reached."""
        idle_s = self._limits.idle_timeout_ms / 1000
        if request.idle_timeout_s is not None:
            idle_s = min(request.idle_timeout_s, 2147483.647)
        with self._changed:
            if self._closed:
                raise refusal(SHUTTING_DOWN)
            owners = [shell.owner for shell in self._shells.values()]
            if owners.count(user) >= self._limits.max_shells_per_user:
                raise refusal(MAX_SHELLS)
            if user not in owners and len(set(owners)) >= self._limits.max_concurrent_users:
                raise refusal(MAX_USERS)
            shell = Shell(user, self._machine, client_ip, request, idle_s, self._clock())
            self._shells[shell.shell_id] = shell
            self._changed.notify_all()
        self._events.append("shell_created", shell_id=shell.shell_id, user=user)
        return shell.state(self._clock())

    @contextlib.contextmanager
    def using(self, user: str, shell_id: str | None) -> Iterator[Shell]:
        """The user's shell for the length of one operation, during which it is not idle. Raises Refusal."""
        with self._changed:
            shell = self._find(user, shell_id)
            shell.active_operations += 1
        try:
            yield shell
        finally:
            with self._changed:
                shell.active_operations -= 1
                shell.last_used = self._clock()
                self._changed.notify_all()

    def start(self, shell: Shell, command_line: str, skip_cmd_shell: bool) -> Command:
        """Start a command in a shell. Raises Refusal: quota, program not found, access denied."""
        with self._changed:
            operations = sum(
                item.started_commands for item in self._shells.values() if item.owner == shell.owner
            )
            if operations >= self._limits.max_concurrent_operations_per_user:
                raise refusal(MAX_OPERATIONS)
            shell.started_commands += 1
        process = self._start_process(shell, command_line, skip_cmd_shell)
        command = Command(soap.new_id(), process, self._faults.shape)
        with self._changed:
            alive = self._shells.get(shell.shell_id) is shell
            if alive:
                shell.commands[command.command_id] = command
        if not alive:
            command.terminate()
            raise refusal(INVALID_SELECTORS)
        # The program's name only: an argument may hold a secret.
        self._events.append("process_start", shell_id=shell.shell_id, program=command_line.split(" ", 1)[0])
        return command

    def command(self, shell: Shell, command_id: str | None) -> Command:
        """A command of a shell. Raises Refusal when there is none of that id."""
        if command_id is None:
            raise refusal(NO_COMMAND)
        command = shell.commands.get(command_id.upper())
        if command is None:
            raise refusal(INVALID_SELECTORS)
        return command

    def end_command(self, shell: Shell, command: Command) -> None:
        """Terminate a command and forget it."""
        shell.commands.pop(command.command_id, None)
        command.terminate()

    def delete(self, user: str, shell_id: str | None) -> None:
        """Delete the user's shell and kill what runs in it. Raises Refusal when it is unknown."""
        with self._changed:
            shell = self._shells.pop(self._find(user, shell_id).shell_id)
        self._end(shell, "delete")

    def drop_all(self, reason: str) -> None:
        """End every shell: the service stops or restarts."""
        with self._changed:
            shells = list(self._shells.values())
            self._shells.clear()
        for shell in shells:
            self._end(shell, reason)

    def states(self) -> list[soap.ShellState]:
        """The living shells."""
        with self._changed:
            return [shell.state(self._clock()) for shell in self._shells.values()]

    def close(self) -> None:
        """End every shell and the watch over them."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.drop_all("stop")
        self._reaper.join()

    def _find(self, user: str, shell_id: str | None) -> Shell:
        shell = self._shells.get(shell_id or "")
        if shell is None:
            raise refusal(INVALID_SELECTORS)
        if shell.owner != user:
            raise refusal(ACCESS_DENIED)
        return shell

    def _start_process(self, shell: Shell, command_line: str, skip_cmd_shell: bool) -> Process:
        if not skip_cmd_shell and len(command_line) > _CMD_LINE_LIMIT:
            return PrintedProcess(b"The command line is too long.\r\n", 1)
        try:
            return self._engine.start(
                command_line, dict(shell.environment), shell.working_directory, skip_cmd_shell
            )
        except FileNotFoundError:
            raise refusal(PROGRAM_NOT_FOUND) from None
        except PermissionError:
            raise refusal(ACCESS_DENIED) from None
        except Exception as error:
            self._events.append("engine_error", error=f"{type(error).__name__}: {error}")
            raise refusal(_E_FAIL, f"({type(error).__name__}: {error})") from error

    def _end(self, shell: Shell, reason: str) -> None:
        for command in list(shell.commands.values()):
            command.terminate()
        self._events.append("shell_deleted", shell_id=shell.shell_id, reason=reason)

    def _expiry(self, shell: Shell) -> tuple[float, str]:
        """When a shell ends by itself, by the clock, and why."""
        age_s = self._limits.max_shell_run_time_ms / 1000
        if shell.lifetime_s is not None:
            age_s = min(age_s, shell.lifetime_s)
        oldest = (shell.created + age_s, "lifetime")
        if shell.active_operations:
            return oldest
        return min(oldest, (shell.last_used + shell.idle_s, "idle"))

    def _reap(self) -> None:
        while True:
            expired: list[tuple[Shell, str]] = []
            with self._changed:
                if self._closed:
                    return
                now = self._clock()
                for shell in list(self._shells.values()):
                    when, reason = self._expiry(shell)
                    if when <= now:
                        expired.append((self._shells.pop(shell.shell_id), reason))
                if not expired:
                    next_s = min((self._expiry(shell)[0] for shell in self._shells.values()), default=None)
                    # No wait may exceed what the platform's lock takes; an hour is as good as for ever here.
                    self._changed.wait(None if next_s is None else min(next_s - now, 3600.0))
            for shell, reason in expired:
                self._end(shell, reason)
