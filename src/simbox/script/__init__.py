"""Scripts run on a simulated box."""
