"""The session that this program has on a box."""
