"""Files, folders and junctions of a simulated box."""
