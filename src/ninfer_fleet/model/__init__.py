"""The model artifact."""
