"""The built-in commands of cmd.exe.

A command gets the interpreter, the text after its name and its handles. It returns the error level to set, or
None to leave it as it is. Which commands reset it on success follows cmd.exe with batch files named .bat:
SET, ECHO, IF, FOR, GOTO, REM, TITLE and the like do not.
"""

from simbox.cmd.commands import control, files, variables
from simbox.cmd.commands.kind import Builtin

BUILTINS: dict[str, Builtin] = {**control.COMMANDS, **files.COMMANDS, **variables.COMMANDS}
