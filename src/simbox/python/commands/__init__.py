"""The box commands of docs/box-commands.md section 3, one module per noun, by lower-case name."""

from simbox.python.answers import Command
from simbox.python.commands import (
    directory,
    disk,
    file,
    gpu,
    http,
    job,
    process,
    registry,
    script,
    services,
    system,
    toolchain,
)

_MODULES = (directory, disk, file, gpu, http, job, process, registry, script, services, system, toolchain)
COMMANDS: dict[str, Command] = {
    name: command for module in _MODULES for name, command in module.COMMANDS.items()
}
