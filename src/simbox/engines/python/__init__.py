"""The engine that needs no Windows: answers the box commands of docs/box-commands.md and runs batch files.

What it answers is copied from what PowerShell for Windows answers on the wine engine, never the other way
round; the contract cases in tests/contract hold it to that.
"""
