"""The box commands of docs/box-commands.md section 3, one module per noun, by lower-case name."""

from simbox.disk import commands as disk
from simbox.engines.python import services
from simbox.engines.python.answers import Command
from simbox.files import directory_commands as directory
from simbox.files import file_commands as file
from simbox.gpu import commands as gpu
from simbox.job import commands as job
from simbox.process import commands as process
from simbox.registry import commands as registry
from simbox.script import commands as script
from simbox.system import commands as system
from simbox.toolchain import commands as toolchain
from simbox.web import commands as http

_MODULES = (directory, disk, file, gpu, http, job, process, registry, script, services, system, toolchain)
COMMANDS: dict[str, Command] = {
    name: command for module in _MODULES for name, command in module.COMMANDS.items()
}
