"""What runs commands on a simulated box."""
