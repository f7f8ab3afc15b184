"""Graphics cards of a simulated box."""
