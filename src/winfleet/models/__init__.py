"""What a box is, as values: parsed, normalised, compared. Pure: nothing here reads or writes anything."""
