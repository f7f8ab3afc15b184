"""Build tools of a simulated box."""
