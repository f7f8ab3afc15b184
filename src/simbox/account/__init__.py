"""Accounts of a simulated box."""
