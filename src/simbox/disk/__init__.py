"""Disks of a simulated box."""
