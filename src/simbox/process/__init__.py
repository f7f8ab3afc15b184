"""Processes of a simulated box."""
