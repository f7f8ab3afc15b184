"""Windows Firewall of a simulated box."""
