"""Scheduled tasks."""
