"""The simulated machine and its Windows."""
