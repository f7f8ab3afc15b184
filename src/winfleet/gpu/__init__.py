"""Graphics cards."""
