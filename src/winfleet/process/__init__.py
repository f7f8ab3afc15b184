"""Processes, their tokens, and how one is stopped."""
