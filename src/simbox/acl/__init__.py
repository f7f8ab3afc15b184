"""Access control lists of a simulated box."""
