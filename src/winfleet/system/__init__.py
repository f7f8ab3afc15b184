"""The machine and its Windows."""
