"""Boxes whose PowerShell is real: PowerShell for Windows in a Wine prefix of each box."""
