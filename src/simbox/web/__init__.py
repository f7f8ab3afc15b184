"""HTTP asked by a simulated box."""
