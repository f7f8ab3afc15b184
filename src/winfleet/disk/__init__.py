"""The disk under a path."""
