"""Detached jobs: long work that a lost connection does not stop."""
