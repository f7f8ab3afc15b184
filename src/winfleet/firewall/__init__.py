"""Windows Firewall: rules of all stores, and who can reach a port."""
