"""The boxes of a fleet: who they are, and what each must answer."""
