"""The PowerShell that runs on the boxes, and what makes one program of it."""
