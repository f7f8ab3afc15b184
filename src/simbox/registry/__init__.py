"""Registry of a simulated box."""
