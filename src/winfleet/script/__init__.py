"""Scripts and programs run on a box for their output."""
