"""What a wine box has in place of the Windows parts that Wine lacks; loaded only inside such a box.

`load.ps1` and the files beside it define PowerShell functions under the names of the cmdlets that Wine cannot
offer; `program.c` and `nvcuda.c` are Windows binaries. All of them ask the simulator, which keeps the state.
"""
