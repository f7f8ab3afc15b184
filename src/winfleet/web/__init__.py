"""HTTP as the box itself sees it."""
