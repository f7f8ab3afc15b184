"""The Task Scheduler of a simulated box."""
