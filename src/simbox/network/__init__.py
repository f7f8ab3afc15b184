"""Network of a simulated box."""
