"""A small cmd.exe: enough of the batch language for supervisor scripts and toolchain set-up files.

The order of the phases is that of cmd.exe: percent signs first, on each physical line as it is read; then
special characters (quotes, carets, ``& | < > ( )``); then FOR variables and delayed expansion when a command
runs. What it does is compared with Wine's cmd.exe in the tests; where Wine 8 and Microsoft's cmd.exe are
known to differ, Microsoft's way is taken and the test says so.
"""
