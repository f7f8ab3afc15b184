"""Detached jobs of a simulated box."""
