"""Files, folders and junctions."""
