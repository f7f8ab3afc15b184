"""Addresses, ports and who listens."""
