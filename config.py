"""pyinfra's configuration for this directory; read before the inventory."""

from winfleet import cli_hooks

# Never ask a Windows box for its temporary folder with a POSIX script, which is what pyinfra does otherwise.
TEMP_DIR = "C:/Windows/Temp"

cli_hooks.install()
