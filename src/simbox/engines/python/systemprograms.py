"""Programs of C:\\Windows\\System32 that batch files and administrators call: ping, hostname, whoami,
timeout."""

from __future__ import annotations

import ntpath
from collections.abc import Callable
from typing import TYPE_CHECKING

from simbox.programs.invocation import Invocation

if TYPE_CHECKING:
    from simbox.box import Box

SYSTEM32 = "C:\\Windows\\System32"
CMD = f"{SYSTEM32}\\cmd.exe"
POWERSHELL = f"{SYSTEM32}\\WindowsPowerShell\\v1.0\\powershell.exe"
NO_POWERSHELL = (
    "This simulated box (engine python) has no PowerShell engine: it answers the box commands of "
    "ninfer-fleet and runs batch files. For PowerShell text bring the boxes up with "
    "`ninfer-fleet sim up --engine wine`."
)


def ping(invocation: Invocation) -> int:
    """ping [-n count] [-w ms] host: one second between two echoes; only the loopback network answers here."""
    count, host = 4, ""
    arguments = iter(invocation.arguments)
    for argument in arguments:
        option = argument.lower().replace("/", "-")
        if option in ("-n", "-w", "-l", "-i"):
            value = next(arguments, "")
            if not value.isdigit():
                invocation.out(f"Bad value for option {argument}, valid range is from 1 to 4294967295.")
                return 1
            count = int(value) if option == "-n" else count
        elif option in ("-4", "-6"):
            continue
        elif option == "-t":
            count = 1 << 32
        else:
            host = argument
    if not host:
        invocation.out("IP address must be specified.")
        return 1
    local = host.lower() == "localhost" or host.startswith("127.") or host == "::1"
    address = "127.0.0.1" if host.lower() == "localhost" else host
    invocation.out(f"\r\nPinging {address} with 32 bytes of data:")
    for number in range(count):
        if number and invocation.stopping.wait(1):
            return 1
        invocation.out(f"Reply from {address}: bytes=32 time<1ms TTL=128" if local else "Request timed out.")
    received = count if local else 0
    lost = count - received
    invocation.out(
        f"\r\nPing statistics for {address}:\r\n    Packets: Sent = {count}, Received = {received}, "
        f"Lost = {lost} ({100 * lost // count}% loss),"
    )
    return 0 if received else 1


def hostname(invocation: Invocation) -> int:
    """hostname: the computer's name."""
    if invocation.arguments:
        invocation.err("sethostname: Use the Network Control Panel Applet to set hostname.")
        invocation.err("hostname -s is not supported.")
        return 1
    invocation.out(str(invocation.box.store.get("system", "computer_name")))
    return 0


def whoami(invocation: Invocation) -> int:
    """whoami: computer\\user in lower case."""
    name = invocation.box.windows.system.session()["UserName"]
    invocation.out(str(name).lower())
    return 0


def timeout(invocation: Invocation) -> int:
    """timeout needs a console; a process of a service or a remote shell has none."""
    invocation.err("ERROR: Input redirection is not supported, exiting the process immediately.")
    return 1


def powershell(invocation: Invocation) -> int:
    """powershell.exe started as a program: there is no engine for its text."""
    invocation.err(NO_POWERSHELL)
    return 1


PROGRAMS: dict[str, Callable[[Invocation], int]] = {
    f"{SYSTEM32}\\ping.exe".lower(): ping,
    f"{SYSTEM32}\\hostname.exe".lower(): hostname,
    f"{SYSTEM32}\\whoami.exe".lower(): whoami,
    f"{SYSTEM32}\\timeout.exe".lower(): timeout,
    POWERSHELL.lower(): powershell,
}


def install(box: Box) -> None:
    """Lay down the files of these programs where a box has none, so that they are found like any other
    program."""
    spellings = ("ping.exe", "hostname.exe", "whoami.exe", "timeout.exe", "cmd.exe")
    for path in (*(ntpath.join(SYSTEM32, name) for name in spellings), POWERSHELL):
        if not box.filesystem.exists(path):
            box.filesystem.write(path, b"MZ simulated program of Windows\r\n")
