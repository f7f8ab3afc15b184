"""Registry values."""
